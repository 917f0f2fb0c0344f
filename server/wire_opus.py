"""Opus under ``mimi.v1``: binary messages of the client become packets, bounded in time. Sans-IO, standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from codec_core.errors import OpusDataError
from codec_core.ogg import OggOpusReader, OggPlace
from codec_core.opus_packets import OPUS_RATE_HZ, OpusPacket, PacketReader, PacketReaderPlace
from server.errors import PayloadError
from server.wire_settings import StreamSettings

MESSAGE_MOST_S: Final = 60
"""Most time that one message may stand for."""
MESSAGE_MOST_PACKETS: Final = 3_000
"""Most packets in one message, of 20 ms those of that time. They are read off on the event loop, a microsecond or two each."""
_SLICE_BYTES: Final = 4_096
"""What is read off before it is looked at whether it is too much."""

OpusPlace = OggPlace | PacketReaderPlace


@dataclass(frozen=True)
class Packets:
    """Opus packets, whole, and where their reader stands behind them; ``None`` where that is within a page."""

    packets: tuple[OpusPacket, ...]
    place: OpusPlace | None

    @property
    def samples(self) -> int:
        """What they stand for, at 48 kHz."""
        return sum(packet.samples for packet in self.packets)


class OpusIn:
    """The way in of one connection.

    Args:
        settings: a stream's that takes Opus.
        place: where the connection before stood, of a stream that is resumed.

    """

    def __init__(self, settings: StreamSettings, place: OpusPlace | None = None) -> None:
        self._reader: OggOpusReader | PacketReader
        if settings.format == "opus":
            self._reader = OggOpusReader(place if isinstance(place, OggPlace) else None)
        else:
            self._reader = PacketReader(settings.pre_skip, place if isinstance(place, PacketReaderPlace) else None)

    def take(self, data: bytes) -> Packets:
        """Take a message: bytes of Ogg pages, or one packet.

        Raises:
            OpusDataError: it is neither.
            PayloadError: it stands for too long a time.

        """
        if isinstance(self._reader, PacketReader):
            return Packets(tuple(self._reader.push(data)), self._reader.place)
        packets: list[OpusPacket] = []
        for start in range(0, len(data), _SLICE_BYTES):
            packets += self._reader.push(data[start : start + _SLICE_BYTES])
            _check_length(packets)
        return Packets(tuple(packets), self._reader.place)

    def flush(self) -> None:
        """Let a flush end what packets without a container cannot end themselves.

        Raises:
            OpusDataError: a part of a page or packet came before it.

        """
        if not self._reader.is_whole:
            raise OpusDataError("Ogg page", "a part of one before a flush", "whole pages and packets")
        if isinstance(self._reader, PacketReader):
            self._reader.restart()

    def reset(self) -> None:
        """Begin anew."""
        self._reader.restart()


def _check_length(packets: list[OpusPacket]) -> None:
    samples = sum(packet.samples for packet in packets)
    if samples > MESSAGE_MOST_S * OPUS_RATE_HZ:
        found = f"{samples // OPUS_RATE_HZ} s of audio in one message"
        raise PayloadError("audio", found=found, expected=f"at most {MESSAGE_MOST_S} s")
    if len(packets) > MESSAGE_MOST_PACKETS:
        found = f"{len(packets)} packets in one message"
        raise PayloadError("audio", found=found, expected=f"at most {MESSAGE_MOST_PACKETS}")
