"""What a corpus keeps of a source: a row with its codes, or an entry of the error table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core.codes_document import FRAME_SAMPLES
from codec_core.corpus.lanes import Outcome
from codec_core.errors import CodesFileError, InternalError

Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class RowFacts:
    """All of a row but its codes. The order of the fields is that of the columns."""

    index: int
    """Place of the source in the whole list of inputs; rows come in this order."""
    source: str
    """Path of the audio file, or of the tar it is in."""
    member: str | None
    """Name within the tar."""
    channel: int | None
    """The only channel that was taken, from 0; None where all were mixed."""
    source_sha256: str
    """Of the file's or member's bytes."""
    source_rate_hz: int
    source_channels: int
    source_samples: int
    """Samples per channel at the source's rate."""
    samples: int
    """True length: samples at 24 kHz the codes stand for."""
    frames: int
    """Frames of codes, 1920 samples each."""
    trim_samples: int
    """Zeros the last frame was padded with: what to cut from the end of the decoded sound."""
    fields: str | None
    """What else a manifest said about the source, a JSON object."""


@dataclass(frozen=True)
class Row:
    """A source that was encoded."""

    facts: RowFacts
    codes: Codes
    """int16 or uint16 [levels, frames]."""


@dataclass(frozen=True)
class ErrorEntry:
    """A source that was not, and why."""

    index: int
    source: str
    member: str | None
    channel: int | None
    code: str
    """Of :mod:`codec_core.errors`."""
    message: str


def row_facts(outcome: Outcome, frames: int) -> RowFacts:
    """Return what is kept of a source that was encoded to so many frames."""
    facts, source = outcome.facts, outcome.source
    if facts is None:
        raise InternalError(str(source), "an outcome without facts")
    return RowFacts(
        index=outcome.index,
        source=source.path,
        member=source.member,
        channel=source.channel,
        source_sha256=facts.sha256,
        source_rate_hz=facts.rate_hz,
        source_channels=facts.channels,
        source_samples=facts.source_samples,
        samples=facts.samples,
        frames=frames,
        trim_samples=frames * FRAME_SAMPLES - facts.samples,
        fields=source.fields,
    )


def error_entry(outcome: Outcome) -> ErrorEntry:
    """Return what is kept of a source that failed."""
    error, source = outcome.error, outcome.source
    if error is None:
        raise InternalError(str(source), "an outcome without an error")
    return ErrorEntry(outcome.index, source.path, source.member, source.channel, error.code, str(error))


def to_json(record: RowFacts | ErrorEntry) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(asdict(record), separators=(",", ":"))


def facts_from(values: object, subject: str) -> RowFacts:
    """Read the facts of a row from the values of a record.

    Raises:
        CodesFileError: a field is missing, or of another type.

    """
    return RowFacts(**_checked(values, RowFacts, subject))


def error_from(values: object, subject: str) -> ErrorEntry:
    """Read an entry of the error table; as :func:`facts_from`."""
    return ErrorEntry(**_checked(values, ErrorEntry, subject))


_TYPES = {"int": (int,), "str": (str,), "int | None": (int, type(None)), "str | None": (str, type(None))}


def _checked(values: object, kind: type[RowFacts | ErrorEntry], subject: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise CodesFileError(subject, type(values).__name__, "an object")
    for field in fields(kind):
        value = values.get(field.name)
        if type(value) not in _TYPES[str(field.type)] or (isinstance(value, int) and value < 0):
            found = repr(value)[:80] if field.name in values else "nothing"
            raise CodesFileError(f"{subject}: {field.name}", found, f"{field.type}")
    return {field.name: values[field.name] for field in fields(kind)}
