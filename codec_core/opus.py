"""Opus by the package ``av``, which the extra ``opus`` of this distribution installs: packets to sound, and back.

Of FFmpeg, which comes with that package, only the two sides of libopus are used; containers are :mod:`codec_core.ogg`'s, so
that nobody's bytes reach any other part of it.
"""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import OpusDataError, UnavailableError
from codec_core.opus_packets import OPUS_RATE_HZ, OpusHead, OpusPacket, parse_head

Float32Array = npt.NDArray[np.float32]

REMEDY: Final = "the extra opus: pip install 'mimi-server[opus]'"
PACKET_MS: Final = 80
"""One packet for each frame of the codec."""
BIT_RATE: Final = 32_000
"""Bits per second; wideband speech is close to transparent there, and the codec's own sound leaves less to keep."""
_COMPLEXITY: Final = 5
"""Of 0 .. 10: a third of the time of 10, for the same sound to within what is heard at this rate."""
_DECIBEL_Q8: Final = 20 * 256


def is_installed() -> bool:
    """Say whether the package is there, without loading it."""
    return importlib.util.find_spec("av") is not None


def _av() -> Any:
    try:
        import av  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as cause:
        raise UnavailableError("Opus: av", "not installed", REMEDY) from cause
    return av


class OpusDecoder:
    """Decodes one stream after another to mono at 48 kHz; stereo is mixed. Not for use by two threads at once."""

    def __init__(self) -> None:
        """Find the decoder.

        Raises:
            UnavailableError: the package is not installed.

        """
        self._av = _av()
        self._codec = self._new()

    def _new(self) -> Any:
        codec = self._av.CodecContext.create("libopus", "r")
        codec.layout, codec.sample_rate = "mono", OPUS_RATE_HZ
        codec.options = {"request_sample_fmt": "flt"}
        return codec

    def decode(self, packet: OpusPacket) -> Float32Array:
        """Decode a packet and return those of its samples that are audio.

        Raises:
            OpusDataError: the decoder refuses it, or makes another length of it than it says.

        """
        if packet.begins:
            self._codec = self._new()
        try:
            pieces = [frame.to_ndarray().reshape(-1) for frame in self._codec.decode(self._av.Packet(packet.data))]
        except self._av.FFmpegError as cause:
            raise OpusDataError("Opus packet", f"{len(packet.data)} damaged bytes", "an Opus packet") from cause
        pcm = np.concatenate([np.empty(0, np.float32), *pieces])
        if len(pcm) != packet.samples:
            raise OpusDataError("Opus packet", f"{len(pcm)} samples", f"{packet.samples}, as it says")
        audio = np.asarray(pcm[packet.first : packet.stop], np.float32)
        return audio * np.float32(10 ** (packet.gain_q8 / _DECIBEL_Q8)) if packet.gain_q8 else audio


class OpusEncoder:
    """Encodes one stream, mono, in packets of 80 ms. Not for use by two threads at once.

    Args:
        sample_rate_hz: of the sound, 24000 or 48000.

    """

    def __init__(self, sample_rate_hz: int = 24_000) -> None:
        """Open the encoder.

        Raises:
            UnavailableError: the package is not installed.

        """
        self._av = _av()
        self._codec = codec = self._av.CodecContext.create("libopus", "w")
        codec.sample_rate, codec.layout, codec.format, codec.bit_rate = sample_rate_hz, "mono", "flt", BIT_RATE
        codec.options = {"application": "audio", "frame_duration": str(PACKET_MS), "compression_level": str(_COMPLEXITY)}
        codec.time_base = Fraction(1, sample_rate_hz)
        codec.open()
        self.sample_rate_hz = sample_rate_hz
        self.packet_samples = sample_rate_hz * PACKET_MS // 1000
        """Samples of a packet, at the rate of the sound."""
        self.head: OpusHead = parse_head(bytes(codec.extradata))
        self._encoded_samples = 0

    def encode(self, pcm: Float32Array) -> bytes:
        """Encode float32 ``[packet_samples]`` into one packet."""
        frame = self._av.AudioFrame.from_ndarray(np.ascontiguousarray(pcm[None], np.float32), "flt", "mono")
        frame.sample_rate, frame.pts = self.sample_rate_hz, self._encoded_samples
        self._encoded_samples += len(pcm)
        packets = self._codec.encode(frame)
        return b"".join(bytes(packet) for packet in packets)
