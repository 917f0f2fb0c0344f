"""The message ``ready``: what was agreed, what the model is, and where the stream stands."""

from __future__ import annotations

from dataclasses import asdict

from codec_core.model import ModelInfo
from server.live_stream import LiveStream
from server.settings import Settings
from server.wire_messages import PROTOCOL_VERSION, server_text

LIMITS = (
    "max_message_bytes",
    "idle_timeout_ms",
    "session_timeout_ms",
    "send_timeout_ms",
    "lag_limit_ms",
    "max_pace",
    "replay_window_frames",
    "replay_window_bytes",
)


def ready_text(stream: LiveStream, info: ModelInfo, settings: Settings, **resume: object) -> str:
    """Make the message for a stream at rest.

    Args:
        stream: the stream; where it stands is read off its session.
        info: the model.
        settings: the service's.
        resume: those of the fields ``resumed``, ``resampler``, ``resume_token``, ``resume_grace_ms`` and
            ``checkpoint_interval_ms`` that are told.

    """
    counters = stream.session.counters
    return server_text(
        "ready",
        protocol=PROTOCOL_VERSION,
        session=stream.lineage.stream_id,
        model={"name": info.name, "sha256": info.sha256, "weight_class": info.weight_class, "numerics": info.numerics},
        settings=asdict(stream.session.settings),
        codec={
            "sample_rate": info.sample_rate_hz,
            "frame_samples": info.frame_samples,
            "frame_rate": info.frame_rate_hz,
            "codebook_entries": info.codebook_entries,
        },
        credit_frames=settings.credit_frames,
        delay_samples=info.frame_samples,
        limits={name: getattr(settings, name) for name in LIMITS},
        epoch=counters.epoch,
        position=stream.session.position,
        next_sequence=max(counters.sequence, _next_after(stream)),
        flushes=counters.flushes,
        **resume,
    )


def _next_after(stream: LiveStream) -> int:
    """Where a stream goes back to a snapshot, the first frame that is new to the client is later than the next computed."""
    epoch, sequence = stream.newest_sent
    return sequence + 1 if epoch == stream.session.counters.epoch else 0
