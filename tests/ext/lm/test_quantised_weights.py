"""Matrices and tables of blocks: tables are what they stand for, matrices as near f32 as their rounding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from codec_core.errors import ModelContractError
from codec_core.language_model import LanguageModel
from codec_core.language_session import FREE, GREEDY, Given
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import lm_metadata, write_lm, write_typed_lm

Q8_0, Q4_0, Q4_K = (getattr(gguf.GGMLQuantizationType, name) for name in ("Q8_0", "Q4_0", "Q4_K"))
F32 = gguf.GGMLQuantizationType.F32
STEPS = 12


def stages(model: LanguageModel, given: Callable[[int], Given] = lambda _step: Given()) -> dict[str, list[np.ndarray]]:
    found: dict[str, list[np.ndarray]] = {}
    session = model.session(GREEDY)
    for step in range(STEPS):
        session.step(
            [step + level for level in range(8)],
            given(step),
            lambda name, values: found.setdefault(name, []).append(values.copy()),
        )
    return found


def same(one: dict[str, list[np.ndarray]], other: dict[str, list[np.ndarray]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def is_matrix(name: str, array: np.ndarray) -> bool:
    return array.ndim == 2 and "emb" not in name


def q4_0_as_q8_0(blocks: np.ndarray) -> np.ndarray:
    """uint8 [rows, bytes]: the same scales, the same numbers."""
    grouped = blocks.reshape(-1, 18)
    nibbles = grouped[:, 2:]
    values = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.int8) - 8
    return np.concatenate([grouped[:, :2], values.view(np.uint8)], axis=1).reshape(len(blocks), -1)


def test_matrices_of_q4_0_are_q8_0_of_the_same_numbers(tmp_path: Path):
    arrays, metadata = lm_arrays("a"), lm_metadata(LM_CONFIGS["a"])
    four, eight = {}, {}
    for name, array in arrays.items():
        if is_matrix(name, array):
            blocks = gguf.quants.quantize(np.ascontiguousarray(array), Q4_0)
            four[name], eight[name] = (Q4_0, blocks), (Q8_0, q4_0_as_q8_0(blocks))
        else:
            four[name] = eight[name] = (F32, array)
    models = [LanguageModel.open(write_typed_lm(tmp_path / f"{i}.gguf", one, metadata)) for i, one in enumerate((four, eight))]
    assert [model.info.weight_class for model in models] == ["q4_0", "q8_0"]
    assert models[0].info.temporal_bytes < 0.55 * models[1].info.temporal_bytes
    assert same(stages(models[0]), stages(models[1]))


@pytest.mark.parametrize("kind", [Q8_0, Q4_0], ids=["q8_0", "q4_0"])
def test_tables_of_blocks_are_their_rows_widened(tmp_path: Path, kind: gguf.GGMLQuantizationType):
    arrays, metadata = lm_arrays("b"), lm_metadata(LM_CONFIGS["b"])
    typed, wide = {}, {}
    for name, array in arrays.items():
        if "emb" in name and array.ndim == 2 and "low_rank" not in name:
            blocks = gguf.quants.quantize(np.ascontiguousarray(array), kind)
            typed[name], wide[name] = (kind, blocks), gguf.quants.dequantize(blocks, kind)
        else:
            typed[name], wide[name] = (F32, array), array
    blocky = LanguageModel.open(write_typed_lm(tmp_path / "blocks.gguf", typed, metadata))
    plain = LanguageModel.open(write_lm(tmp_path / "wide.gguf", wide, metadata))
    assert same(stages(blocky), stages(plain))


def test_q8_0_is_near_f32(tmp_path: Path, language_models: Callable[..., LanguageModel]):
    """With the same tokens going in, as far apart as rounding the weights and inputs makes them."""
    arrays, metadata = lm_arrays("a"), lm_metadata(LM_CONFIGS["a"])
    typed = {
        name: (Q8_0, gguf.quants.quantize(np.ascontiguousarray(array), Q8_0)) if array.ndim == 2 else (F32, array)
        for name, array in arrays.items()
    }
    model = LanguageModel.open(write_typed_lm(tmp_path / "q8_0.gguf", typed, metadata))

    def forced(step: int) -> Given:
        return Given(text=step, codes=[step, step + 1, step + 2, FREE], kept=[FREE, FREE, FREE, step + 3])

    found, exact = stages(model, forced), stages(language_models("a"), forced)
    for name in ("text_logits", "audio_logits.0", "audio_logits.3"):
        wide = np.stack(exact[name]).astype(np.float64)
        error = np.sqrt(((np.stack(found[name]) - wide) ** 2).mean() / (wide**2).mean())
        assert 0.01 < error < 0.08, (name, error)
    assert model.info.weights_bytes < 0.3 * language_models("a").info.weights_bytes


def wide_model(rng: np.random.Generator) -> tuple[dict[str, tuple[int, int]], dict[str, np.ndarray], dict[str, object]]:
    """Widths of whole blocks of 256; matrices by shape, and what else there is."""
    layer = "transformer.layers.0."
    matrices = {
        layer + "self_attn.in_proj_weight": (768, 256),
        layer + "self_attn.out_proj.weight": (256, 256),
        layer + "gating.linear_in.weight": (512, 256),
        layer + "gating.linear_out.weight": (256, 256),
        "text_linear.weight": (31, 256),
        "text_emb.weight": (32, 256),
        **{f"emb.{level}.weight": (33, 256) for level in range(8)},
    }
    norms = {
        name: rng.uniform(0.5, 1.5, 256).astype(np.float32)
        for name in ("out_norm.alpha", f"{layer}norm1.alpha", f"{layer}norm2.alpha")
    }
    metadata = lm_metadata(
        LM_CONFIGS["s"] | {"extra_heads_num_heads": 0, "dim": 256, "num_layers": 1, "card": 32, "text_card": 31}
    )
    return matrices, norms, metadata | {"moshi.lm.dim_feedforward": 384}


def random_super_blocks(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """uint8 [rows, bytes] of q4_k: any bits, but for scales that are small."""
    blocks = rng.integers(0, 256, (shape[0] * shape[1] // 256, 144), np.uint8)
    blocks[:, :4] = rng.uniform(1e-4, 1e-3, (len(blocks), 2)).astype(np.float16).view(np.uint8)
    return blocks.reshape(shape[0], -1)


def blocky_and_wide(
    folder: Path, rng: np.random.Generator, is_blocky: Callable[[str], bool]
) -> tuple[LanguageModel, LanguageModel]:
    """A model with some tensors of q4_k, and the same in f32."""
    matrices, norms, metadata = wide_model(rng)
    typed, wide = {name: (F32, values) for name, values in norms.items()}, dict(norms)
    for name, shape in matrices.items():
        blocks = random_super_blocks(rng, shape)
        wide[name] = gguf.quants.dequantize(blocks, Q4_K)
        typed[name] = (Q4_K, blocks) if is_blocky(name) else (F32, wide[name])
    blocky = LanguageModel.open(write_typed_lm(folder / "q4_k.gguf", typed, metadata))
    return blocky, LanguageModel.open(write_lm(folder / "wide.gguf", wide, metadata))


def test_tables_of_q4_k_are_their_rows_widened(tmp_path: Path, rng: np.random.Generator):
    blocky, wide = blocky_and_wide(tmp_path, rng, lambda name: "emb" in name)
    assert same(stages(blocky), stages(wide))


def test_matrices_of_q4_k_are_near_what_they_stand_for(tmp_path: Path, rng: np.random.Generator):
    """Nothing but the inputs is rounded; and no byte is added to what the file has."""
    blocky, wide = blocky_and_wide(tmp_path, rng, lambda _name: True)
    assert blocky.info.weight_class == "q4_k"
    assert blocky.info.temporal_bytes == (768 + 256 + 512 + 256 + 32) * 144

    def forced(step: int) -> Given:
        return Given(text=step)

    found, exact = (np.stack(stages(model, forced)["text_logits"]).astype(np.float64) for model in (blocky, wide))
    assert 1e-4 < np.sqrt(((found - exact) ** 2).mean() / (exact**2).mean()) < 0.03


@pytest.mark.parametrize(("kind", "place"), [(Q8_0, 0), (Q4_0, 0), (Q4_K, 0), (Q4_K, 2)])
@pytest.mark.parametrize("name", ["emb.3.weight", "transformer.layers.0.gating.linear_in.weight"])
def test_scales_that_are_not_finite(tmp_path: Path, rng: np.random.Generator, name: str, kind, place: int):
    matrices, norms, metadata = wide_model(rng)
    rows, columns = matrices[name]
    block_values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.zeros((rows * columns // block_values, block_bytes), np.uint8)
    blocks[5, place : place + 2] = np.frombuffer(np.float16(np.inf).tobytes(), np.uint8)
    typed = {other: (F32, np.zeros(shape, np.float32)) for other, shape in matrices.items()}
    typed |= {other: (F32, values) for other, values in norms.items()} | {name: (kind, blocks.reshape(rows, -1))}
    with pytest.raises(ModelContractError, match=f"tensor 'lm.{name}': found a scale of infinity in block 5"):
        LanguageModel.open(write_typed_lm(tmp_path / "bad.gguf", typed, metadata))
