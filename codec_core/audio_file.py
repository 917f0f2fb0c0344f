"""Audio files in and out, block by block, so that an hour needs no more memory than a second.

Reads whatever libsndfile reads (WAV, FLAC, OGG, MP3, ...), any rate and number of channels; writes WAV, 16 bits, and into open
files also FLAC and Ogg Opus.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

import numpy.typing as npt
import soundfile  # type: ignore[import-untyped]

from codec_core.atomic_file import atomic_output
from codec_core.errors import AudioFileError, SettingError
from codec_core.pcm import CODEC_RATE_HZ, Float32Array, PcmIntake, to_int16
from codec_core.wav_header import declared_wav_samples

STANDARD_INPUT: Final = "-"
BLOCK_SAMPLES: Final = 65_536
"""Samples per channel read at once."""
_SPOOL_MEMORY_BYTES: Final = 8 << 20
_COPY_BYTES: Final = 1 << 20
_UNKNOWN_SAMPLES: Final = 1 << 36
"""Most a FLAC header can declare; libsndfile reports more where it declares nothing."""
_WAV_CAP_BYTES: Final = (1 << 32) - 1024


class AudioReader:
    """An audio file opened for reading, as a context manager.

    Standard input is first copied to a temporary file (in memory while it is short), because most formats cannot be read
    without seeking.
    """

    def __init__(self, source: str | os.PathLike[str] | IO[bytes], subject: str = "", *, channel: int | None = None) -> None:
        """Open a file.

        Args:
            source: a path, "-" for standard input, or a file that is open, can be sought in, and stays the caller's to close.
            subject: what to call it in errors; the path, if empty.
            channel: the only channel to read, counted from 0; None mixes all of them.

        Raises:
            AudioFileError: it cannot be opened, is no audio file, has a rate or a number of channels that is not taken, or
                lacks the channel.

        """
        self.subject = subject or ("standard input" if source == STANDARD_INPUT else str(source))
        self._spool: IO[bytes] | None = None
        self._intake_samples = 0
        self._channel = channel
        try:
            if source == STANDARD_INPUT:
                source = self._spool = _spool(sys.stdin.buffer)
            elif isinstance(source, str | os.PathLike) and not Path(source).is_file():
                found = "no regular file" if Path(source).exists() else "no such file"
                raise AudioFileError(self.subject, found, "an audio file")
            self._declared_samples = _declared_samples(source)
            self._file = soundfile.SoundFile(os.fspath(source) if isinstance(source, str | os.PathLike) else source)
            self._intake = PcmIntake(self._file.samplerate, self._file.channels if channel is None else 1)
            self._require_channel()
        except EOFError as cause:
            self.close()
            raise AudioFileError(self.subject, "an empty file", "an audio file") from cause
        except AudioFileError:
            self.close()
            raise
        except (soundfile.SoundFileError, OSError, TypeError) as cause:
            self.close()
            raise AudioFileError(self.subject, _reason(cause), "an audio file libsndfile can read") from cause
        except SettingError as cause:
            self.close()
            raise AudioFileError(f"{self.subject}: {cause.subject}", cause.found, cause.expected) from cause

    @property
    def sample_rate_hz(self) -> int:
        """Rate of the file."""
        return int(self._file.samplerate)

    @property
    def channels(self) -> int:
        """Channels of the file."""
        return int(self._file.channels)

    @property
    def expected_samples(self) -> int:
        """Samples at 24 kHz the file claims to hold; good for a progress bar, not for an allocation."""
        return round(int(self._file.frames) * CODEC_RATE_HZ / self.sample_rate_hz)

    @property
    def read_samples(self) -> int:
        """Samples per channel read so far, at the file's rate."""
        return self._intake_samples

    @property
    def missing(self) -> str | None:
        """Once all of :meth:`pcm` is read: how much less the file held than its header says; None where nothing is missing."""
        found, declared = self._intake_samples, self._declared_samples
        if self._file.format == "FLAC" and self._file.frames < _UNKNOWN_SAMPLES:
            declared = int(self._file.frames)
        return None if declared is None or found >= declared else f"the file ends early: {found} of {declared} samples"

    def pcm(self) -> Iterator[Float32Array]:
        """Yield the whole file as float32 mono at 24 kHz, in pieces of any length but 0. To be used once.

        Raises:
            AudioFileError: the file is damaged.
            NonFiniteInputError: it holds NaN or infinity; names the sample's position at the file's rate.

        """
        while True:
            try:
                block = self._file.read(BLOCK_SAMPLES, dtype="float32", always_2d=True)
            except (soundfile.SoundFileError, OSError) as cause:
                raise AudioFileError(self.subject, _reason(cause), "undamaged audio") from cause
            self._intake_samples += len(block)
            chosen = block if self._channel is None else block[:, self._channel]
            piece = self._intake.push(chosen) if len(block) else self._intake.flush()
            if len(piece):
                yield piece
            if not len(block):
                return

    def _require_channel(self) -> None:
        if self._channel is not None and self._channel >= self.channels:
            raise AudioFileError(self.subject, f"{self.channels} channels", f"a channel {self._channel}, counted from 0")

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        if hasattr(self, "_file"):
            self._file.close()
        if self._spool is not None:
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class SoundWriter:
    """A sound file (mono, 24 kHz) being written; made by :func:`open_wav` and :func:`open_sound`."""

    def __init__(self, file: soundfile.SoundFile, subject: str) -> None:
        self._file = file
        self._subject = subject
        self.samples = 0
        """Samples written so far."""

    def write(self, pcm: Float32Array) -> None:
        """Append float32 samples ``[n]``, clamped to the range of int16.

        Raises:
            AudioFileError: the disk is full, or the file would pass the 4 GiB that WAV allows.

        """
        if (self.samples + len(pcm)) * 2 > _WAV_CAP_BYTES:
            raise AudioFileError(self._subject, "more than 4 GiB of samples", "at most what a WAV file holds (24 hours)")
        block: npt.NDArray[Any] = to_int16(pcm)
        try:
            self._file.write(block)
        except (soundfile.SoundFileError, OSError, AssertionError) as cause:
            raise AudioFileError(self._subject, _write_reason(self._file.name, cause), "a file that can be written") from cause
        self.samples += len(pcm)


