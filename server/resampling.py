"""A stateful resampler that another process can take up again.

soxr's own state cannot be copied, so the resampler keeps what it heard last. Another one that hears that again goes on at the
same sample, with values that differ by rounding only (below 1e-4 of full scale); one that has heard everything since the start
goes on bit for bit.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import soxr  # type: ignore[import-untyped]

Float32Array = npt.NDArray[np.float32]

HISTORY_MS: Final = 400
"""What is heard again at the least; several times as long as the longest filter."""
_PROBE_MS: Final = 80
_PROBES: Final = 64
_DELAY_GRAIN_MS: Final = 10


@dataclass(frozen=True)
class ResamplerState:
    """What another resampler needs to go on.

    ``first_sample`` is where ``heard`` begins, counted since the start or the last flush; ``taken_samples`` of the output were
    handed out.
    """

    first_sample: int
    taken_samples: int
    heard: Float32Array


class Resampler:
    """Mono float32 from one rate to another, chunk by chunk; equal rates pass through untouched.

    The output does not depend on how the input is cut into chunks. Not for use by two threads at once.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._rates_hz = from_hz, to_hz
        self._period_samples = from_hz // math.gcd(from_hz, to_hz)
        self._start()

    def _start(self) -> None:
        from_hz, to_hz = self._rates_hz
        self._soxr = None if from_hz == to_hz else soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")
        self._heard: list[Float32Array] = []
        self._first_sample = 0
        self._heard_samples = 0
        self._skip_samples = 0
        self._ready = np.zeros(0, np.float32)
        self.taken_samples = 0
        """Output handed out since the start or the last flush."""

    @property
    def pushed_samples(self) -> int:
        """Input taken in since the start or the last flush; not counted where the rates are equal."""
        return self._first_sample + self._heard_samples

    def push(self, pcm: Float32Array, most_samples: int | None = None) -> Float32Array:
        """Take in samples ``[n]`` and return those that are ready, at most so many; the rest stays ready."""
        if self._soxr is None:
            self.taken_samples += len(pcm)
            return pcm
        self._remember(pcm)
        self._collect(self._soxr.resample_chunk(np.ascontiguousarray(pcm)))
        return self._take(len(self._ready) if most_samples is None else max(0, most_samples))

    def flush(self) -> Float32Array:
        """End the stream: return all that is left. The next push begins a new one."""
        if self._soxr is None:
            return np.zeros(0, np.float32)
        self._collect(self._soxr.resample_chunk(np.zeros(0, np.float32), last=True))
        tail = self._take(len(self._ready))
        self._start()
        return tail

    def state(self) -> ResamplerState:
        """Return what another resampler of the same rates needs to go on."""
        heard = np.concatenate(self._heard) if self._heard else np.zeros(0, np.float32)
        return ResamplerState(self._first_sample, self.taken_samples, heard)

    def restore(self, state: ResamplerState) -> None:
        """Go on where another one was; what is handed out next is the sample after its last."""
        self._start()
        if self._soxr is None or not (len(state.heard) or state.taken_samples):
            return
        from_hz, to_hz = self._rates_hz
        self._first_sample = state.first_sample
        self._skip_samples = max(0, state.taken_samples - state.first_sample * to_hz // from_hz)
        self._remember(state.heard)
        self._collect(self._soxr.resample_chunk(np.ascontiguousarray(state.heard)))
        self.taken_samples = state.taken_samples

    def _remember(self, pcm: Float32Array) -> None:
        self._heard.append(pcm.copy())
        self._heard_samples += len(pcm)
        least = self._rates_hz[0] * HISTORY_MS // 1000
        if self._heard_samples < 2 * least + self._period_samples:
            return
        # Only where input and output samples coincide can another resampler begin in the same phase.
        first = (self.pushed_samples - least) // self._period_samples * self._period_samples
        kept = np.concatenate(self._heard)[first - self._first_sample :]
        self._heard, self._first_sample, self._heard_samples = [kept], first, len(kept)

    def _collect(self, made: npt.NDArray[np.float32]) -> None:
        skipped = min(self._skip_samples, len(made))
        self._skip_samples -= skipped
        self._ready = np.concatenate([self._ready, np.asarray(made[skipped:], np.float32)])

    def _take(self, samples: int) -> Float32Array:
        taken, self._ready = self._ready[:samples], self._ready[samples:]
        self.taken_samples += len(taken)
        return taken


@functools.lru_cache(maxsize=256)
def steady_delay_samples(from_hz: int, to_hz: int) -> int:
    """Find a delay, in output samples, with which a resampler always has ready what is due.

    soxr hands out its output in bursts of its own; who takes, after each push, what was pushed less this delay, gets regular
    pieces. It depends on the rates only.
    """
    if from_hz == to_hz:
        return 0
    probe = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")
    silence = np.zeros(from_hz * _PROBE_MS // 1000, np.float32)
    made = behind = 0
    for count in range(1, _PROBES + 1):
        made += len(probe.resample_chunk(silence))
        behind = max(behind, count * len(silence) * to_hz // from_hz - made)
    grain = to_hz * _DELAY_GRAIN_MS // 1000
    return (behind // grain + 2) * grain
