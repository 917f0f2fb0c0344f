"""The message ``ready``: what was agreed, what the model is, and where the stream stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from codec_core.model import ModelInfo
from codec_core.talk import held_back_frames
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


@dataclass(frozen=True)
class Outlook:
    """Where a stream comes from, and what may become of it."""

    resumed: bool
    reprimed: bool
    """Whether its resamplers had to be primed anew."""
    token: str | None
    """With which it can be resumed, where streams can."""
    is_saved: bool
    """Whether checkpoints of it are made."""

    def fields(self, settings: Settings, *, resampled: bool) -> dict[str, object]:
        """Return those of the fields ``resumed``, ``resampler``, ``resume_token`` and so on that are told."""
        told: dict[str, object] = {"resumed": self.resumed}
        if self.resumed and resampled:
            told["resampler"] = "reprimed" if self.reprimed else "continued"
        if self.token is not None:
            told |= {"resume_token": self.token, "resume_grace_ms": settings.resume_grace_ms}
        if self.token is not None and self.is_saved:
            told["checkpoint_interval_ms"] = settings.checkpoint_interval_ms
        return told


def ready_text(stream: LiveStream, info: ModelInfo, settings: Settings, outlook: Outlook) -> str:
    """Make the message for a stream at rest.

    Args:
        stream: the stream; where it stands is read off its session.
        info: the model.
        settings: the service's.
        outlook: what the client is told about resuming.

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
        **_language_facts(stream),
        credit_frames=settings.credit_frames,
        delay_samples=(1 + _held_back(stream)) * info.frame_samples,
        limits={name: getattr(settings, name) for name in LIMITS},
        epoch=counters.epoch,
        position=stream.session.position,
        next_sequence=max(counters.sequence, _next_after(stream)),
        flushes=counters.flushes,
        **outlook.fields(settings, resampled=stream.session.settings.sample_rate != info.sample_rate_hz),
    )


def _language_facts(stream: LiveStream) -> dict[str, object]:
    """Say which language model it is that talks, where one does."""
    if stream.session.talker is None:
        return {}
    info = stream.session.talker.info
    names = ("name", "sha256", "weight_class", "user_levels", "own_levels")
    return {"language_model": {name: getattr(info, name) for name in names}}


def _held_back(stream: LiveStream) -> int:
    return 0 if stream.session.talker is None else held_back_frames(stream.session.talker.info)


def _next_after(stream: LiveStream) -> int:
    """Where a stream goes back to a snapshot, the first frame that is new to the client is later than the next computed."""
    epoch, sequence = stream.newest_sent
    return sequence + 1 if epoch == stream.session.counters.epoch else 0
