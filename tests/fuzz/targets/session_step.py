"""Samples and codes through the engine's step, two lanes at once: as ``fuzz_session_step.cc``, which libFuzzer runs.

Input: a byte that chooses direction and numerics, one for the levels; then PCM, f32, or codes, i16, of the first lane, frame
after frame, the last one repeated as far as needed. What is refused moves no session; a lane does not see who stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from codec_core.errors import CodeRangeError, NonFiniteInputError, NumericOverflowError
from tests.fuzz.materials import NUMERICS, model, require_typed

COVERED: Final = (
    "ext/codec/code_range.cc",
    "ext/codec/session.cc",
    "ext/layers/attention_window.cc",
    "ext/layers/causal_conv1d.cc",
    "ext/layers/causal_conv_transpose1d.cc",
    "ext/layers/depthwise_upsample.cc",
    "ext/layers/overflow.cc",
    "ext/layers/residual_unit.cc",
    "ext/layers/residual_vq.cc",
    "ext/layers/transformer_layer.cc",
    "ext/model/latent_transformer.cc",
    "ext/model/mimi_decoder.cc",
    "ext/model/mimi_encoder.cc",
    "ext/model/seanet_decoder.cc",
    "ext/model/seanet_encoder.cc",
    "ext/model/split_rvq.cc",
    "ext/state/stream_state.cc",
)
DICTIONARY: Final = (
    b"\x00\x00\xc0\x7f",
    b"\x00\x00\x80\x7f",
    b"\xff\xff\x7f\x7f",
    b"\x00\x00\x80\x3f",
    b"\x01\x00\x00\x00",
    b"\xff\xff",
)
FRAME_SAMPLES: Final = 1920
MOST_FRAMES: Final = 4


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    codec = model(NUMERICS[(data[0] >> 1) % 3])
    levels = 1 + data[1] % codec.info.levels
    decodes = bool(data[0] & 1)
    first, beside, alone = ((codec.decoder if decodes else codec.encoder)(levels) for _ in range(3))
    step = codec.decode_batch if decodes else codec.encode_batch
    for frame in frames_of(data[2:], levels if decodes else FRAME_SAMPLES, decodes=decodes):
        before = [session.snapshot() for session in (first, beside)]
        try:
            both = step([first, beside], np.stack([frame, np.zeros_like(frame)]))  # type: ignore[list-item]
        except (CodeRangeError, NonFiniteInputError, NumericOverflowError) as error:
            require_typed(error)
            assert [session.snapshot() for session in (first, beside)] == before
            return
        assert step([alone], frame[None]).tobytes() == both[:1].tobytes()  # type: ignore[list-item]
        assert alone.snapshot() == first.snapshot()


def frames_of(data: bytes, width: int, *, decodes: bool) -> Iterator[np.ndarray]:
    item = "<i2" if decodes else "<f4"
    values = np.frombuffer(data[: len(data) // np.dtype(item).itemsize * np.dtype(item).itemsize], item)
    if not len(values):
        return
    for start in range(0, min(len(values), MOST_FRAMES * width), width):
        frame = np.resize(values[start : start + width], width)
        yield frame.astype(np.int32 if decodes else np.float32)


def seeds() -> Iterator[bytes]:
    sound = np.linspace(-0.9, 0.9, 2 * FRAME_SAMPLES, dtype="<f4")
    for choice in range(6):
        head = bytes([choice, 1])
        if choice & 1:
            codes = (np.arange(8, dtype="<i2") % 4).tobytes()
            yield head + codes
            yield from (head + codes + value.to_bytes(2, "little", signed=True) * 2 for value in (-1, 4, 32767))
        else:
            yield head + sound.tobytes()
            for value in (0, 1e30, 3e38, np.nan, np.inf, 1e-40):
                yield head + np.array([0.1, value], "<f4").tobytes()
                yield head + sound[:100].tobytes() + np.array([value] * 3, "<f4").tobytes()
