"""Small models made by the project's own generator and converter, and readers of files that are not ours."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from codec_core.convert import convert_model
from codec_core.synth import write_synthetic


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
