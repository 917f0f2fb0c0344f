"""PCM bytes of the wire to the codec's samples and back: the formats ``s16le``, ``f32le`` and ``mulaw``, at any agreed rate."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.opus_packets import OPUS_RATE_HZ
from codec_core.pcm import CODEC_RATE_HZ, PcmIntake, to_int16
from server.errors import PayloadError
from server.resampling import Resampler, ResamplerState, steady_delay_samples
from server.wire import Audio, Codes
from server.wire_messages import KIND_PCM
from server.wire_opus import Packets
from server.wire_settings import StreamSettings

Float32Array = npt.NDArray[np.float32]

WIRE_DTYPES: Final[dict[str, np.dtype[Any]]] = {"s16le": np.dtype("<i2"), "f32le": np.dtype("<f4"), "mulaw": np.dtype("u1")}
FRAME_S: Final = 0.08
OPUS_FRAME_BYTES: Final = 1_024
"""What 80 ms of Opus count for, whatever they hold: their size says nothing of the work."""
_MULAW_BIAS: Final = 132
_MULAW_LARGEST: Final = 32_635


def _mulaw_values() -> npt.NDArray[np.int16]:
    """Tabulate ITU-T G.711: the 16-bit value of each of the 256 bytes."""
    inverted = ~np.arange(256, dtype=np.uint8)
    exponent = ((inverted >> 4) & 7).astype(np.int32)
    mantissa = (inverted & 15).astype(np.int32)
    magnitude = (((mantissa << 3) + _MULAW_BIAS) << exponent) - _MULAW_BIAS
    return np.where(inverted & 0x80, -magnitude, magnitude).astype(np.int16)


_MULAW_VALUES: Final = _mulaw_values()


def mulaw_decode(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """Expand G.711 mu-law bytes to int16."""
    return _MULAW_VALUES[data]


def mulaw_encode(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
    """Compress int16 to G.711 mu-law bytes; :func:`mulaw_decode` of the result is within the step of its segment."""
    wide = samples.astype(np.int32)
    magnitude = np.minimum(np.abs(wide), _MULAW_LARGEST) + _MULAW_BIAS
    exponent = np.maximum(np.frexp(magnitude)[1] - 8, 0)
    mantissa = (magnitude >> (exponent + 3)) & 15
    return np.asarray(~((wide < 0) * 0x80 | exponent << 4 | mantissa) & 0xFF, np.uint8)


def frame_bytes(settings: StreamSettings) -> int:
    """Count the bytes that a client sends for one frame: codes, or 80 ms of audio rounded up to a whole sample."""
    if settings.mode == "decode":
        return 2 * settings.levels
    if settings.is_opus:
        return OPUS_FRAME_BYTES
    samples = -(-settings.sample_rate * 2 // 25)
    return int(samples * settings.channels * WIRE_DTYPES[settings.format].itemsize)


def audio_seconds(event: Audio | Packets | Codes, settings: StreamSettings) -> float:
    """Tell how much real time a message stands for."""
    if isinstance(event, Codes):
        return len(event.frames) * FRAME_S
    if isinstance(event, Packets):
        return event.samples / OPUS_RATE_HZ
    return len(event.data) / (WIRE_DTYPES[settings.format].itemsize * settings.channels * settings.sample_rate)


def waiting_bytes(event: Audio | Packets | Codes, size_bytes: int) -> int:
    """Count what a message takes of a stream's credit: bytes, or with Opus frames, as :func:`frame_bytes` counts them."""
    if not isinstance(event, Packets):
        return size_bytes
    return round(event.samples / (FRAME_S * OPUS_RATE_HZ) * OPUS_FRAME_BYTES)


