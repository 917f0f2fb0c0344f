"""Writes GGUF files field by field, well-formed or not, and a valid tiny Mimi model to start from."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

F32, F16, Q4_0, Q8_0, BF16 = 0, 1, 2, 8, 30
U8, U32, I32, FLOAT32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10

SEED = 20240607
STRIDES = (4, 5, 6, 8)


def string(text: str | bytes, length: int | None = None) -> bytes:
    """A GGUF string; ``length`` is what it claims, where that shall differ."""
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data) if length is None else length) + data


@dataclass
class Key:
    """One metadata pair; ``payload`` is the value as it lies in the file."""

    name: str | bytes
    type: int
    payload: bytes

    def encode(self) -> bytes:
        return string(self.name) + struct.pack("<I", self.type) + self.payload


def u32(name: str, value: int) -> Key:
    return Key(name, U32, struct.pack("<I", value))


def f32(name: str, value: float) -> Key:
    return Key(name, FLOAT32, struct.pack("<f", value))


def text(name: str, value: str | bytes) -> Key:
    return Key(name, STRING, string(value))


def array(name: str, element_type: int, count: int, payload: bytes) -> Key:
    return Key(name, ARRAY, struct.pack("<IQ", element_type, count) + payload)


@dataclass
class Tensor:
    """One tensor; ``dims`` fastest-varying first. ``rank`` and ``offset`` are claims, where they shall differ."""

    name: str | bytes
    dims: tuple[int, ...]
    type: int
    data: bytes
    rank: int | None = None
    offset: int | None = None

    def encode(self, offset: int) -> bytes:
        record = string(self.name) + struct.pack("<I", len(self.dims) if self.rank is None else self.rank)
        record += b"".join(struct.pack("<q" if dim < 0 else "<Q", dim) for dim in self.dims)
        return record + struct.pack("<IQ", self.type & 0xFFFFFFFF, offset if self.offset is None else self.offset)


@dataclass
class GgufFile:
    """A file to be written; counts are what the header claims, where that shall differ."""

    keys: list[Key] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    magic: bytes = b"GGUF"
    version: bytes = struct.pack("<I", 3)
    tensor_count: int | None = None
    key_count: int | None = None
    alignment: int = 32
    trailing: bytes = b""

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """Every part of the file in order, by name."""
        yield "magic", self.magic
        yield "version", self.version
        yield "tensor count", struct.pack("<Q", len(self.tensors) if self.tensor_count is None else self.tensor_count)
        yield "key count", struct.pack("<Q", len(self.keys) if self.key_count is None else self.key_count)
        size = sum(map(len, (self.magic, self.version))) + 16
        for key in self.keys:
            yield f"key {key.name!r}", key.encode()
            size += len(key.encode())
        offset = 0
        for tensor in self.tensors:
            yield f"record {tensor.name!r}", tensor.encode(offset)
            size += len(tensor.encode(offset))
            offset += len(self.padded(tensor.data))
        yield "padding", b"\0" * (-size % self.alignment)
        for tensor in self.tensors:
            yield f"data {tensor.name!r}", self.padded(tensor.data)
        yield "trailing", self.trailing

    def padded(self, data: bytes) -> bytes:
        return data + b"\0" * (-len(data) % self.alignment)

    def to_bytes(self) -> bytes:
        return b"".join(part for _, part in self.sections())

    def key(self, name: str) -> Key:
        return next(key for key in self.keys if key.name == name)

    def tensor(self, name: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    def set_key(self, key: Key) -> None:
        """Replaces the pair of that name, or adds it."""
        self.keys = [old for old in self.keys if old.name != key.name] + [key]

    def drop_tensor(self, name: str) -> None:
        self.tensors = [tensor for tensor in self.tensors if tensor.name != name]


class ModelWriter:
    """Fills a file with the tensors of a small Mimi model; shapes are given fastest-varying first, as the file has them."""

    def __init__(self, half: bool, seed: int) -> None:
        self.half = half
        self.random = np.random.default_rng(seed)
        self.tensors: list[Tensor] = []

    def add(self, name: str, dims: tuple[int, ...], half: bool = False, scale: float = 0.2, offset: float = 0.0) -> None:
        values = (self.random.standard_normal(int(np.prod(dims))) * scale + offset).astype(np.float16 if half else np.float32)
        self.tensors.append(Tensor(f"mimi.{name}", dims, F16 if half else F32, values.tobytes()))

    def conv(self, stem: str, kernel: int, wide: tuple[int, int]) -> None:
        self.add(f"{stem}.conv.conv.weight", (kernel, *wide), self.half)
        self.add(f"{stem}.conv.conv.bias", (1, wide[1]))

    def transposed_conv(self, stem: str, kernel: int, wide: tuple[int, int]) -> None:
        self.add(f"{stem}.convtr.convtr.weight", (kernel, wide[1], wide[0]))
        self.add(f"{stem}.convtr.convtr.bias", (1, wide[1]))

    def residual(self, stem: str, channels: int) -> None:
        self.conv(f"{stem}.block.1", 3, (channels, channels // 2))
        self.conv(f"{stem}.block.3", 1, (channels // 2, channels))

    def transformer(self, side: str, layers: int, dim: int, width: int) -> None:
        for i in range(layers):
            layer = f"{side}_transformer.transformer.layers.{i}"
            for norm in ("norm1", "norm2"):
                self.add(f"{layer}.{norm}.weight", (dim,), offset=1.0)
                self.add(f"{layer}.{norm}.bias", (dim,))
            self.add(f"{layer}.self_attn.in_projs.0.weight", (dim, 3 * dim))
            self.add(f"{layer}.self_attn.out_projs.0.weight", (dim, dim))
            self.add(f"{layer}.linear1.weight", (dim, width))
            self.add(f"{layer}.linear2.weight", (width, dim))
            self.add(f"{layer}.layer_scale_1.scale", (dim,))
            self.add(f"{layer}.layer_scale_2.scale", (dim,))

    def rvq(self, half_name: str, levels: int, dim: int, codebook: tuple[int, int]) -> None:
        stem = f"quantizer.{half_name}"
        self.add(f"{stem}.input_proj.weight", (1, dim, codebook[0]), self.half)
        self.add(f"{stem}.output_proj.weight", (1, codebook[0], dim), self.half)
        for i in range(levels):
            self.add(f"{stem}.vq.layers.{i}._codebook.embedding", codebook)

    def seanet(self, filters: int, dim: int) -> None:
        self.conv("encoder.model.0", 7, (1, filters))
        channels = filters
        for i, stride in enumerate(STRIDES):
            self.residual(f"encoder.model.{1 + 3 * i}", channels)
            self.conv(f"encoder.model.{3 + 3 * i}", 2 * stride, (channels, 2 * channels))
            channels *= 2
        self.conv("encoder.model.14", 3, (channels, dim))
        self.conv("decoder.model.0", 7, (dim, channels))
        for i, stride in enumerate(reversed(STRIDES)):
            self.transposed_conv(f"decoder.model.{2 + 3 * i}", 2 * stride, (channels, channels // 2))
            channels //= 2
            self.residual(f"decoder.model.{3 + 3 * i}", channels)
        self.conv("decoder.model.14", 3, (channels, 1))


def metadata(layers: int, dim: int, codebook: tuple[int, int]) -> list[Key]:
    stem = "moshi.mimi"
    return [
        text("general.architecture", "moshi"),
        text("general.name", "tiny"),
        text("moshi.component", "mimi"),
        u32(f"{stem}.sample_rate", 24000),
        f32(f"{stem}.frame_rate", 12.5),
        u32(f"{stem}.n_q", 8),
        u32(f"{stem}.card", codebook[1]),
        u32(f"{stem}.dim", dim),
        u32(f"{stem}.semantic_n_q", 1),
        u32(f"{stem}.codebook_dim", codebook[0]),
        u32(f"{stem}.transformer.num_layers", layers),
        u32(f"{stem}.transformer.num_heads", 2),
        u32(f"{stem}.transformer.context", 8),
        u32(f"{stem}.transformer.max_period", 10000),
    ]


def tiny_model(half: bool = False, layers: int = 2, codebook: tuple[int, int] = (8, 8), dim: int = 16) -> GgufFile:
    """A whole model of 4 base filters, 32 levels, 2 heads, context 8; ``codebook`` is (width, entries)."""
    writer = ModelWriter(half, SEED)
    writer.seanet(4, dim)
    writer.transformer("encoder", layers, dim, 2 * dim)
    writer.transformer("decoder", layers, dim, 2 * dim)
    writer.add("downsample.conv.conv.conv.weight", (4, dim, dim), half)
    writer.add("upsample.convtr.convtr.convtr.weight", (4, 1, dim))
    writer.rvq("rvq_first", 1, dim, codebook)
    writer.rvq("rvq_rest", 31, dim, codebook)
    return GgufFile(metadata(layers, dim, codebook), writer.tensors)


def with_values(tensor: Tensor, dtype: type[np.floating], values: dict[int, float]) -> Tensor:
    """The tensor with some of its values replaced, by index in file order."""
    content = np.frombuffer(tensor.data, dtype).copy()
    for index, value in values.items():
        content[index] = value
    return replace(tensor, data=content.tobytes())
