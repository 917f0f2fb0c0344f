"""Where ``mimi stream`` puts what comes back: a file of codes, a WAV file, lines on standard output, or nowhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import typer

from codec_core.audio_file import open_wav
from codec_core.client import Frame
from codec_core.codes_file import CodesDocument, format_of, write_codes
from codec_core.speaker import Speaker

WAV_SUFFIX = ".wav"
HELD_SAMPLES = 1920
"""A frame: no more than that is padding."""


class Sink(Protocol):
    """Takes frames, then learns how long they are in truth."""

    def take(self, frame: Frame) -> None:
        """Take the next frame."""

    def finish(self, samples: int, provenance: Mapping[str, str], /) -> None:
        """Put down what is left: ``samples`` at 24 kHz is the true length, ``provenance`` what made it."""


@contextlib.contextmanager
def open_sink(output: Path | None, *, lines: bool) -> Iterator[Sink]:
    """Open the sink for a path; without one, codes go to standard output where ``lines`` is set.

    Raises:
        CodecError: a suffix that is not known, or a file that cannot be written.

    """
    if output is None:
        yield _Lines() if lines else _Nowhere()
    elif output.suffix.lower() == WAV_SUFFIX:
        with open_wav(output) as writer:
            yield _Sound(writer)
    else:
        format_of(output)
        yield _CodesFile(output)


class Played:
    """Lets another sink's frames be heard, too.

    Args:
        sink: the other.
        speaker: where; open, and the caller's to close.

    """

    def __init__(self, sink: Sink, speaker: Speaker) -> None:
        self._sink = sink
        self._speaker = speaker

    def take(self, frame: Frame) -> None:
        """Take the next frame."""
        if frame.pcm is not None:
            self._speaker.buffer.push(frame.pcm)
        self._sink.take(frame)

    def finish(self, samples: int, provenance: Mapping[str, str], /) -> None:
        """Put down what is left, and wait until all was heard."""
        self._sink.finish(samples, provenance)
        self._speaker.finish()


class Told:
    """Lets another sink's text be read, too, as it comes.

    Args:
        sink: the other.
        told: whether text goes to standard output.

    """

    def __init__(self, sink: Sink, *, told: bool) -> None:
        self._sink = sink
        self._told = told
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """Everything that was written so far."""
        return "".join(self._parts).strip()

    def take(self, frame: Frame) -> None:
        """Take the next frame."""
        if frame.text:
            if self._told:
                typer.echo(frame.text if self._parts else frame.text.lstrip(), nl=False)
            self._parts.append(frame.text)
        self._sink.take(frame)

    def finish(self, samples: int, provenance: Mapping[str, str], /) -> None:
        """Put down what is left."""
        if self._told and self._parts:
            typer.echo()
        self._sink.finish(samples, provenance)


class Writer(Protocol):
    """What is needed of a sound file that is being written."""

    samples: int
    """Samples written so far."""

    def write(self, pcm: npt.NDArray[np.float32]) -> None:
        """Append samples."""


class _Nowhere:
    def take(self, frame: Frame) -> None:
        pass

    def finish(self, samples: int, provenance: Mapping[str, str], /) -> None:
        pass


class _Lines(_Nowhere):
    """Each frame's number, position and codes, as one line."""

    def take(self, frame: Frame) -> None:
        if frame.codes is not None:
            typer.echo(f"{frame.sequence} {frame.position} {' '.join(map(str, frame.codes.tolist()))}")


class _CodesFile(_Nowhere):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[npt.NDArray[np.int32]] = []

    def take(self, frame: Frame) -> None:
        if frame.codes is not None:
            self._columns.append(frame.codes)

    def finish(self, samples: int, provenance: Mapping[str, str], /) -> None:
        codes = np.stack(self._columns, axis=1) if self._columns else np.empty((1, 0), np.int32)
        write_codes(self._path, CodesDocument(codes, samples, provenance))


class _Sound(_Nowhere):
    """Writes sound once a frame more has come: what is last may be longer than the truth."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._held: npt.NDArray[np.float32] = np.empty(0, np.float32)

    def take(self, frame: Frame) -> None:
        if frame.pcm is not None:
            held = np.concatenate([self._held, frame.pcm])
            kept = max(0, len(held) - HELD_SAMPLES)
            self._writer.write(held[:kept])
            self._held = held[kept:]

    def finish(self, samples: int, _: Mapping[str, str], /) -> None:
        self._writer.write(self._held[: max(0, samples - self._writer.samples)])
