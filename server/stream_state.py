"""Everything that a stream is, apart from its connection: what :class:`~server.stream_session.StreamSession` can start from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from server.resampling import ResamplerState
from server.wire_settings import StreamSettings


def _unheard() -> ResamplerState:
    return ResamplerState(0, 0, np.zeros(0, np.float32))


@dataclass
class StreamCounters:
    """Where a stream stands. All but ``epoch`` and ``frames`` start again at a reset."""

    epoch: int = 0
    frames: int = 0
    """Answered since the stream was opened."""
    epoch_frames: int = 0
    sequence: int = 0
    """Of the next answer."""
    padded_samples: int = 0
    flushes: int = 0
    received_samples: int = 0
    sent_samples: int = 0
    clipping_told: int = 0


@dataclass(frozen=True)
class StreamState:
    """A stream between two of its frames.

    ``pending`` are samples at 24 kHz that fill no frame yet; ``encoder``, ``decoder`` and ``language`` are snapshots of the
    models' sessions, empty where the mode has none; ``text_pending`` are bytes of a letter that is not complete. An audio
    sample of which only some bytes have come is not part of it.
    """

    settings: StreamSettings
    counters: StreamCounters = field(default_factory=StreamCounters)
    pending: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    intake: ResamplerState = field(default_factory=_unheard)
    outlet: ResamplerState = field(default_factory=_unheard)
    encoder: bytes = b""
    decoder: bytes = b""
    language: bytes = b""
    text_pending: bytes = b""

    @property
    def position(self) -> int:
        """Input of this epoch that the state has taken in: samples per channel at the client's rate, or frames of codes."""
        counters = self.counters
        return counters.epoch_frames if self.settings.mode == "decode" else counters.received_samples
