"""Counters of a run."""

from __future__ import annotations

from codec_core.corpus.ledger import LedgerEntry
from codec_core.corpus.rows import ErrorEntry
from codec_core.corpus.tally import Tally

ENTRY = LedgerEntry(0, 3, 30, 57_000, (), (ErrorEntry(3, "x", None, None, "audio_file", "x"),))


def test_this_run_an_earlier_one_and_another_process():
    tally = Tally(20)
    tally.resume(ENTRY)
    tally.count_elsewhere(ENTRY)
    for failed in (False, False, True):
        tally.source_done(failed=failed)
    tally.add_frames(25)
    tally.commit(ENTRY)
    counts = tally.counts()
    assert (counts.inputs, counts.done, counts.rows, counts.errors) == (20, 11, 8, 3)
    assert (counts.frames, counts.shards, counts.samples, counts.already_done) == (55, 3, 171_000, 4)
    assert counts.seconds >= 0