class AudioIntake:
    """One stream's bytes in, 24 kHz mono float32 out; a sample may be split over any number of chunks."""

    def __init__(self, settings: StreamSettings) -> None:
        self._format = settings.format
        self._channels = settings.channels
        self._sample_bytes = WIRE_DTYPES[settings.format].itemsize * settings.channels
        self._pcm = PcmIntake(CODEC_RATE_HZ, settings.channels, "float32" if settings.format == "f32le" else "int16")
        self._resampler = Resampler(settings.sample_rate, CODEC_RATE_HZ)
        self._split = b""
        self.received_samples = 0
        """Samples per channel taken in, at the client's rate."""

    @property
    def position(self) -> int:
        """Where the client goes on after a lost connection."""
        return self.received_samples

    def push(self, data: bytes) -> Float32Array:
        """Take in bytes and return the samples that are ready, which may be none.

        Raises:
            NonFiniteInputError: NaN or infinity in ``f32le``.

        """
        data = self._split + data
        whole = len(data) - len(data) % self._sample_bytes
        samples = self._samples(data[:whole])
        ready = self._resampler.push(self._pcm.push(samples))
        self._split = data[whole:]
        self.received_samples += len(samples)
        return ready

    def flush(self) -> Float32Array:
        """Return what the resampler held back.

        Raises:
            PayloadError: the bytes since the last whole sample are no whole sample.

        """
        if self._split:
            raise PayloadError(
                "audio", found=f"{len(self._split)} bytes of a split sample at the end", expected="whole samples"
            )
        self._pcm.flush()
        return self._resampler.flush()

    def drop_split_sample(self) -> None:
        """Forget the bytes of a sample whose rest never came."""
        self._split = b""

    def state(self) -> ResamplerState:
        """Return what another intake needs to go on after the last whole sample; ``received_samples`` comes on top."""
        return self._resampler.state()

    def restore(self, state: ResamplerState, received_samples: int) -> None:
        """Go on where another intake of the same settings was."""
        self._resampler.restore(state)
        self.received_samples = received_samples

    def _samples(self, data: bytes) -> npt.NDArray[Any]:
        samples = np.frombuffer(data, WIRE_DTYPES[self._format])
        if self._format == "mulaw":
            samples = mulaw_decode(samples)
        samples = samples.astype(samples.dtype.newbyteorder("="), copy=False)
        return np.asarray(samples.reshape(-1, self._channels) if self._channels > 1 else samples)


class AudioOutlet:
    """One stream's 24 kHz mono float32 in, bytes of the agreed format and rate out.

    At another rate than 24 kHz each push returns what was pushed so far, less a fixed delay and what was returned before: the
    pieces are the same however often the stream moves to another outlet.
    """

    kind: Final = KIND_PCM
    width: Final = 1
    """Of the header of what is handed out: the channels."""

    def __init__(self, settings: StreamSettings) -> None:
        self._format = settings.format
        self._rate_hz = settings.sample_rate
        self._resampler = Resampler(CODEC_RATE_HZ, settings.sample_rate)
        self._delay_samples = steady_delay_samples(CODEC_RATE_HZ, settings.sample_rate)
        self.sent_samples = 0
        """Samples handed out, at the client's rate."""

    def push(self, pcm: Float32Array) -> bytes:
        """Return the bytes that are due."""
        pushed = self._resampler.pushed_samples + len(pcm)
        due = pushed * self._rate_hz // CODEC_RATE_HZ - self._delay_samples - self._resampler.taken_samples
        return self._bytes(self._resampler.push(pcm, due))

    def flush(self) -> bytes:
        """Return what is left; the next push begins a new stream."""
        return self._bytes(self._resampler.flush())

    def state(self) -> ResamplerState:
        """Return what another outlet needs to go on; ``sent_samples`` comes on top."""
        return self._resampler.state()

    def restore(self, state: ResamplerState, sent_samples: int) -> None:
        """Go on where another outlet of the same settings was."""
        self._resampler.restore(state)
        self.sent_samples = sent_samples

    def _bytes(self, pcm: Float32Array) -> bytes:
        self.sent_samples += len(pcm)
        if self._format == "f32le":
            return pcm.astype("<f4").tobytes()
        integers = to_int16(pcm)
        return mulaw_encode(integers).tobytes() if self._format == "mulaw" else integers.astype("<i2").tobytes()
