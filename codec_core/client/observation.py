"""What a stream tells about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from codec_core.client.protocol import CODEC_FRAMES_PER_S, StreamProtocol

NoticeKind = Literal["warning", "goaway", "lost", "resumed"]
_PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


@dataclass(frozen=True)
class Notice:
    """Something that happened on the line and that no call reports."""

    kind: NoticeKind
    text: str


@dataclass(frozen=True)
class StreamStats:
    """Where a stream stands. Frames are counted since the start or the last reset."""

    sent_frames: float
    answered_frames: int
    lag_ms: float
    """Whole frames that were sent and are not answered, in time."""
    unsent_ms: float
    """Input that waits to be sent, in time."""
    waiting_frames: int
    """Answers that wait to be read."""
    latency_ms: dict[str, float | None]
    """``p50``, ``p95``, ``p99``, ``max`` of the last two thousand frames, from sending a frame's last input to its answer."""
    resumes: int
    repeated_frames: int
    """Answers that came again after a resume, and were dropped."""


def observe(protocol: StreamProtocol, waiting_frames: int) -> StreamStats:
    """Put together what the parts of a stream know."""
    meter, outbox = protocol.meter, protocol.outbox
    return StreamStats(
        sent_frames=meter.sent_frames,
        answered_frames=meter.answered_frames,
        lag_ms=meter.lag_frames * 1000 / CODEC_FRAMES_PER_S,
        unsent_ms=outbox.unsent_bytes / outbox.unit_bytes * 1000 / protocol.units_per_s,
        waiting_frames=waiting_frames,
        latency_ms={name: meter.percentile_ms(percent) for name, percent in _PERCENTILES.items()},
        resumes=protocol.resumes,
        repeated_frames=protocol.repeated_frames,
    )
