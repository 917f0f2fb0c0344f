"""The audio of one request: a spooled body read as 24 kHz mono, piece by piece, as often as is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

import numpy.typing as npt

from codec_core.audio_file import AudioReader
from server.errors import BodyTooLargeError
from server.sample_format import AudioIntake
from server.wire_settings import StreamSettings

Array = npt.NDArray[Any]

RAW_BLOCK_BYTES: Final = 65_536


@dataclass
class ClipSource:
    """Where a clip's samples come from."""

    file: IO[bytes]
    """The body, which can be sought in; the caller's to close."""
    settings: StreamSettings
    """Levels, and what raw PCM is made of."""
    raw: bool
    """Whether the body is raw PCM; else it is a file that says itself what it holds."""
    most_samples: int
    """Longest clip that is taken, at 24 kHz."""
    shortfall: str | None = field(default=None, init=False)
    """Once it is read: how much less the file holds than its header says; None where nothing is missing."""

    def pieces(self) -> Iterator[Array]:
        """Read from the start: float32 at 24 kHz, mono, in pieces of any length but 0. Blocks.

        Raises:
            AudioFileError, PayloadError, NonFiniteInputError: the body is refused.
            BodyTooLargeError: the clip is longer than one may be.

        """
        self.file.seek(0)
        samples = 0
        for piece in self._raw_pieces() if self.raw else self._file_pieces():
            samples += len(piece)
            if samples > self.most_samples:
                expected = f"at most {self.most_samples // 24} ms of audio"
                raise BodyTooLargeError("clip", found="a longer one", expected=expected)
            if len(piece):
                yield piece

    def _file_pieces(self) -> Iterator[Array]:
        with AudioReader(self.file, "body") as reader:
            yield from reader.pcm()
            self.shortfall = reader.missing

    def _raw_pieces(self) -> Iterator[Array]:
        intake = AudioIntake(self.settings)
        while data := self.file.read(RAW_BLOCK_BYTES):
            yield intake.push(data)
        yield intake.flush()
