"""One rounding or one order changed anywhere is found, and named: the vectors are sharp enough to trust."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from codec_core.difference import Difference, compare_sound, compare_steps
from codec_core.verify.conformance import compare_stages
from codec_core.verify.vectors import PACKAGED, StageVectors
from tests.engine_build import Engine, Mutant, Stages, compiler, dump

from .ggml_reference import GgmlMimi
from .vectors import signal, vectors

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(compiler() is None, reason="no C++ compiler here"),
]

FRAMES = 2
TINY_FRAMES = 7
LEVELS = 8
ELEMENTARY, MATMUL, ATTENTION = (f"kernels/body_ggml_{part}.h" for part in ("elementary", "matmul", "attention"))
TABLE, POLICY = "kernels/body_table.h", "model/numerics.cc"

MUTANTS = [
    Mutant(
        "conv inputs not rounded to f16",
        TABLE,
        ".round_conv_operand = &GgmlElementary<Vec>::round_to_half",
        ".round_conv_operand = nullptr",
        "encoder.model.0",
    ),
    Mutant(
        "conv weights not rounded to f16", POLICY, ".half_conv_weights = true", ".half_conv_weights = false", "encoder.model.0"
    ),
    Mutant(
        "tail of a conv in f32",
        TABLE,
        "&TreeMatmul<Vec, WideTail>::run",
        "&TreeMatmul<Vec, FusedTail>::run",
        "encoder.model.0",
    ),
    Mutant(
        "conv summed step by step",
        POLICY,
        ".conv_order = ConvOrder::channel_major",
        ".conv_order = ConvOrder::step_major",
        "encoder.model.1",
    ),
    Mutant(
        "lanes of a dot product added in another order",
        MATMUL,
        "(t[i] + t[i + sums]) + (t[i + 2 * sums] + t[i + 3 * sums])",
        "(t[i] + t[i + 2 * sums]) + (t[i + sums] + t[i + 3 * sums])",
        "encoder.model.1",
    ),
    # Rounding a conv's inputs to f16 hides an ULP of ELU; transposed convs take them as they are.
    Mutant(
        "ELU of the other numerics",
        TABLE,
        ".elu = &GgmlElementary<Vec>::elu_array",
        ".elu = &Elementary<Vec>::elu_array",
        "decoder.model.2",
    ),
    Mutant(
        "dot products not fused",
        MATMUL,
        "Vec::fma(w[b], value, partial)",
        "w[b] * value + partial",
        "encoder.transformer",
    ),
    Mutant("variance in f32", ATTENTION, "double squares = 0.0", "float squares = 0.0f", "encoder.transformer"),
    Mutant(
        "exact GELU",
        TABLE,
        ".gelu = &GgmlElementary<Vec>::gelu_array",
        ".gelu = &Elementary<Vec>::gelu_array",
        "encoder.transformer",
    ),
    Mutant(
        "keys and values not rounded to bf16",
        TABLE,
        ".round_attention_operand = &GgmlElementary<Vec>::round_to_bf16",
        ".round_attention_operand = nullptr",
        "encoder.transformer",
    ),
    Mutant("downsampling from a replica", POLICY, "StartPadding::zeros", "StartPadding::replicate", "encoder.downsample"),
    Mutant(
        "upsampling fused",
        "layers/depthwise_upsample.cc",
        "before[c] * weight_before[c] + now[c] * weight_now[c]",
        "__builtin_fmaf(now[c], weight_now[c], before[c] * weight_before[c])",
        "decoder.upsample",
        frame=1,
    ),
]
ROTARY_ANGLES = Mutant("correctly rounded sines", POLICY, ".ggml_rotary = true", ".ggml_rotary = false", "sound", frame=7)
CORRECTED_MASK = Mutant("corrected mask", POLICY, "AttentionView::ring_slots :", "AttentionView::ring_slots_causal :", "", 5)


@pytest.fixture(scope="module")
def programs(engine: Engine) -> dict[str, Future[Path]]:
    """The mutants by name; while one runs, the next is compiled."""
    return {mutant.name: engine.pool.submit(engine.mutated, mutant) for mutant in (*MUTANTS, ROTARY_ANGLES, CORRECTED_MASK)}


def _run(program: Path, model: Path, frames: int) -> list[Stages]:
    pcm = signal("tone440")[: frames * 1920].reshape(frames, 1920) / np.float32(32768)
    found = dump(program, model, pcm, vectors("tone440")["ggml_codes"][:, :frames])
    assert len(found) == frames
    return found


def _against_golden(program: Path, model: Path, frames: int) -> Difference | None:
    """As `mimi verify` compares, with the vectors it carries."""
    stages = StageVectors(PACKAGED / "full" / "stages_ggml_tone440.npz")
    return compare_stages(stages, iter(_run(program, model, frames)), bit_exact=True)


def test_the_engine_as_it_is(engine: Engine, full_model_path: Path):
    assert _against_golden(engine.program, full_model_path, FRAMES) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_found_where_it_was_made(programs: dict[str, Future[Path]], full_model_path: Path, mutant: Mutant):
    difference = _against_golden(programs[mutant.name].result(), full_model_path, mutant.frame + 1)
    assert difference is not None
    assert (difference.what, difference.frame) == (mutant.stage, mutant.frame), difference


def test_an_ulp_of_a_sine_is_heard_after_some_frames(programs: dict[str, Future[Path]], full_model_path: Path):
    """Two frames of stages do not see it: attention weights are rounded to bf16."""
    found = _run(programs[ROTARY_ANGLES.name].result(), full_model_path, ROTARY_ANGLES.frame + 1)
    sound = np.concatenate([stages["decoder.model.14"][0] for stages in found])
    difference = compare_sound(vectors("tone440")["ggml_pcm"][: len(sound)], sound, 1920)
    assert difference is not None
    assert (difference.what, difference.frame) == (ROTARY_ANGLES.stage, ROTARY_ANGLES.frame)


def test_a_mask_that_differs_only_past_the_wrap(
    engine: Engine, programs: dict[str, Future[Path]], tiny_model_path: Path, pcm: np.ndarray
):
    """moshi.cpp's own vectors see it after ten seconds, the tiny model's reference after four frames."""
    frames = pcm[: TINY_FRAMES * 1920].reshape(TINY_FRAMES, 1920)
    codes = np.arange(LEVELS * TINY_FRAMES).reshape(LEVELS, TINY_FRAMES) % 32
    reference = GgmlMimi(tiny_model_path, causal=False)
    with np.errstate(all="ignore"):
        expected = [
            reference.encode(samples, LEVELS)[1] | reference.decode(codes[:, frame])[1] for frame, samples in enumerate(frames)
        ]

    def differences(program: Path) -> list[Difference]:
        found = dump(program, tiny_model_path, frames, codes)
        pairs = [(f, name, values) for f, stages in enumerate(found) for name, values in stages.items()]
        compared = (compare_steps(name, expected[frame][name], values, frame) for frame, name, values in pairs)
        return [difference for difference in compared if difference]

    assert differences(engine.program) == []
    first = differences(programs[CORRECTED_MASK.name].result())[0]
    assert (first.what, first.frame) == ("encoder.transformer", CORRECTED_MASK.frame)
