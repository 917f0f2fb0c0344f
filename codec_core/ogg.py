"""Ogg pages of one Opus stream after another (RFC 3533, RFC 7845), read and written. Sans-IO, standard library only.

A reader takes bytes in pieces of any length and trusts none of them: what waits is bounded by a page and a packet, pages must
be whole, in order and of one stream at a time. Samples are counted at 48 kHz.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import Final

from codec_core.errors import OpusDataError
from codec_core.opus_packets import PACKET_MOST_BYTES, OpusHead, OpusPacket, pack_head, packet_samples, parse_head

CAPTURE: Final = b"OggS"
PAGE_HEADER: Final = struct.Struct("<4sBBqIIIB")
CONTINUED: Final = 1
BEGINS: Final = 2
ENDS: Final = 4
NO_POSITION: Final = -1
TAGS_MAGIC: Final = b"OpusTags"
VENDOR: Final = b"mimi-server"
_SEGMENT_BYTES: Final = 255
_CRC_AT: Final = 22
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True)
class OggPlace:
    """Where a reader stands between two pages."""

    serial: int | None = None
    """Of the stream; ``None`` before its first page."""
    next_page: int = 0
    head: OpusHead | None = None
    tagged: bool = False
    """Whether the comment header has passed, so that audio follows."""
    partial: bytes = b""
    """The beginning of a packet that ends on a later page."""
    origin: int | None = None
    """Position of the first sample of the stream; ``None`` before its first page of audio."""
    passed_samples: int = 0


@dataclass(frozen=True)
class _Page:
    flags: int
    position: int
    serial: int
    number: int
    segments: bytes
    body: bytes


class OggOpusReader:
    """Bytes in, packets out.

    Args:
        place: where another reader stood; the next page must be the one that follows.

    """

    def __init__(self, place: OggPlace | None = None) -> None:
        self.place = place or OggPlace()
        """Behind the last whole page."""
        self._waiting = b""

    @property
    def is_whole(self) -> bool:
        """Whether no part of a page or of a packet waits for its rest."""
        return not self._waiting and not self.place.partial

    def restart(self) -> None:
        """Begin anew; a first page must follow."""
        self.place, self._waiting = OggPlace(), b""

    def push(self, data: bytes) -> list[OpusPacket]:
        """Take bytes and return the packets of the pages that they complete.

        Raises:
            OpusDataError: they are no Ogg pages, or their pages no Opus stream. The reader is then of no more use.

        """
        data = self._waiting + data
        packets: list[OpusPacket] = []
        start = 0
        while (size := _page_bytes(data, start)) is not None:
            packets += self._take(_page(data[start : start + size]))
            start += size
        self._waiting = data[start:]
        return packets

    def _take(self, page: _Page) -> list[OpusPacket]:
        place = self._entered(page)
        packets, partial = _split(page, place.partial)
        place = replace(place, partial=partial, next_page=(page.number + 1) & 0xFFFFFFFF)
        if place.head is None and packets:
            place = replace(place, head=parse_head(packets.pop(0)))
        if place.head is not None and not place.tagged and packets:
            if not packets.pop(0).startswith(TAGS_MAGIC):
                raise OpusDataError("Ogg stream", "a second packet of another kind", "OpusTags")
            place = replace(place, tagged=True)
        self.place = place
        return self._audio(page, packets) if packets else []

    def _entered(self, page: _Page) -> OggPlace:
        """Check that a page follows the one before it, or begins a stream of its own."""
        if page.flags & BEGINS:
            if page.flags & CONTINUED:
                raise OpusDataError("Ogg page", "a first page that continues a packet", "a first page")
            return OggPlace(serial=page.serial)
        place = self.place
        if place.serial is None:
            raise OpusDataError("Ogg page", "a page in mid-stream", "a first page")
        if page.serial != place.serial or page.number != place.next_page:
            found = f"page {page.number} of stream {page.serial:#x}"
            raise OpusDataError("Ogg page", found, f"page {place.next_page} of {place.serial:#x}, or a first page")
        if bool(page.flags & CONTINUED) != bool(place.partial):
            raise OpusDataError("Ogg page", "a packet torn apart", "pages that follow one another")
        return place

    def _audio(self, page: _Page, packets: list[bytes]) -> list[OpusPacket]:
        place = self.place
        lengths = [packet_samples(packet) for packet in packets]
        on_page, passed = sum(lengths), place.passed_samples
        if page.position < 0:
            raise OpusDataError("Ogg page position", str(page.position), "that of the last packet which ends on the page")
        origin = place.origin
        if origin is None:
            origin = max(0, page.position - on_page) if page.flags & ENDS else page.position - on_page
            if origin < 0:
                raise OpusDataError("Ogg page position", str(page.position), f"at least {on_page}, the samples up to there")
        head = place.head or OpusHead(1, 0)
        # Only a last page may say that less of it is audio than its packets hold.
        end = min(passed + on_page, max(passed, page.position - origin)) if page.flags & ENDS else passed + on_page
        made = []
        for data, samples in zip(packets, lengths, strict=True):
            first = min(samples, max(0, head.pre_skip - passed))
            stop = min(samples, max(first, end - passed))
            made.append(OpusPacket(data, samples, first, stop, begins=passed == 0, gain_q8=head.gain_q8))
            passed += samples
        self.place = OggPlace() if page.flags & ENDS else replace(place, origin=origin, passed_samples=passed)
        return made


class OggOpusWriter:
    """Packets in, pages out: a page a packet, so that each can be sent as it is made.

    Args:
        head: of the stream.
        input_rate_hz: rate of what was encoded, for information.
        serial: names the stream among others of a file.

    """

    def __init__(self, head: OpusHead, input_rate_hz: int, serial: int) -> None:
        self._head = head
        self._serial = serial
        self._number = 0
        tags = TAGS_MAGIC + struct.pack("<I", len(VENDOR)) + VENDOR + struct.pack("<I", 0)
        self._header = self._page(pack_head(head, input_rate_hz), BEGINS, 0) + self._page(tags, 0, 0)
        self._passed_samples = 0

    def header(self) -> bytes:
        """Return the two pages with which the stream begins; empty when they were had before."""
        header, self._header = self._header, b""
        return header

    def page(self, packet: bytes, *, end_samples: int | None = None) -> bytes:
        """Make the page of a packet, after the header where that was not had.

        Args:
            packet: the packet.
            end_samples: only of the last: samples of the whole stream that are audio, those of the pre-skip left out.

        """
        self._passed_samples += packet_samples(packet)
        if end_samples is None:
            return self.header() + self._page(packet, 0, self._passed_samples)
        return self.header() + self._page(packet, ENDS, self._head.pre_skip + end_samples)

    def _page(self, packet: bytes, flags: int, position: int) -> bytes:
        segments = bytes([_SEGMENT_BYTES] * (len(packet) // _SEGMENT_BYTES)) + bytes([len(packet) % _SEGMENT_BYTES])
        header = PAGE_HEADER.pack(CAPTURE, 0, flags, position, self._serial, self._number, 0, len(segments))
        self._number += 1
        page = header + segments + packet
        return page[:_CRC_AT] + struct.pack("<I", page_crc(page)) + page[_CRC_AT + 4 :]


def page_crc(page: bytes) -> int:
    """Compute the checksum of a page whose own checksum is zero.

    It is the polynomial of zlib's, most significant bit first: zlib's of the reversed bits, reversed.
    """
    crc = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int.from_bytes(crc.to_bytes(4, "little").translate(_REVERSED), "big")


def _page_bytes(data: bytes, start: int) -> int | None:
    """Find the length of the page that begins here; ``None`` where it is not all there."""
    if not CAPTURE.startswith(data[start : start + 4]) and data[start : start + 4] != CAPTURE:
        raise OpusDataError("Ogg page", ascii(data[start : start + 4]), "OggS, where a page begins")
    if len(data) - start < PAGE_HEADER.size:
        return None
    segments_at = start + PAGE_HEADER.size
    count = data[segments_at - 1]
    if len(data) < segments_at + count:
        return None
    size = PAGE_HEADER.size + count + sum(data[segments_at : segments_at + count])
    return size if len(data) - start >= size else None


def _page(data: bytes) -> _Page:
    _, version, flags, position, serial, number, crc, count = PAGE_HEADER.unpack_from(data)
    if version:
        raise OpusDataError("Ogg page version", str(version), "0")
    if page_crc(data[:_CRC_AT] + bytes(4) + data[_CRC_AT + 4 :]) != crc:
        raise OpusDataError("Ogg page checksum", f"{crc:#x}", "that of the page: it is damaged")
    segments_at = PAGE_HEADER.size
    return _Page(flags, position, serial, number, data[segments_at : segments_at + count], data[segments_at + count :])


def _split(page: _Page, partial: bytes) -> tuple[list[bytes], bytes]:
    """Cut a page into the packets that end on it, and the beginning of the one that does not."""
    packets, packet, start = [], partial, 0
    for size in page.segments:
        packet += page.body[start : start + size]
        start += size
        if len(packet) > PACKET_MOST_BYTES:
            raise OpusDataError("Ogg packet", f"more than {PACKET_MOST_BYTES} bytes", "packets and tags within that")
        if size < _SEGMENT_BYTES:
            packets.append(packet)
            packet = b""
    return packets, packet
