"""What an Opus packet says of itself before anybody decodes it (RFC 6716), and the header of its stream (RFC 7845).

Standard library only. A packet's length in time is read off its first bytes, so that who takes packets from strangers knows
what they cost before a decoder sees them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from codec_core.errors import OpusDataError

OPUS_RATE_HZ: Final = 48_000
"""Opus' own clock: positions and lengths are counted in it, whatever rate an encoder was given."""
PACKET_MOST_SAMPLES: Final = 5_760
"""120 ms, the longest packet there is."""
PACKET_MOST_BYTES: Final = 61_440
"""More than 48 frames of 1275 bytes, the largest packet there is, with its lengths."""
PRE_SKIP_MOST_SAMPLES: Final = 48_000
HEAD_MAGIC: Final = b"OpusHead"
_HEAD: Final = struct.Struct("<8sBBHIhB")
_CELT_FRAMES_SAMPLES: Final = (120, 240, 480, 960)
_HYBRID_FRAMES_SAMPLES: Final = (480, 960)
_SILK_FRAMES_SAMPLES: Final = (480, 960, 1920, 2880)
_SPLIT_MOST_BYTES: Final = 1_275


class OpusHead(NamedTuple):
    """The header packet of a stream of at most two channels."""

    channels: int
    pre_skip: int
    """Samples at 48 kHz that the encoder puts before the audio, to be dropped."""
    gain_q8: int = 0
    """Gain to be applied, in 1/256 dB."""


class OpusPacket(NamedTuple):
    """A packet, and which of its samples are audio. Samples are at 48 kHz."""

    data: bytes
    samples: int
    """Length of the whole packet."""
    first: int
    """The first sample that is audio: those before it are the encoder's."""
    stop: int
    """Behind the last sample that is audio; not below ``first``."""
    begins: bool
    """Whether it begins a stream: its decoder is a new one."""
    gain_q8: int = 0


def parse_head(packet: bytes) -> OpusHead:
    """Read the header packet.

    Raises:
        OpusDataError: it is none, or describes more than two channels.

    """
    if len(packet) < _HEAD.size or not packet.startswith(HEAD_MAGIC):
        raise OpusDataError("Opus header", f"{len(packet)} bytes", "a packet that begins with OpusHead")
    _, version, channels, pre_skip, _, gain_q8, family = _HEAD.unpack_from(packet)
    if version >> 4:
        raise OpusDataError("Opus header version", str(version), "below 16")
    if channels not in (1, 2) or family:
        raise OpusDataError("Opus header", f"{channels} channels of mapping family {family}", "1 or 2 of family 0")
    if pre_skip > PRE_SKIP_MOST_SAMPLES:
        raise OpusDataError("Opus header pre-skip", str(pre_skip), f"at most {PRE_SKIP_MOST_SAMPLES}")
    return OpusHead(channels, pre_skip, gain_q8)


def pack_head(head: OpusHead, input_rate_hz: int) -> bytes:
    """Make the header packet; the rate is told for information only."""
    return _HEAD.pack(HEAD_MAGIC, 1, head.channels, head.pre_skip, input_rate_hz, head.gain_q8, 0)


def packet_samples(packet: bytes) -> int:
    """Read off how long a packet is, in samples at 48 kHz.

    Raises:
        OpusDataError: it is empty, too large, longer than 120 ms, or its parts cannot be of its size.

    """
    if not 1 <= len(packet) <= PACKET_MOST_BYTES:
        raise OpusDataError("Opus packet", f"{len(packet)} bytes", f"1 .. {PACKET_MOST_BYTES}")
    form = packet[0] & 3
    count = (1, 2, 2, 0)[form]
    if form == 3:
        count = packet[1] & 63 if len(packet) > 1 else 0
        if count == 0:
            raise OpusDataError("Opus packet", "no frames", "1 .. 48")
    size = len(packet) - 1
    if (form == 1 and size % 2) or (form < 2 and size > count * _SPLIT_MOST_BYTES):
        raise OpusDataError("Opus packet", f"{len(packet)} bytes", f"{count} frames of one size, each at most 1275 bytes")
    samples = count * _frame_samples(packet[0] >> 3)
    if samples > PACKET_MOST_SAMPLES:
        raise OpusDataError("Opus packet", f"{samples // 48} ms", "at most 120 ms")
    return samples


def _frame_samples(configuration: int) -> int:
    if configuration >= 16:
        return _CELT_FRAMES_SAMPLES[configuration & 3]
    if configuration >= 12:
        return _HYBRID_FRAMES_SAMPLES[configuration & 1]
    return _SILK_FRAMES_SAMPLES[configuration & 3]


class PacketReaderPlace(NamedTuple):
    """Where a :class:`PacketReader` stands."""

    passed_samples: int = 0


class PacketReader:
    """Raw packets, one at a time, without a container: what is known of the stream is told beforehand.

    Args:
        pre_skip: samples at 48 kHz to be dropped at the start of each stream.
        place: where another reader of the same settings stood.

    """

    is_whole: Final = True
    """A packet comes whole or not at all."""

    def __init__(self, pre_skip: int, place: PacketReaderPlace | None = None) -> None:
        self._pre_skip = pre_skip
        self.place = place or PacketReaderPlace()

    def push(self, packet: bytes) -> list[OpusPacket]:
        """Take a packet.

        Raises:
            OpusDataError: it is none; the reader is as before.

        """
        samples, passed = packet_samples(packet), self.place.passed_samples
        first = min(samples, max(0, self._pre_skip - passed))
        self.place = PacketReaderPlace(passed + samples)
        return [OpusPacket(packet, samples, first, samples, begins=passed == 0)]

    def restart(self) -> None:
        """Begin a new stream with the next packet."""
        self.place = PacketReaderPlace()