@contextlib.contextmanager
def open_wav(path: str | os.PathLike[str]) -> Iterator[SoundWriter]:
    """Write a WAV file that appears whole or not at all; an existing file is replaced.

    Raises:
        AudioFileError: the suffix is not ``.wav``, or the path cannot be written.

    """
    if Path(path).suffix.lower() != ".wav":
        raise AudioFileError(str(path), f"the suffix {Path(path).suffix!r}", ".wav")
    with atomic_output(path, replace=True, error=AudioFileError) as temporary:
        try:
            with soundfile.SoundFile(temporary, "w", CODEC_RATE_HZ, 1, format="WAV", subtype="PCM_16") as file:
                yield SoundWriter(file, str(path))
        except soundfile.SoundFileError as cause:
            raise AudioFileError(str(path), _write_reason(temporary, cause), "a file that can be written") from cause


@contextlib.contextmanager
def open_sound(file: IO[bytes], container: Literal["FLAC", "OGG"]) -> Iterator[SoundWriter]:
    """Write FLAC (16 bits) or Ogg Opus, of at least one sample, into an open, empty file; it stays the caller's to close.

    Raises:
        AudioFileError: it cannot be written.

    """
    subtype = {"FLAC": "PCM_16", "OGG": "OPUS"}[container]
    try:
        with soundfile.SoundFile(file, "w", CODEC_RATE_HZ, 1, format=container, subtype=subtype) as opened:
            yield SoundWriter(opened, f"{container} file")
    except soundfile.SoundFileError as cause:
        raise AudioFileError(f"{container} file", _reason(cause), "a file that can be written") from cause


def _spool(stream: IO[bytes]) -> IO[bytes]:
    """Copy a stream to a temporary file and rewind it."""
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_MEMORY_BYTES)  # noqa: SIM115 - the reader closes it
    while piece := stream.read(_COPY_BYTES):
        spool.write(piece)
    spool.seek(0)
    return spool


def _declared_samples(source: IO[bytes] | str | os.PathLike[str]) -> int | None:
    """Return what a WAV header declares. Opens the file itself, so that the system says why it cannot be read.

    Raises:
        EOFError: the file is empty.
        OSError: it cannot be read.

    """
    with Path(source).open("rb") if isinstance(source, str | os.PathLike) else contextlib.nullcontext(source) as file:
        is_empty = not file.read(1)
        file.seek(0)
        declared = declared_wav_samples(file)
        file.seek(0)
    if is_empty:
        raise EOFError
    return declared


def _write_reason(path: str | os.PathLike[str] | IO[bytes], cause: Exception) -> str:
    """Return why a file cannot be written. libsndfile keeps the system's reason to itself; writing once more tells it."""
    if not isinstance(path, str | os.PathLike):
        return _reason(cause)
    try:
        with Path(path).open("ab") as file:
            file.write(bytes(_COPY_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as refused:
        return _reason(refused)
    return _reason(cause)


def _reason(cause: Exception) -> str:
    """Return what went wrong, in libsndfile's or the system's own words."""
    if isinstance(cause, soundfile.LibsndfileError):
        return str(cause.error_string).strip().rstrip(".")
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
