"""The codec to and from a safetensors file in the form of Kyutai's checkpoint, which ``mimi convert`` reads.

python checkpoint.py default mimi-mini.safetensors       the checkpoint that a model file (class f32 or f16) was made of
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import torch
from codec import ACOUSTIC, DECODER_STRIDES, SEMANTIC, Codec, Sizes
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

LEAST_USAGE = 1e-5
MODEL_NAME = "mimi-mini"


def _codebook(half: str, level: int) -> str:
    return f"quantizer.{half}.vq.layers.{level}._codebook."


def tensors(codec: Codec) -> dict[str, Tensor]:
    """Return every tensor under its published name, float32; codebooks as sums and usages."""
    found = {name: value for name, value in codec.state_dict().items() if not name.endswith(("codebooks", "usage"))}
    for half in (SEMANTIC, ACOUSTIC):
        quantiser = codec.quantizer[half]
        for level, (codebook, usage) in enumerate(zip(quantiser.codebooks, quantiser.usage, strict=True)):
            counted = usage.clamp(min=1e-2)
            found[_codebook(half, level) + "embedding_sum"] = codebook * counted[:, None]
            found[_codebook(half, level) + "cluster_usage"] = counted
            found[_codebook(half, level) + "_initialized"] = torch.ones(1)
    return {name: value.detach().float().cpu().contiguous().clone() for name, value in found.items()}


def geometry(sizes: Sizes) -> dict[str, object]:
    """Return what ``mimi convert`` reads besides the shapes: the name, attention, and that all levels are used."""
    return {
        "model": MODEL_NAME,
        "sample_rate": 24_000,
        "frame_rate": 12.5,
        "transformer": {"num_heads": sizes.heads, "context": sizes.context_steps, "max_period": 10_000},
        "quantizer": {"n_q": sizes.levels},
    }


def save(codec: Codec, path: Path) -> None:
    """Write the checkpoint; its sizes stand in the header."""
    texts = {"sizes": json.dumps(codec.sizes.fields()), "geometry": json.dumps(geometry(codec.sizes))}
    save_file(tensors(codec), path, metadata={"format": "pt", **texts})


def load(path: Path) -> Codec:
    """Read a checkpoint that :func:`save` wrote, or one whose sizes its tensors tell."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
    held = load_file(path)
    sizes = Sizes(**json.loads(metadata["sizes"])) if "sizes" in metadata else _sizes(held)
    return _filled(Codec(sizes), held, path)


def _filled(codec: Codec, held: dict[str, Tensor], path: Path) -> Codec:
    for half in (SEMANTIC, ACOUSTIC):
        quantiser = codec.quantizer[half]
        for level in range(len(quantiser.codebooks)):
            usage = held.pop(_codebook(half, level) + "cluster_usage")
            total = held.pop(_codebook(half, level) + "embedding_sum")
            held.pop(_codebook(half, level) + "_initialized", None)
            quantiser.codebooks[level] = total / usage.clamp(min=LEAST_USAGE)[:, None]
            quantiser.usage[level] = usage
    missing, left = codec.load_state_dict(held, strict=False)
    if left or any(not name.endswith(("codebooks", "usage")) for name in missing):
        raise SystemExit(f"{path}: {len(left)} tensors too many, {len(missing)} missing")
    return codec


def _sizes(held: dict[str, Tensor]) -> Sizes:
    """Read the sizes off the shapes; heads and context are those of the published geometry."""
    entries, codebook_dim = held[_codebook(SEMANTIC, 0) + "embedding_sum"].shape
    return replace(
        Sizes(),
        encoder_filters=held["encoder.model.0.conv.conv.weight"].shape[0],
        decoder_filters=held["decoder.model.0.conv.conv.bias"].numel() // 2 ** len(DECODER_STRIDES),
        dim=held["encoder.model.14.conv.conv.weight"].shape[0],
        codebook_dim=codebook_dim,
        entries=entries,
        levels=sum(name.endswith("cluster_usage") for name in held),
        layers=sum(name.startswith("encoder_transformer") and name.endswith("norm1.weight") for name in held),
    )


def load_model_file(path: Path) -> Codec:
    """Read a GGUF file of class f32 or f16."""
    held: dict[str, Tensor] = {}
    for tensor in gguf.GGUFReader(path).tensors:
        name = tensor.name.removeprefix("mimi.").replace("in_projs.0.weight", "in_proj_weight").replace("projs.0.", "proj.")
        shape = tuple(int(size) for size in reversed(tensor.shape))
        values = torch.from_numpy(np.asarray(tensor.data, np.float32).reshape(shape).copy())
        if name.endswith("_codebook.embedding"):
            held[name + "_sum"] = values
            held[name.replace("embedding", "cluster_usage")] = torch.ones(len(values))
        else:
            held[name] = values.flatten() if name.endswith(".bias") else values
    codec = Codec(_sizes(held))
    shapes = {name: value.shape for name, value in codec.state_dict().items()}
    held = {name: value.reshape(shapes[name]) if name in shapes else value for name, value in held.items()}
    return _filled(codec, held, path)


def main() -> None:
    """Run the command."""
    from codec_core.model import resolve_model_path  # noqa: PLC0415 - training itself needs no engine

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help="a model file, or a name")
    parser.add_argument("destination", type=Path)
    settings = parser.parse_args()
    save(load_model_file(resolve_model_path(settings.model)), settings.destination)


if __name__ == "__main__":
    main()
