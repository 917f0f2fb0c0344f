from __future__ import annotations

import json

import numpy as np
import pytest

from codec_core.client.opus_sound import OpusSender
from codec_core.errors import OpusDataError
from codec_core.ogg import OggOpusWriter
from codec_core.opus_packets import OpusHead
from server.errors import PayloadError
from server.wire import Flush, Reset, ServerWire
from server.wire_opus import MESSAGE_MOST_PACKETS, MESSAGE_MOST_S, Packets
from server.wire_settings import Offer

OFFER = Offer(
    default_levels=8, max_levels=8, codebook_entries=32, frame_samples=1920, sample_rate_hz=24000, numerics="kyutai", opus=True
)
LONGEST = b"\x1b\x02"  # 120 ms


def wire_of(form: str, max_message_bytes: int = 65_536) -> ServerWire:
    wire = ServerWire(OFFER, max_message_bytes)
    wire.receive_query([("format", form)])
    return wire


def flush(wire: ServerWire, kind: str = "flush") -> object:
    return wire.receive_text(json.dumps({"type": kind}))


def pages(frames: int = 3) -> list[bytes]:
    sender = OpusSender(in_pages=True, sample_rate_hz=24_000)
    return [one.data for one in sender.push(np.zeros(1920 * frames, np.float32))]


def test_a_message_is_a_packet_and_a_flush_ends_the_stream():
    wire = wire_of("opus-packets")
    events = [wire.receive_binary(LONGEST), wire.receive_binary(LONGEST), flush(wire), wire.receive_binary(LONGEST)]
    packets = [event.packets[0] for event in events if isinstance(event, Packets)]
    assert [(one.first, one.begins) for one in packets] == [(312, True), (0, False), (312, True)]
    assert isinstance(events[2], Flush)


def test_pages_may_be_cut_anywhere_but_by_a_flush():
    wire, data = wire_of("opus"), b"".join(pages())
    first, second = wire.receive_binary(data[:300]), wire.receive_binary(data[300:])
    assert isinstance(first, Packets)
    assert isinstance(second, Packets)
    assert first.samples + second.samples == 3 * 3840
    assert isinstance(flush(wire), Flush)
    wire.receive_binary(b"Ogg")
    with pytest.raises(OpusDataError, match="before a flush"):
        flush(wire)


def test_a_reset_begins_anew():
    wire = wire_of("opus")
    for _ in range(2):
        wire.receive_binary(pages()[0] + b"OggS")
        assert isinstance(flush(wire, "reset"), Reset)


def test_the_next_connection_goes_on_behind_a_page():
    first, all_pages = wire_of("opus"), pages()
    event = first.receive_binary(all_pages[0] + all_pages[1][:20])
    assert isinstance(event, Packets)
    second = ServerWire(OFFER, 65_536)
    assert first.settings is not None
    second.go_on(first.settings, event.place)
    following = second.receive_binary(all_pages[1])
    assert isinstance(following, Packets)
    assert (following.samples, following.packets[0].begins) == (3840, False)


def test_a_message_is_bounded_in_time():
    writer = OggOpusWriter(OpusHead(1, 0), 24_000, 1)
    page_s = 0.12
    data = b"".join(writer.page(LONGEST) for _ in range(int(MESSAGE_MOST_S / page_s) + 1))
    with pytest.raises(PayloadError, match="at most 60 s"):
        wire_of("opus").receive_binary(data)


def test_a_message_is_bounded_in_packets():
    """Pages of the shortest packets there are, one byte for 2.5 ms: reading them off would hold up everybody else."""
    shortest = bytes([16 << 3])
    writer = OggOpusWriter(OpusHead(1, 0), 24_000, 1)
    data = writer.header() + b"".join(writer.page(shortest) for _ in range(MESSAGE_MOST_PACKETS + 1))
    with pytest.raises(PayloadError, match="3001 packets in one message"):
        wire_of("opus", len(data)).receive_binary(data)
