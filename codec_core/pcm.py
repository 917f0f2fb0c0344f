"""PCM of any common form to the codec's (float32, mono, 24 kHz), and back to int16.

Full scale is -1 .. 1; int16 is divided by 32768. Anything that is not a finite number is refused before it can reach a
resampler or a session.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import soxr  # type: ignore[import-untyped]

from codec_core.errors import InputShapeError, InputTypeError, NonFiniteInputError, SettingError

CODEC_RATE_HZ: Final = 24_000
"""Sample rate of every Mimi model."""
LOWEST_RATE_HZ: Final = 4_000
HIGHEST_RATE_HZ: Final = 768_000
MOST_CHANNELS: Final = 64
PCM_DTYPES: Final = ("int16", "float32", "float64")

Float32Array = npt.NDArray[np.float32]


def require_finite(pcm: npt.NDArray[np.floating[Any]], first_sample: int = 0) -> None:
    """Refuse NaN and infinity.

    Args:
        pcm: samples, ``[n]`` or ``[n, channels]``.
        first_sample: position of ``pcm[0]`` in its stream, so that an error can name the stream's position.

    Raises:
        NonFiniteInputError: naming the first such sample.

    """
    finite = np.isfinite(pcm)
    if finite.all():
        return
    index = np.unravel_index(int(np.argmin(finite)), pcm.shape)
    place = f"sample {first_sample + int(index[0])}"
    if len(index) > 1:
        place += f", channel {int(index[1])}"
    raise NonFiniteInputError(place, str(pcm[index]), "a finite number")


def scale_to_float32(pcm: npt.NDArray[Any]) -> Float32Array:
    """Convert int16 (divided by 32768), float32 or float64 samples of any shape to float32, finite or not.

    Raises:
        InputTypeError: any other element type.

    """
    if pcm.dtype == np.int16:
        return pcm.astype(np.float32) * np.float32(1 / 32768)
    if pcm.dtype not in (np.float32, np.float64):
        raise InputTypeError("pcm", str(pcm.dtype), " or ".join(PCM_DTYPES))
    with np.errstate(over="ignore"):
        return pcm.astype(np.float32, copy=False)


def to_float32(pcm: npt.NDArray[Any], first_sample: int = 0) -> Float32Array:
    """Convert as :func:`scale_to_float32`, to finite samples only.

    Raises:
        InputTypeError: any other element type.
        NonFiniteInputError: NaN, infinity, or a float64 that float32 cannot hold; see :func:`require_finite`.

    """
    samples = scale_to_float32(pcm)
    require_finite(samples, first_sample)
    return samples


def to_int16(pcm: Float32Array) -> npt.NDArray[np.int16]:
    """Convert float32 samples to int16: times 32768, to the nearest (ties to even), clamped to -32768 .. 32767."""
    scaled = np.rint(np.clip(pcm, np.float32(-1), np.float32(1)) * np.float32(32768))
    return np.asarray(np.minimum(scaled, np.float32(32767)), np.int16)


def to_mono(pcm: Float32Array) -> Float32Array:
    """Mix ``[n, channels]`` to ``[n]`` by the mean, channels added in order. ``[n]`` is returned as it is.

    The sum of samples near the largest float32 may be infinite.
    """
    if pcm.ndim == 1:
        return pcm
    total = pcm[:, 0].copy()
    with np.errstate(over="ignore"):
        for channel in range(1, pcm.shape[1]):
            total += pcm[:, channel]
    return total if pcm.shape[1] == 1 else total / np.float32(pcm.shape[1])


def at_rate(pcm: Float32Array, rate_hz: int) -> Float32Array:
    """Resample a whole clip from 24 kHz: float32 [n] -> float32 [about n * rate_hz / 24000]."""
    return np.asarray(soxr.resample(pcm, CODEC_RATE_HZ, rate_hz), np.float32)


class PcmIntake:
    """One stream's way in: chunks of any form become float32 mono at 24 kHz.

    The result does not depend on how the stream is cut into chunks. Where the rate is 24 kHz already, nothing is filtered and
    every sample comes out of the push it went into; otherwise the resampler holds some back until :meth:`flush`.
    Not for use by two threads at once.
    """

    def __init__(self, sample_rate_hz: int, channels: int = 1, dtype: str = "float32") -> None:
        """Say what the stream is made of.

        Args:
            sample_rate_hz: 4000 .. 768000.
            channels: 1 .. 64; more than one are mixed to their mean.
            dtype: "int16", "float32" or "float64".

        Raises:
            SettingError: a value outside these.

        """
        if not LOWEST_RATE_HZ <= sample_rate_hz <= HIGHEST_RATE_HZ:
            raise SettingError("sample_rate_hz", f"{sample_rate_hz}", f"{LOWEST_RATE_HZ} .. {HIGHEST_RATE_HZ}")
        if not 1 <= channels <= MOST_CHANNELS:
            raise SettingError("channels", f"{channels}", f"1 .. {MOST_CHANNELS}")
        if dtype not in PCM_DTYPES:
            raise SettingError("dtype", dtype, " or ".join(PCM_DTYPES))
        self.sample_rate_hz = sample_rate_hz
        self.channels = channels
        self.dtype = dtype
        self._position_samples = 0
        self._resampler: soxr.ResampleStream | None = None
        if sample_rate_hz != CODEC_RATE_HZ:
            self._resampler = soxr.ResampleStream(sample_rate_hz, CODEC_RATE_HZ, 1, dtype="float32")

    @property
    def position_samples(self) -> int:
        """Samples per channel taken in since the stream began, at the stream's own rate."""
        return self._position_samples

    def push(self, chunk: npt.NDArray[Any]) -> Float32Array:
        """Take in the next samples and return what is ready at 24 kHz, which may be nothing.

        Args:
            chunk: ``[n]`` for one channel, else ``[n, channels]``, of the element type given at the start; n may be 0.

        Raises:
            InputTypeError: another element type.
            InputShapeError: another shape.
            NonFiniteInputError: NaN or infinity, naming the sample's position in the stream.
                After any of these the stream is as it was.

        """
        if chunk.dtype != np.dtype(self.dtype):
            raise InputTypeError("chunk", str(chunk.dtype), self.dtype)
        if not (chunk.ndim == 1 and self.channels == 1) and not (chunk.ndim == 2 and chunk.shape[1] == self.channels):
            expected = f"[n, {self.channels}]" if self.channels > 1 else "[n] or [n, 1]"
            raise InputShapeError("chunk", str(list(chunk.shape)), expected)
        mono = to_mono(to_float32(chunk, self._position_samples))
        require_finite(mono, self._position_samples)
        self._position_samples += len(mono)
        if self._resampler is None:
            return mono
        return np.asarray(self._resampler.resample_chunk(np.ascontiguousarray(mono)), np.float32)

    def flush(self) -> Float32Array:
        """End the stream: return what the resampler still held back. The next push begins a new stream."""
        self._position_samples = 0
        if self._resampler is None:
            return np.zeros(0, np.float32)
        tail = np.asarray(self._resampler.resample_chunk(np.zeros(0, np.float32), last=True), np.float32)
        self._resampler.clear()
        return tail
