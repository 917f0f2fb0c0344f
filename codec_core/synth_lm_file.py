"""Large synthetic language models, written in no more time than their bytes take: to measure on, not to listen to.

They have the shape of moshiko, or one like it, and every tensor the type that ``mimi convert --quantize`` would give it. What
is in blocks holds random blocks, as good for measuring as blocks made of numbers; what is not holds random numbers.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.atomic_file import atomic_output
from codec_core.convert.element_types import BLOCK_BYTES, BLOCK_ELEMENTS, narrow
from codec_core.convert.gguf_writer import payload_bytes, write_gguf
from codec_core.convert.lm_config import MOSHI_7B, LmConfig, load_config
from codec_core.convert.lm_metadata import config_metadata
from codec_core.convert.lm_names import PREFIX, in_order, keeps_f32
from codec_core.convert.lm_quantise import LM_QUANTISATIONS, quantised_type
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.progress import Metre
from codec_core.convert.quantised_blocks import Q4_0_BLOCK, Q4_K_BLOCK, Q8_0_BLOCK
from codec_core.errors import ModelAccessError, SettingError
from codec_core.synth_lm import plan_lm_tensors
from codec_core.synth_tensors import SynthTensor, random_bits

SYNTH_TYPES: Final = ("f32", "bf16", *LM_QUANTISATIONS)
_HEAD_WIDTH: Final = 128
_DEPFORMER_HEAD_WIDTH: Final = 64
_PIECE_WORDS: Final = 1 << 16
_BELL: Final = np.float32(37837.2)
"""Deviation of the sum of four numbers of 16 bits."""
_DEVIATIONS: Final = {"q8_0": 73.9, "q4_0": 4.61, "q4_k": 270.0}
"""Of random blocks whose scale is 1; of q4_k with a minimum of 7.5, which leaves the mean near 0."""


def moshi_config(
    *,
    layers: int | None = None,
    dim: int | None = None,
    depformer_layers: int | None = None,
    depformer_dim: int | None = None,
    card: int | None = None,
    text_card: int | None = None,
) -> LmConfig:
    """Return moshiko's configuration with other sizes; None: as published.

    Args:
        layers: of the temporal transformer.
        dim: its width, a multiple of 256; heads are of 128.
        depformer_layers: of the depformer.
        depformer_dim: its width, a multiple of 128; heads are of 64.
        card: codes of a codebook.
        text_card: text tokens, a multiple of 4; number 3 is the padding.

    Raises:
        SettingError: sizes that no model has.

    """
    values: dict[str, Any] = dict(load_config(Path(MOSHI_7B)).values)
    chosen = {
        "num_layers": (layers, 1),
        "dim": (dim, 2 * _HEAD_WIDTH),
        "depformer_num_layers": (depformer_layers, 1),
        "depformer_dim": (depformer_dim, 2 * _DEPFORMER_HEAD_WIDTH),
        "card": (card, 1),
        "text_card": (text_card, 4),
    }
    for name, (size, multiple) in chosen.items():
        if size is not None and (size < 1 or size % multiple):
            raise SettingError(name, f"{size}", f"a multiple of {multiple}, 1 or more")
        values[name] = values[name] if size is None else size
    values["text_card_out"] = values["text_card"]
    for part, head_width in (("", _HEAD_WIDTH), ("depformer_", _DEPFORMER_HEAD_WIDTH)):
        values[f"{part}num_heads"] = values[f"{part}dim"] // head_width
        values[f"{part}dim_feedforward"] = int(values["hidden_scale"] * values[f"{part}dim"])
    return LmConfig(values, None, MOSHI_7B)


def write_synthetic_lm(
    destination: str | os.PathLike[str],
    config: LmConfig,
    weights: str,
    *,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write a language model's file; memory use does not depend on its size.

    Args:
        destination: the ``.gguf`` file to write.
        config: such as :func:`moshi_config` returns.
        weights: one of :data:`SYNTH_TYPES`.
        force: whether an existing file may be replaced.
        progress: called now and then with (bytes written, bytes in all).

    Returns:
        The size of the file in bytes.

    Raises:
        SettingError: an unknown type.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    if weights not in SYNTH_TYPES:
        raise SettingError("weights", weights, " or ".join(SYNTH_TYPES))
    synthetic = plan_lm_tensors("lm-synth", config.values)
    tensors = [_planned(name, synthetic[name], weights) for name in sorted(synthetic, key=in_order)]
    metadata = [
        ("general.architecture", "moshi"),
        ("general.name", f"synthetic {weights}"),
        ("moshi.component", "lm"),
        *config_metadata(config),
    ]
    with atomic_output(destination, replace=force, error=ModelAccessError) as temporary:
        write_gguf(temporary, metadata, tensors, Metre(payload_bytes(tensors), progress).advance)
        return temporary.stat().st_size


def _planned(name: str, tensor: SynthTensor, weights: str) -> PlannedTensor:
    full = PREFIX + name
    if keeps_f32(name):
        return PlannedTensor(
            full, (tensor.elements,), "f32", functools.partial(_numbers, tensor.values, tensor.elements), "f32"
        )
    dims = tuple(reversed(tensor.shape))
    type_name = (quantised_type(name, dims[0], weights) or "f32") if weights in LM_QUANTISATIONS else weights
    units = tensor.elements // BLOCK_ELEMENTS[type_name]
    if BLOCK_ELEMENTS[type_name] > 1:
        return PlannedTensor(full, dims, type_name, functools.partial(_blocks, full, type_name, dims[0], units), type_name)
    values = functools.partial(_bell, full, 1 / np.sqrt(dims[0]))
    return PlannedTensor(full, dims, "f32", functools.partial(_numbers, values, units), type_name)


def _bell(name: str, deviation: float, start: int, count: int) -> npt.NDArray[np.float32]:
    """Numbers near the normal distribution, within 3.5 deviations, the same on every machine."""
    quarters = random_bits(name, start, count).view(np.uint16).reshape(-1, 4)
    centred = quarters.sum(axis=1, dtype=np.int32) - 2 * 65535
    drawn: npt.NDArray[np.float32] = centred.astype(np.float32) * (np.float32(deviation) / _BELL)
    return drawn


def _numbers(values: Callable[[int, int], npt.NDArray[np.float32]], elements: int) -> Iterator[bytes]:
    for start in range(0, elements, _PIECE_WORDS):
        yield narrow(values(start, min(_PIECE_WORDS, elements - start)), "f32", "").tobytes()


def _blocks(name: str, type_name: str, inputs: int, blocks: int) -> Iterator[bytes]:
    """Random blocks of numbers whose deviation is about that of a sum of ``inputs`` that comes to 1."""
    scale = np.float16(1 / (_DEVIATIONS[type_name] * np.sqrt(inputs)))
    form = {"q8_0": Q8_0_BLOCK, "q4_0": Q4_0_BLOCK, "q4_k": Q4_K_BLOCK}[type_name]
    words = -(-BLOCK_BYTES[type_name] // 8)
    at_once = _PIECE_WORDS // words
    for start in range(0, blocks, at_once):
        count = min(at_once, blocks - start)
        bits = random_bits(name, start * words, count * words).view(np.uint8).reshape(count, 8 * words)
        stored = np.ascontiguousarray(bits[:, : BLOCK_BYTES[type_name]]).view(form)
        stored["scale"] = scale
        if type_name == "q4_k":
            stored["minimum"] = np.float16(7.5) * scale
        yield stored.tobytes()
