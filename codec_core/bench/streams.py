"""Streams in the state of a long-running one, ready to be stepped: what every figure is measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from codec_core.model import CodecModel
from codec_core.session import DecoderSession, EncoderSession

STEPS_PER_FRAME: Final = 2
MARGIN_FRAMES: Final = 5
"""Frames beyond those that fill the attention context."""

Float32Array = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Progress = Callable[[int, int], None]


def warm_up_frames(context_steps: int) -> int:
    """Return how many frames fill the attention context, so that every later frame does all the work there is."""
    return -(-context_steps // STEPS_PER_FRAME) + MARGIN_FRAMES


def test_signal(frames: int, frame_samples: int) -> Float32Array:
    """Return a gliding tone in noise, float32 [frames, frame_samples]: no frame is like another, none is silent."""
    at_s = np.arange(frames * frame_samples) / 24000
    tone = 0.2 * np.sin(2 * np.pi * (120 + 20 * at_s) * at_s)
    noise = np.random.default_rng(1).standard_normal(len(at_s)) * 0.02
    return (tone + noise).astype(np.float32).reshape(frames, frame_samples)


@dataclass(frozen=True)
class SteadyState:
    """One stream of each direction after its warm-up, and what it was fed: the same whatever instruction set or threads."""

    levels: int
    pcm: Float32Array
    """float32 [frames, frame_samples]"""
    codes: Codes
    """int32 [frames, levels]"""
    encoder: bytes
    decoder: bytes

    @classmethod
    def reach(cls, model: CodecModel, levels: int, progress: Progress, *, most_frames: int | None = None) -> SteadyState:
        """Run a new stream through ``model`` until its attention context is full, or for ``most_frames``, 1 or more."""
        frames = warm_up_frames(model.info.context_steps)
        pcm = test_signal(frames if most_frames is None else min(frames, most_frames), model.info.frame_samples)
        encoder, decoder = model.encoder(levels), model.decoder(levels)
        codes = []
        for done, frame in enumerate(pcm, start=1):
            codes.append(encoder.encode(frame))
            decoder.decode(codes[-1])
            progress(done, len(pcm))
        return cls(levels, pcm, np.stack(codes), encoder.snapshot(), decoder.snapshot())


class Lanes:
    """A batch of duplex streams in steady state; ``step(i)`` of each kind takes another frame for every lane."""

    def __init__(self, model: CodecModel, state: SteadyState, batch: int) -> None:
        """Continue ``state`` in ``batch`` sessions of each direction of ``model``."""
        self._model = model
        self._state = state
        self._lanes = np.arange(batch)
        self.encoders: list[EncoderSession] = [model.restore_encoder(state.encoder) for _ in self._lanes]
        self.decoders: list[DecoderSession] = [model.restore_decoder(state.decoder) for _ in self._lanes]

    def pcm(self, i: int) -> Float32Array:
        """Return what the lanes encode in step ``i``, each another frame: float32 [batch, frame_samples]."""
        return self._state.pcm[(self._lanes + i) % len(self._state.pcm)]

    def codes(self, i: int) -> Codes:
        """Return what the lanes decode in step ``i``: int32 [batch, levels]."""
        return self._state.codes[(self._lanes + i) % len(self._state.codes)]

    def encode(self, i: int) -> None:
        """Encode a frame of every lane."""
        self._model.encode_batch(self.encoders, self.pcm(i))

    def decode(self, i: int) -> None:
        """Decode a frame of every lane."""
        self._model.decode_batch(self.decoders, self.codes(i))

    def duplex(self, i: int) -> None:
        """Encode a frame of every lane and decode one, as a conversation does."""
        self.encode(i)
        self.decode(i)
