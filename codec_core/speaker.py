"""A loudspeaker, by the package ``sounddevice``, which the extra ``sounddevice`` of this distribution installs."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from codec_core.client.jitter_buffer import JitterBuffer
from codec_core.errors import UnavailableError
from codec_core.microphone import failure_reason, load_sounddevice
from codec_core.pcm import CODEC_RATE_HZ

BLOCK_MS: Final = 20
_POLL_S: Final = 0.02


class Speaker:
    """The machine's default output, mono at 24 kHz, fed from a jitter buffer; a context manager.

    Args:
        buffer: what is heard; others push into it.

    """

    def __init__(self, buffer: JitterBuffer) -> None:
        """Find the output.

        Raises:
            UnavailableError: no ``sounddevice``, no PortAudio, or no output.

        """
        self.buffer = buffer
        sounddevice = load_sounddevice("speaker")
        try:
            self._stream = sounddevice.RawOutputStream(
                samplerate=CODEC_RATE_HZ,
                blocksize=CODEC_RATE_HZ * BLOCK_MS // 1000,
                channels=1,
                dtype="float32",
                callback=self._called,
            )
        except (sounddevice.PortAudioError, ValueError) as cause:
            raise UnavailableError("speaker", failure_reason(cause), "an output that the system can play to") from cause

    def __enter__(self) -> Speaker:
        self._stream.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def finish(self) -> None:
        """Let what waits be heard to its end."""
        self.buffer.end()
        deadline_s = time.monotonic() + self.buffer.waiting_ms / 1000 + 1
        while not self.buffer.is_drained and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)

    def _called(self, block: Any, samples: int, *_: object) -> None:
        block[:] = self.buffer.pull(samples).astype(np.float32).tobytes()
