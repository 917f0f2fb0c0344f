from __future__ import annotations

from codec_core.client import StreamSettings
from codec_core.client.messages import Ready
from codec_core.client.observation import observe
from codec_core.client.protocol import StreamProtocol


def test_stats_are_in_time_whatever_the_input_is_counted_in(wire):
    for settings, unit_bytes, units in ((StreamSettings(levels=2), 2, 2400), (StreamSettings("decode", levels=2), 4, 5)):
        protocol = StreamProtocol(settings, resume=True, max_held_bytes=1 << 20)
        assert isinstance(protocol.receive(wire.ready(), 0.0), Ready)
        protocol.outbox.append(bytes(unit_bytes * units))
        unsent = observe(protocol, 3)
        assert unsent.unsent_ms == (100 if settings.mode == "encode" else 400)
        assert (unsent.waiting_frames, unsent.lag_ms, unsent.latency_ms["p50"]) == (3, 0, None)
        entry = protocol.outbox.peek(1 << 20)
        assert entry is not None
        protocol.sent(entry, 1.0)
        sent = observe(protocol, 0)
        assert (sent.unsent_ms, sent.lag_ms) == (0, 80 if settings.mode == "encode" else 400)
        protocol.receive(wire.codes(0, 1, 2), 1.25)
        assert observe(protocol, 0).latency_ms == {"p50": 250, "p95": 250, "p99": 250, "max": 250}
