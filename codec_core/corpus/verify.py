"""Proof that a corpus is what its ledger and its sources say."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codec_core.corpus.feed import SourceFeed
from codec_core.corpus.inputs import Source
from codec_core.corpus.ledger import LedgerEntry, file_facts
from codec_core.corpus.reader import Corpus
from codec_core.corpus.rows import Codes, Row
from codec_core.corpus.tar_members import tar_sources
from codec_core.difference import compare_codes
from codec_core.errors import AudioFileError, CodecError, SettingError
from codec_core.model import CodecModel
from codec_core.provenance import provenance


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    subject: str
    """A shard's file or a source."""
    detail: str


@dataclass(frozen=True)
class Verification:
    """What was looked at, and what was wrong."""

    files: int
    rows: int
    """Re-encoded."""
    findings: tuple[Finding, ...]


def verify_corpus(
    corpus: Corpus, model: CodecModel, sample: int, seed: int, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Verification:
    """Check every file of a corpus against the ledger, and re-encode some of its rows, drawn at random, from their sources.

    Args:
        corpus: what to check.
        model: the one it was made with, under the same numerics.
        sample: rows to re-encode, or fewer where the corpus has fewer.
        seed: of the draw.
        progress: told rows done and rows in all.

    Raises:
        SettingError: another model or other numerics.

    """
    _require_same_maker(corpus, model)
    files = [(entry, file) for entry in corpus.ledger for file in entry.files]
    findings = [finding for entry in corpus.ledger for finding in _check_files(corpus, entry)]
    if not corpus.is_complete:
        findings.append(Finding(str(corpus.folder.path), "the run was not finished; the same command continues it"))
    damaged = {finding.subject for finding in findings}
    whole = [entry for entry in corpus.ledger if not damaged & {file.name for file in entry.files}]
    done = 0
    for done, row in enumerate(_drawn(corpus, whole, sample, seed), start=1):
        findings += _check_row(row, model)
        progress(done, sample)
    return Verification(len(files), done, tuple(findings))


def _require_same_maker(corpus: Corpus, model: CodecModel) -> None:
    found = provenance(model)
    for name in ("model_sha256", "numerics"):
        if corpus.provenance.get(name) != found[name]:
            made_by = corpus.provenance
            expected = (
                f"the model of the corpus, {made_by.get('model')} ({made_by.get('model_sha256')}), {made_by.get('numerics')}"
            )
            raise SettingError("model", f"{found['model']} ({found['model_sha256']}), {found['numerics']}", expected)


def _check_files(corpus: Corpus, entry: LedgerEntry) -> Iterator[Finding]:
    for file in entry.files:
        try:
            facts = file_facts(corpus.folder.path / file.name, file.name)
        except OSError as error:
            yield Finding(file.name, f"{error.strerror}")
            continue
        if facts != file:
            yield Finding(file.name, "its bytes are not those that were written")


def _drawn(corpus: Corpus, entries: list[LedgerEntry], sample: int, seed: int) -> Iterator[Row]:
    """Yield rows at places drawn without repetition, shard by shard."""
    places = [(entry, place) for entry in entries for place in range(entry.rows)]
    drawn = random.Random(seed).sample(range(len(places)), min(sample, len(places)))  # noqa: S311 - which rows, no secret
    wanted: dict[int, set[int]] = {}
    for at in drawn:
        entry, place = places[at]
        wanted.setdefault(entry.number, set()).add(place)
    for entry in entries:
        if entry.number in wanted:
            yield from (row for place, row in enumerate(corpus.shard_rows(entry)) if place in wanted[entry.number])


def _check_row(row: Row, model: CodecModel) -> Iterator[Finding]:
    subject = row.facts.source if row.facts.member is None else f"{row.facts.source}:{row.facts.member}"
    try:
        source = find_source(row)
        feed = SourceFeed(source, model.info.frame_samples)
        codes = _encode(feed, model, len(row.codes))
    except CodecError as error:
        yield Finding(subject, f"{error.code}: {error}")
        return
    if feed.facts.sha256 != row.facts.source_sha256:
        yield Finding(subject, "the source has changed since it was encoded")
    elif (difference := compare_codes(codes, row.codes)) is not None:
        yield Finding(subject, str(difference))
    elif feed.facts.samples != row.facts.samples:
        yield Finding(subject, f"{row.facts.samples} samples, where the source has {feed.facts.samples}")


def find_source(row: Row) -> Source:
    """Return the source of a row, as it is now.

    Raises:
        AudioFileError: a tar that no longer has the member.

    """
    facts = row.facts
    if facts.member is None:
        return Source(facts.source, channel=facts.channel)
    for source in tar_sources(Path(facts.source)):
        if source.member == facts.member:
            return Source(source.path, source.member, source.offset_bytes, source.size_bytes, facts.channel)
    raise AudioFileError(facts.source, f"no member {facts.member!r}", "the tar that was encoded")


def _encode(feed: SourceFeed, model: CodecModel, levels: int) -> Codes:
    """Encode one source alone, frame by frame."""
    session = model.encoder(levels)
    columns = [session.push(frames.reshape(-1)) for frames in feed.blocks()]
    return np.concatenate(columns, axis=1)
