"""One source, read ahead of its encoding: opened, hashed, decoded, resampled and cut into frames on another thread."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core.audio_file import AudioReader
from codec_core.corpus.inputs import Source
from codec_core.corpus.tar_members import FileWindow
from codec_core.errors import AudioFileError, CodecError, InternalError
from codec_core.framing import FrameAccumulator
from codec_core.pcm import Float32Array

_WINDOW_BUFFER_BYTES: Final = 1 << 18


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a source once it has been read to its end."""

    sha256: str
    """Of the file's or member's bytes."""
    rate_hz: int
    channels: int
    source_samples: int
    """Samples per channel at the source's rate."""
    samples: int
    """Samples at 24 kHz."""


def open_source(source: Source) -> io.BufferedReader:
    """Open the bytes of a source.

    Raises:
        AudioFileError: there is no such file, or it cannot be opened.

    """
    try:
        if source.member is None:
            if not Path(source.path).is_file():
                found = "no regular file" if Path(source.path).exists() else "no such file"
                raise AudioFileError(source.path, found, "an audio file")
            return Path(source.path).open("rb")
        return io.BufferedReader(_window(source), _WINDOW_BUFFER_BYTES)
    except (OSError, ValueError) as cause:
        raise AudioFileError(str(source), getattr(cause, "strerror", None) or str(cause), "a readable file") from cause


@contextlib.contextmanager
def open_reader(source: Source) -> Iterator[AudioReader]:
    """Open a source as audio, for as long as the context lasts.

    Raises:
        AudioFileError: see :class:`~codec_core.audio_file.AudioReader`.

    """
    if source.member is None:
        with AudioReader(source.path, str(source), channel=source.channel) as reader:
            yield reader
        return
    with open_source(source) as file, AudioReader(file, str(source), channel=source.channel) as reader:
        yield reader


def _window(source: Source) -> FileWindow:
    return FileWindow(source.path, source.offset_bytes, source.size_bytes)


class SourceFeed:
    """The frames of one source, each block read when the one before it is taken. Used by one thread at a time."""

    def __init__(self, source: Source, frame_samples: int) -> None:
        """Say what to read; nothing is opened yet."""
        self.source = source
        self._frame_samples = frame_samples
        self._facts: SourceFacts | None = None

    @property
    def facts(self) -> SourceFacts:
        """What is known of the source; only once :meth:`blocks` has come to its end."""
        if self._facts is None:
            raise InternalError("facts", "a source that is not read to its end")
        return self._facts

    def blocks(self) -> Iterator[Float32Array]:
        """Yield all frames, in blocks ``[frames, frame_samples]`` of at least one; the last frame is padded with zeros.

        Raises:
            CodecError: the source cannot be read, is damaged, empty or ends early, or holds what is no number.

        """
        _require_utf8(self.source)
        with open_source(self.source) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        accumulator = FrameAccumulator(self._frame_samples)
        samples = 0
        with open_reader(self.source) as reader:
            for pcm in reader.pcm():
                samples += len(pcm)
                frames = accumulator.push(pcm)
                if len(frames):
                    yield frames
            if reader.missing is not None:
                found = reader.missing.partition(": ")[2]
                raise AudioFileError(reader.subject, f"an early end: {found}", "as many samples as its header says")
            if not samples:
                raise AudioFileError(reader.subject, "no samples", "at least one sample")
            self._facts = SourceFacts(digest, reader.sample_rate_hz, reader.channels, reader.read_samples, samples)
        last = accumulator.flush()
        if len(last):
            yield last


class PrefetchedFeed:
    """A feed whose next block is read while the present one is used: never more than two blocks are held."""

    def __init__(self, feed: SourceFeed, pool: ThreadPoolExecutor) -> None:
        """Begin to read on one of the pool's threads."""
        self._feed = feed
        self._blocks = feed.blocks()
        self._pool = pool
        self.pending: Future[Float32Array | None] = pool.submit(self._next)
        """The block being read; None stands for the end."""

    @property
    def facts(self) -> SourceFacts:
        """See :attr:`SourceFeed.facts`."""
        return self._feed.facts

    def take(self) -> Float32Array | None:
        """Return the next block, having waited for it if need be; None at the end.

        Raises:
            CodecError: as :meth:`SourceFeed.blocks`; InternalError where a library below fails in a way of its own.

        """
        block = self.pending.result()
        if block is not None:
            self.pending = self._pool.submit(self._next)
        return block

    def _next(self) -> Float32Array | None:
        try:
            return next(self._blocks, None)
        except CodecError:
            raise
        except Exception as cause:
            raise InternalError(
                str(self._feed.source), f"{type(cause).__name__}: {cause}", "audio, or a known error"
            ) from cause


def _require_utf8(source: Source) -> None:
    try:
        str(source).encode()
    except UnicodeEncodeError as cause:
        raise AudioFileError(f"{source!s}".encode(errors="backslashreplace").decode(), "a name that is not UTF-8") from cause
