"""Sound on its way to a loudspeaker: what comes in bursts goes out evenly, and where nothing is left, without a click."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]

FADE_MS: Final = 5


class JitterBuffer:
    """Mono float32 in pieces of any length in, in pieces of any length out. One thread may push while another pulls.

    Nothing is handed out until ``target_ms`` wait, at the start and again each time the buffer has run dry; silence stands for
    what is missing, to which sound falls within 5 ms, and out of which it rises. Beyond ``most_ms`` the oldest is dropped,
    so that what is heard never falls further behind.

    Args:
        sample_rate_hz: of the sound.
        target_ms: what waits before sound begins; more rides out longer stalls, and is heard later.
        most_ms: most that waits.

    """

    def __init__(self, sample_rate_hz: int, *, target_ms: int = 160, most_ms: int = 2_000) -> None:
        self._rate_hz = sample_rate_hz
        self._target_samples = sample_rate_hz * target_ms // 1000
        self._most_samples = sample_rate_hz * most_ms // 1000
        self._fade_samples = sample_rate_hz * FADE_MS // 1000
        self._pieces: deque[Float32Array] = deque()
        self._samples = 0
        self._last = 0.0
        self._playing = False
        self._ended = False
        self._lock = threading.Lock()
        self.underruns = 0
        """How often it ran dry in mid-stream."""
        self.dropped_samples = 0

    @property
    def waiting_ms(self) -> float:
        """What waits to be heard."""
        return self._samples * 1000 / self._rate_hz

    @property
    def is_drained(self) -> bool:
        """Whether all that will ever come was handed out."""
        return self._ended and not self._samples

    def push(self, pcm: Float32Array) -> None:
        """Add sound ``[n]``."""
        with self._lock:
            self._pieces.append(np.asarray(pcm, np.float32))
            self._samples += len(pcm)
            while self._samples > self._most_samples:
                self.dropped_samples += len(self._take(min(self._samples - self._most_samples, len(self._pieces[0]))))

    def end(self) -> None:
        """Say that nothing more comes: what waits is handed out, however little it is."""
        with self._lock:
            self._ended = True

    def pull(self, samples: int) -> Float32Array:
        """Return the next ``samples`` to be heard; waits for nothing."""
        with self._lock:
            begins = not self._playing and bool(self._samples) and (self._ended or self._samples >= self._target_samples)
            if not self._playing and not begins:
                return np.zeros(samples, np.float32)
            self._playing = True
            pcm = self._take(min(samples, self._samples))
            if begins:
                rising = pcm[: self._fade_samples]
                rising *= np.linspace(0, 1, len(rising), dtype=np.float32)
            self._last = float(pcm[-1]) if len(pcm) else self._last
            return pcm if len(pcm) == samples else np.concatenate([pcm, self._run_dry(samples - len(pcm))])

    def _run_dry(self, missing_samples: int) -> Float32Array:
        """Fall from the last sample to silence; sound begins again once enough waits."""
        self._playing = False
        self.underruns += not self._ended
        silence = np.zeros(missing_samples, np.float32)
        falling = silence[: self._fade_samples]
        falling += np.linspace(self._last, 0, len(falling), dtype=np.float32)
        return silence

    def _take(self, samples: int) -> Float32Array:
        taken: list[Float32Array] = [np.empty(0, np.float32)]
        left = samples
        while left:
            piece = self._pieces.popleft()
            if len(piece) > left:
                self._pieces.appendleft(piece[left:])
                piece = piece[:left]
            taken.append(piece)
            left -= len(piece)
        self._samples -= samples
        return np.concatenate(taken)
