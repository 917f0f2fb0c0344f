from __future__ import annotations

import pytest

from codec_core.errors import OpusDataError
from codec_core.opus_packets import OpusHead, PacketReader, pack_head, packet_samples, parse_head

# RFC 6716, table 2: the frame sizes of each of the 32 configurations, in ms.
FRAME_MS = [*[10, 20, 40, 60] * 3, *[10, 20] * 2, *[2.5, 5, 10, 20] * 4]


@pytest.mark.parametrize("configuration", range(32))
def test_a_packet_says_how_long_it_is(configuration):
    samples = int(FRAME_MS[configuration] * 48)
    toc = configuration << 3
    assert packet_samples(bytes([toc])) == samples
    assert packet_samples(bytes([toc | 1, 5, 5])) == 2 * samples
    assert packet_samples(bytes([toc | 2, 1, 5, 5])) == 2 * samples
    most = 5760 // samples
    assert packet_samples(bytes([toc | 3, most, *[5] * most])) == most * samples
    if most < 48:
        with pytest.raises(OpusDataError, match="at most 120 ms"):
            packet_samples(bytes([toc | 3, most + 1]))


@pytest.mark.parametrize("packet", [b"", bytes(61_441), b"\x03", b"\x03\x00", b"\x01\x00\x00\x00\x01", bytes(2000)])
def test_what_is_no_packet_is_refused(packet):
    if packet == b"\x01\x00\x00\x00\x01":
        assert packet_samples(packet) == 960
        packet = packet[:-1]
    with pytest.raises(OpusDataError, match=r"Opus packet: found .+, expected ."):
        packet_samples(packet)


def test_a_header_comes_back_as_it_was_made():
    head = OpusHead(2, 312, -256)
    assert parse_head(pack_head(head, 24_000)) == head


@pytest.mark.parametrize("damage", [(8, 0x10), (9, 0), (9, 3), (18, 1), (0, 0)], ids=str)
def test_a_header_of_another_kind_is_refused(damage):
    packet = bytearray(pack_head(OpusHead(1, 312), 24_000))
    packet[damage[0]] = damage[1]
    with pytest.raises(OpusDataError, match="Opus header"):
        parse_head(bytes(packet))
    with pytest.raises(OpusDataError, match="Opus header"):
        parse_head(bytes(packet)[:12])


def test_the_pre_skip_is_dropped_once_a_stream():
    reader = PacketReader(1200)
    packet = bytes([0x08])  # 20 ms
    told = [(one.first, one.stop, one.begins) for _ in range(3) for one in reader.push(packet)]
    assert told == [(960, 960, True), (240, 960, False), (0, 960, False)]
    place = reader.place
    assert PacketReader(1200, place).push(packet)[0].first == 0
    reader.restart()
    assert reader.push(packet)[0].begins
