"""A microphone, by the package ``sounddevice``, which the extra ``sounddevice`` of this distribution installs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import UnavailableError

BLOCK_MS: Final = 20


class Microphone:
    """The machine's default input, one channel of int16, at whatever rate the hardware has; a context manager.

    Args:
        take: called with each block of samples, on a thread of the audio system; must return at once.

    """

    def __init__(self, take: Callable[[npt.NDArray[np.int16]], None]) -> None:
        """Find the input.

        Raises:
            UnavailableError: no ``sounddevice``, no PortAudio, or no input.

        """
        self._take = take
        self._sounddevice = load_sounddevice("microphone")
        try:
            self.sample_rate_hz = int(self._sounddevice.query_devices(kind="input")["default_samplerate"])
            self._stream = self._sounddevice.RawInputStream(
                samplerate=self.sample_rate_hz,
                blocksize=self.sample_rate_hz * BLOCK_MS // 1000,
                channels=1,
                dtype="int16",
                callback=self._called,
            )
        except (self._sounddevice.PortAudioError, ValueError) as cause:
            raise UnavailableError("microphone", failure_reason(cause), "an input that the system can record from") from cause

    def __enter__(self) -> Microphone:
        self._stream.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _called(self, block: Any, *_: object) -> None:
        self._take(np.frombuffer(bytes(block), np.int16))


def load_sounddevice(subject: str) -> Any:
    """Load the package.

    Args:
        subject: what it is wanted for.

    Raises:
        UnavailableError: it is not installed, or the system's library is not.

    """
    try:
        import sounddevice  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415 - an extra
    except ImportError as cause:
        expected = "the package that records and plays: pip install sounddevice"
        raise UnavailableError(f"{subject}: sounddevice", "not installed", expected) from cause
    except OSError as cause:
        raise UnavailableError(f"{subject}: PortAudio", failure_reason(cause), "the system's library libportaudio2") from cause
    return sounddevice


def failure_reason(cause: BaseException) -> str:
    """Return the first line of what an audio system says."""
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]
