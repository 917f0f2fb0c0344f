"""Kyutai's own PyTorch program (PyPI's moshi) on the weights of a GGUF file, which makes ``vectors/default_model.npz``:

    python tests/golden/moshi_reference.py codec_core/models/default.gguf tests/golden/vectors/default_model.npz

Wants moshi, torch and gguf; sizes are read off the shapes, so that encoder and decoder may be of different widths.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import soundfile
import torch
from moshi.models import loaders
from moshi.modules import SEANetDecoder

SIGNALS = ("speech30s", "sample_2")
FRAME_SAMPLES = 1920
CODEBOOK = "._codebook.embedding"


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of a file of class f32 or f16 as float32, by its published name; codebooks as sums of a usage of 1."""
    found: dict[str, np.ndarray] = {}
    for tensor in gguf.GGUFReader(path).tensors:
        name = tensor.name.removeprefix("mimi.")
        values = np.asarray(tensor.data, np.float32).reshape(tuple(int(size) for size in reversed(tensor.shape)))
        if name.endswith(CODEBOOK):
            found[name + "_sum"] = values
            found[name.replace("embedding", "cluster_usage")] = np.ones(len(values), np.float32)
            found[name.replace("embedding", "_initialized")] = np.ones(1, np.float32)
        else:
            found[name] = values
    return found


def configuration(tensors: dict[str, np.ndarray], heads: int, context_steps: int) -> dict[str, Any]:
    """Kyutai's configuration with the sizes of these tensors; `seanet` is the encoder's."""
    config = copy.deepcopy(loaders._mimi_config)
    first = tensors["encoder.model.0.conv.conv.weight"]
    codebook = tensors["quantizer.rvq_first.vq.layers.0._codebook.embedding_sum"]
    dim = tensors["encoder.model.14.conv.conv.weight"].shape[0]
    mlp = tensors["encoder_transformer.transformer.layers.0.linear1.weight"].shape[0]
    config["seanet"].update(dimension=dim, n_filters=first.shape[0])
    config["quantizer"].update(
        dimension=codebook.shape[1],
        n_q=sum(name.endswith("embedding_sum") for name in tensors),
        bins=codebook.shape[0],
        input_dimension=dim,
        output_dimension=dim,
    )
    config["transformer"].update(
        d_model=dim,
        num_heads=heads,
        num_layers=sum(name.startswith("encoder_transformer") and name.endswith("norm1.weight") for name in tensors),
        context=context_steps,
        dim_feedforward=mlp,
        input_dimension=dim,
        output_dimensions=[dim],
    )
    return config


def build(path: Path, heads: int = 8, context_steps: int = 250) -> Any:
    """MimiModel with the weights of a file, in evaluation mode, all levels."""
    tensors = read_tensors(path)
    config = configuration(tensors, heads, context_steps)
    model = loaders.get_mimi(None, config, num_codebooks=config["quantizer"]["n_q"])
    # Trailing sizes of 1 are not stored: the last conv does not tell its inputs.
    decoder_filters = tensors["decoder.model.0.conv.conv.bias"].size // 2 ** len(config["seanet"]["ratios"])
    model.decoder = SEANetDecoder(**(config["seanet"] | {"n_filters": decoder_filters}))
    expected = model.state_dict()
    state = {name: torch.from_numpy(values.copy()).reshape(expected[name].shape) for name, values in tensors.items()}
    model.load_state_dict(state)
    return model.eval()


def whole_frames(name: str) -> np.ndarray:
    """The signal, float32 [samples], cut to whole frames."""
    folder = Path(__file__).parent / "vectors" / "signals"
    samples = soundfile.read(folder / f"{name}.wav", dtype="float32")[0]
    return samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES]


def vectors(path: Path) -> dict[str, np.ndarray]:
    """Codes in f32 and f64, and the f32 sound of the former, of every signal."""
    torch.set_num_threads(1)
    model, found = build(path), {}
    with torch.no_grad():
        for name in SIGNALS:
            pcm = torch.from_numpy(whole_frames(name))[None, None]
            codes = model.encode(pcm)
            found[f"{name}_codes"] = codes[0].numpy().astype(np.int16)
            found[f"{name}_pcm"] = model.decode(codes)[0, 0].numpy()
        model = model.double()
        for name in SIGNALS:
            pcm = torch.from_numpy(whole_frames(name)).double()[None, None]
            found[f"{name}_codes_f64"] = model.encode(pcm)[0].numpy().astype(np.int16)
    return found


if __name__ == "__main__":
    np.savez_compressed(Path(sys.argv[2]), **vectors(Path(sys.argv[1])))
