"""Small models made by the project's own generator and converter, and readers of files that are not ours."""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from codec_core.convert import convert_model
from codec_core.synth import PRESETS, write_synthetic
from codec_core.synth_tensors import SynthPreset


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.safetensors"
    write_synthetic(path, "tiny")
    return path


@pytest.fixture(scope="session")
def tiny_gguf(tiny_checkpoint: Path) -> Path:
    path = tiny_checkpoint.with_suffix(".gguf")
    convert_model(tiny_checkpoint, path)
    return path


@pytest.fixture(scope="session")
def tiny_f16_gguf(tiny_checkpoint: Path) -> Path:
    path = tiny_checkpoint.with_name("tiny-f16.gguf")
    convert_model(tiny_checkpoint, path, dtype="f16")
    return path


@pytest.fixture(scope="session")
def small_raw_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of eight heads, which is what a raw file is taken to have."""
    folder = tmp_path_factory.mktemp("small")
    PRESETS["eight-heads"] = SynthPreset("eight-heads", 4, 32, 2, 8, 32, 250, 32, 8)
    try:
        write_synthetic(folder / "x.safetensors", "eight-heads")
    finally:
        del PRESETS["eight-heads"]
    convert_model(folder / "x.safetensors", folder / "f32.gguf")
    convert_model(folder / "x.safetensors", folder / "f16.gguf", dtype="f16")
    return folder


def short_name(name: str) -> str:
    """The short form raw files have for names of 64 characters or more, written here a second time, independently."""
    if len(name) < 64:
        return name
    crc = struct.pack("<Q", zlib.crc32(name.encode()))
    return "".join("0123456789abcdef"[byte & 15] for byte in crc)


@pytest.fixture
def write_raw_gguf() -> Callable[[Path, Path], dict[str, bytes]]:
    """write(source, destination): the same tensors as moshi.cpp writes them: no metadata, long names shortened."""

    def write(source: Path, destination: Path) -> dict[str, bytes]:
        tensors = gguf.GGUFReader(source).tensors
        infos, payloads, stored = b"", b"", {}
        for tensor in tensors:
            name, data = short_name(tensor.name).encode(), tensor.data.tobytes()
            dims = [int(size) for size in tensor.shape]
            infos += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
            infos += struct.pack("<IQ", int(tensor.tensor_type), len(payloads))
            payloads += data + bytes(-len(data) % 32)
            stored[tensor.name] = data
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + infos
        destination.write_bytes(head + bytes(-len(head) % 32) + payloads)
        return stored

    return write


@pytest.fixture
def read_gguf() -> Callable[[Path], tuple[dict[str, object], dict[str, gguf.ReaderTensor]]]:
    """read(path): metadata and tensors by name, as the public gguf package sees them."""

    def read(path: Path) -> tuple[dict[str, object], dict[str, gguf.ReaderTensor]]:
        reader = gguf.GGUFReader(path)
        metadata = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        return metadata, {tensor.name: tensor for tensor in reader.tensors}

    return read


@pytest.fixture
def speechlike() -> Callable[[int, int], np.ndarray]:
    """signal(samples, seed): a gliding tone in noise, float32."""

    def signal(samples: int, seed: int) -> np.ndarray:
        at_s = np.arange(samples) / 24000
        tone = 0.3 * np.sin(2 * np.pi * (150 + 40 * at_s) * at_s)
        return (tone + 0.03 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)

    return signal


THEIR_WORDS = (
    ("encoder_transformer.transformer.", "encoder_transformer."),
    ("decoder_transformer.transformer.", "decoder_transformer."),
    ("encoder.model.", "encoder.layers."),
    ("decoder.model.", "decoder.layers."),
    (".conv.conv.conv.", ".conv."),
    (".convtr.convtr.convtr.", ".conv."),
    (".conv.conv.", ".conv."),
    (".convtr.convtr.", ".conv."),
    ("rvq_first.vq.", "semantic_residual_vector_quantizer."),
    ("rvq_first.", "semantic_residual_vector_quantizer."),
    ("rvq_rest.vq.", "acoustic_residual_vector_quantizer."),
    ("rvq_rest.", "acoustic_residual_vector_quantizer."),
    ("._codebook._initialized", ".codebook.initialized"),
    ("._codebook.embedding_sum", ".codebook.embed_sum"),
    ("._codebook.", ".codebook."),
    ("linear1", "mlp.fc1"),
    ("linear2", "mlp.fc2"),
    ("self_attn.out_proj", "self_attn.o_proj"),
    ("norm1", "input_layernorm"),
    ("norm2", "post_attention_layernorm"),
    ("layer_scale_1", "self_attn_layer_scale"),
    ("layer_scale_2", "mlp_layer_scale"),
)
"""Kyutai's words and those of transformers for the same, applied from top to bottom."""


def half_split(rows: np.ndarray, heads: int) -> np.ndarray:
    """Put the even rows of each head before its odd rows, which pairs row i with row i + half."""
    return np.concatenate([np.concatenate([head[0::2], head[1::2]]) for head in np.split(rows, heads)])


def their_config(geometry: dict[str, object], tensors: dict[str, np.ndarray]) -> dict[str, object]:
    transformer = geometry["transformer"]
    return {
        "architectures": ["MimiModel"],
        "model_type": "mimi",
        "sampling_rate": 24000,
        "frame_rate": 12.5,
        "upsampling_ratios": [8, 6, 5, 4],
        "audio_channels": 1,
        "head_dim": tensors["downsample.conv.conv.conv.weight"].shape[0] // transformer["num_heads"],
        "hidden_act": "gelu",
        "hidden_size": tensors["downsample.conv.conv.conv.weight"].shape[0],
        "norm_eps": 1e-05,
        "num_attention_heads": transformer["num_heads"],
        "num_key_value_heads": transformer["num_heads"],
        "num_quantizers": sum(name.endswith("embedding_sum") for name in tensors),
        "pad_mode": "constant",
        "rope_theta": float(transformer["max_period"]),
        "sliding_window": transformer["context"],
        "trim_right_ratio": 1.0,
        "use_causal_conv": True,
        "use_conv_shortcut": False,
    }


@pytest.fixture(scope="session")
def write_transformers() -> Callable[[Path, Path], Path]:
    """write(checkpoint, directory): a checkpoint of Kyutai's as the transformers library would save it."""

    def write(checkpoint: Path, directory: Path) -> Path:
        with safe_open(checkpoint, "numpy") as file:
            geometry = json.loads(file.metadata()["geometry"])
        tensors, theirs = load_file(checkpoint), {}
        heads = geometry["transformer"]["num_heads"]
        for ours, array in tensors.items():
            name = functools.reduce(lambda text, words: text.replace(*words), THEIR_WORDS, ours)
            if name.endswith("in_proj_weight"):
                query, key, value = np.split(array, 3)
                parts = {"q": half_split(query, heads), "k": half_split(key, heads), "v": value}
                stem = name.removesuffix("in_proj_weight")
                theirs |= {f"{stem}{letter}_proj.weight": np.ascontiguousarray(part) for letter, part in parts.items()}
            else:
                theirs[name] = array
        directory.mkdir()
        save_file(theirs, directory / "model.safetensors", {"format": "pt"})
        (directory / "config.json").write_text(json.dumps(their_config(geometry, tensors), indent=2))
        return directory

    return write


@pytest.fixture(scope="session")
def tiny_transformers(
    tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, write_transformers: Callable[[Path, Path], Path]
) -> Path:
    return write_transformers(tiny_checkpoint, tmp_path_factory.mktemp("transformers") / "tiny-mimi")
