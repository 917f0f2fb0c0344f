"""A language model of the published 7B shapes, quickly: ``python tests/bench/large_language_model.py OUT.gguf``.

Its weights are a short run of random values written over and over again, from another place for every tensor: finite and of the
size that weights have, and nothing was trained. 8.2 GB in q8_0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import gguf
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from lm_files import lm_metadata, put_metadata

TYPES: Final = {
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "f32": gguf.GGMLQuantizationType.F32,
}
CONFIG: Final[dict[str, Any]] = {
    "card": 2048,
    "n_q": 16,
    "dep_q": 8,
    "text_card": 32000,
    "existing_text_padding_id": 3,
    "dim": 4096,
    "num_layers": 32,
    "num_heads": 32,
    "hidden_scale": 4.125,
    "context": 3000,
    "max_period": 10000,
    "gating": "silu",
    "norm": "rms_norm_f32",
    "positional_embedding": "rope",
    "causal": True,
    "delays": [0, 0, *[1] * 7, 0, *[1] * 7],
    "depformer_dim": 1024,
    "depformer_dim_feedforward": 4224,
    "depformer_num_heads": 16,
    "depformer_num_layers": 6,
    "depformer_multi_linear": True,
    "depformer_gating": "silu",
    "depformer_pos_emb": "none",
    "depformer_weights_per_step": True,
}
GATING: Final = {4096: 11264, 1024: 2816}
PATTERN_VALUES: Final = 8 << 20
ROW_VALUES: Final = 1024
BOUND: Final = 0.027
"""About sqrt(3 / 4096): what goes through a matrix keeps its size."""

Shape = tuple[int, ...]


def tensors(layers: int) -> Iterator[tuple[str, Shape]]:
    """Names and shapes, in the order in which a step needs them."""
    dim, small, card = CONFIG["dim"], CONFIG["depformer_dim"], CONFIG["card"]
    for channel in range(CONFIG["n_q"]):
        yield f"emb.{channel}.weight", (card + 1, dim)
    yield "text_emb.weight", (CONFIG["text_card"] + 1, dim)
    for layer in range(layers):
        yield from transformer_layer(f"transformer.layers.{layer}", dim, 1, "gating")
    yield "out_norm.alpha", (dim,)
    yield "text_linear.weight", (CONFIG["text_card"], dim)
    for level in range(CONFIG["dep_q"]):
        yield f"depformer_in.{level}.weight", (small, dim)
        yield f"linears.{level}.weight", (card, small)
    yield "depformer_text_emb.weight", (CONFIG["text_card"] + 1, small)
    for level in range(CONFIG["dep_q"] - 1):
        yield f"depformer_emb.{level}.weight", (card + 1, small)
    for layer in range(CONFIG["depformer_num_layers"]):
        yield from transformer_layer(f"depformer.layers.{layer}", small, CONFIG["dep_q"], "gating.{}")


def transformer_layer(path: str, dim: int, sets: int, gating: str) -> Iterator[tuple[str, Shape]]:
    yield f"{path}.norm1.alpha", (dim,)
    yield f"{path}.self_attn.in_proj_weight", (sets * 3 * dim, dim)
    yield f"{path}.self_attn.out_proj.weight", (sets * dim, dim)
    yield f"{path}.norm2.alpha", (dim,)
    for number in range(sets):
        unit = f"{path}.{gating.format(number)}"
        yield f"{unit}.linear_in.weight", (2 * GATING[dim], dim)
        yield f"{unit}.linear_out.weight", (dim, GATING[dim])


def pattern(kind: gguf.GGMLQuantizationType) -> memoryview:
    values = np.random.default_rng(1).uniform(-BOUND, BOUND, PATTERN_VALUES).astype(np.float32)
    return memoryview(gguf.quants.quantize(values.reshape(-1, ROW_VALUES), kind).tobytes())


def write_values(file: BinaryIO, stored: memoryview, size: int, start: int) -> None:
    while size > 0:
        part = stored[start : start + size]
        file.write(part)
        size -= len(part)
        start = 0


def write_model(path: Path, kind_name: str, layers: int, context: int) -> None:
    kind, rng = TYPES[kind_name], np.random.default_rng(2)
    config = CONFIG | {"num_layers": layers, "context": context}
    writer = gguf.GGUFWriter(path, "moshi")
    put_metadata(writer, lm_metadata(config))
    sizes: list[tuple[Shape, int]] = []
    for name, shape in tensors(layers):
        own = kind if len(shape) == 2 else gguf.GGMLQuantizationType.F32
        block, block_bytes = gguf.GGML_QUANT_SIZES[own]
        size = int(np.prod(shape)) // block * block_bytes
        writer.add_tensor_info(f"lm.{name}", shape, np.dtype(np.float32), size, own)
        sizes.append((shape, size))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    row = pattern(kind)
    row_bytes = len(row) * ROW_VALUES // PATTERN_VALUES
    with path.open("ab") as file:
        for shape, size in sizes:
            file.write(bytes(-file.tell() % writer.data_alignment))
            if len(shape) == 1:
                file.write(np.ones(shape, np.float32).tobytes())
            else:
                write_values(file, row, size, int(rng.integers(PATTERN_VALUES // ROW_VALUES)) * row_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--type", choices=TYPES, default="q8_0")
    parser.add_argument("--layers", type=int, default=CONFIG["num_layers"])
    parser.add_argument("--context-steps", type=int, default=CONFIG["context"])
    given = parser.parse_args()
    write_model(given.output, given.type, given.layers, given.context_steps)


if __name__ == "__main__":
    main()
