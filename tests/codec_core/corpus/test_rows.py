"""Records of rows and errors, to JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from codec_core.corpus.feed import SourceFacts
from codec_core.corpus.inputs import Source
from codec_core.corpus.lanes import Outcome
from codec_core.corpus.rows import error_entry, error_from, facts_from, row_facts, to_json
from codec_core.errors import AudioFileError, CodesFileError

SOURCE = Source("a.tar", "b.wav", 512, 100, channel=1, fields='{"text":"x"}')
OUTCOME = Outcome(7, SOURCE, bytes(64), SourceFacts("ab" * 32, 16000, 2, 3000, 4500))


def test_what_is_kept_of_a_source():
    facts = row_facts(OUTCOME, 3)
    assert (facts.index, facts.source, facts.member, facts.channel, facts.fields) == (7, "a.tar", "b.wav", 1, '{"text":"x"}')
    assert (facts.source_samples, facts.samples, facts.frames, facts.trim_samples) == (3000, 4500, 3, 3 * 1920 - 4500)
    assert facts_from(json.loads(to_json(facts)), "x") == facts


def test_what_is_kept_of_an_error():
    entry = error_entry(Outcome(7, SOURCE, error=AudioFileError("a.tar:b.wav", "no samples", "at least one")))
    assert (entry.code, entry.message) == ("audio_file", "a.tar:b.wav: found no samples, expected at least one")
    assert error_from(json.loads(to_json(entry)), "x") == entry


@pytest.mark.parametrize(
    ("field", "value"), [("frames", "3"), ("frames", -1), ("source", None), ("index", True), ("member", 5), ("samples", 1.5)]
)
def test_a_field_of_another_type_is_refused_by_its_name(field: str, value: object):
    with pytest.raises(CodesFileError, match=field):
        facts_from(asdict(row_facts(OUTCOME, 3)) | {field: value}, "x")


def test_a_field_that_is_missing():
    values = asdict(row_facts(OUTCOME, 3))
    del values["trim_samples"]
    with pytest.raises(CodesFileError, match="trim_samples: found nothing"):
        facts_from(values, "x")
    with pytest.raises(CodesFileError):
        facts_from([1], "x")
