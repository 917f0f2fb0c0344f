"""Mimi under `ggml` numerics, frame by frame, in NumPy; written from docs/numerics.md and independently of the engine. The
witness for geometries that moshi.cpp's vectors do not have. Arrays are [channels, steps]."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from . import ggml_arithmetic as ggml
from .vectors import vectors

Array = np.ndarray
F32 = np.float32
STRIDES = (4, 5, 6, 8)
Stages = dict[str, Array]


class GgmlMimi:
    """The codec of one GGUF file with heads of 8, whose rotary angles the vectors hold; one stream in each direction."""

    def __init__(self, path: Path, causal: bool) -> None:
        reader = gguf.GGUFReader(path)
        self.tensors = {
            tensor.name.removeprefix("mimi."): np.asarray(tensor.data, F32).reshape(tuple(reversed(tensor.shape)))
            for tensor in reader.tensors
        }
        prefix = "moshi.mimi.transformer."
        self.layers, self.heads, self.context = (
            int(reader.fields[prefix + name].contents()) for name in ("num_layers", "num_heads", "context")
        )
        self.causal = causal
        self.gelu_table = vectors("gelu_f16_table")["table"]
        self.turns = vectors("libm_glibc")["rotary"]
        self.state: dict[str, Array] = {}
        self.positions = {"encoder": 0, "decoder": 0}

    def encode(self, pcm: Array, levels: int) -> tuple[list[int], Stages]:
        """float32 [1920] -> codes, and every stage."""
        stages: Stages = {}
        x = self._conv(pcm[np.newaxis], "encoder.model.0.conv.conv")
        stages["encoder.model.0"] = x
        for stage, stride in enumerate(STRIDES):
            x = stages[f"encoder.model.{1 + 3 * stage}"] = self._residual(x, f"encoder.model.{1 + 3 * stage}")
            x = self._conv(ggml.elu(x), f"encoder.model.{3 + 3 * stage}.conv.conv", stride)
            stages[f"encoder.model.{3 + 3 * stage}"] = x
        x = stages["encoder.model.14"] = self._conv(ggml.elu(x), "encoder.model.14.conv.conv")
        x = stages["encoder.transformer"] = self._transformer(x, "encoder")
        latent = stages["encoder.downsample"] = self._conv(x, "downsample.conv.conv.conv", 2)
        codes: list[int] = []
        for side, count in (("rvq_first", 1), ("rvq_rest", levels - 1)):
            residual = self._project(latent[:, 0], f"quantizer.{side}.input_proj.weight")
            for level in range(count):
                codewords = self.tensors[f"quantizer.{side}.vq.layers.{level}._codebook.embedding"]
                codes.append(ggml.nearest(codewords, residual))
                residual = residual - codewords[codes[-1]]
        return codes, stages

    def decode(self, codes: Array) -> tuple[Array, Stages]:
        """[levels] -> float32 [1920], and every stage."""
        stages: Stages = {}
        latent = self._half("rvq_first", codes[:1])
        if len(codes) > 1:
            latent = latent + self._half("rvq_rest", codes[1:])
        stages["decoder.latent"] = latent[:, np.newaxis]
        x = stages["decoder.upsample"] = self._upsample(latent)
        x = stages["decoder.transformer"] = self._transformer(x, "decoder")
        x = stages["decoder.model.0"] = self._conv(x, "decoder.model.0.conv.conv")
        for stage, stride in enumerate(reversed(STRIDES)):
            x = self._transposed(ggml.elu(x), f"decoder.model.{2 + 3 * stage}.convtr.convtr", stride)
            stages[f"decoder.model.{2 + 3 * stage}"] = x
            x = stages[f"decoder.model.{3 + 3 * stage}"] = self._residual(x, f"decoder.model.{3 + 3 * stage}")
        x = stages["decoder.model.14"] = self._conv(ggml.elu(x), "decoder.model.14.conv.conv")
        return x[0], stages

    def _half(self, side: str, codes: Array) -> Array:
        tables = [self.tensors[f"quantizer.{side}.vq.layers.{level}._codebook.embedding"] for level in range(len(codes))]
        total = tables[0][codes[0]]
        for table, code in zip(tables[1:], codes[1:], strict=True):
            total = total + table[code]
        return self._project(total, f"quantizer.{side}.output_proj.weight")

    def _project(self, x: Array, name: str) -> Array:
        weight = self.tensors[name]
        return ggml.dot16(ggml.half(weight.reshape(weight.shape[0], -1)), ggml.half(x))

    def _conv(self, x: Array, name: str, stride: int = 1) -> Array:
        weight = self.tensors[name + ".weight"]
        weight = weight.reshape(-1, x.shape[0], weight.shape[-1])
        kernel = weight.shape[2]
        past = self.state.get(name, np.zeros((x.shape[0], kernel - stride), F32))
        joined = np.concatenate([past, x], axis=1)
        self.state[name] = joined[:, joined.shape[1] - (kernel - stride) :]
        starts = range(0, x.shape[1], stride)
        columns = np.array([joined[:, start : start + kernel].reshape(-1) for start in starts])
        y = ggml.dot16(ggml.half(weight.reshape(len(weight), -1))[:, np.newaxis], ggml.half(columns)[np.newaxis])
        bias = self.tensors.get(name + ".bias")
        return y if bias is None else y + bias.reshape(-1, 1)

    def _transposed(self, x: Array, name: str, stride: int) -> Array:
        weight = self.tensors[name + ".weight"]
        kernel, steps = weight.shape[2], x.shape[1]
        z = np.zeros((weight.shape[1], (steps - 1) * stride + kernel), F32)
        for step in range(steps):
            term = ggml.dot32(np.moveaxis(weight, 0, 2), x[:, step])
            part = slice(step * stride, step * stride + kernel)
            z[:, part] = z[:, part] + term
        overlap = kernel - stride
        z[:, :overlap] = z[:, :overlap] + self.state.get(name, np.zeros((len(z), overlap), F32))
        self.state[name] = z[:, z.shape[1] - overlap :].copy()
        return z[:, : steps * stride] + self.tensors[name + ".bias"].reshape(-1, 1)

    def _upsample(self, x: Array) -> Array:
        weight = self.tensors["upsample.convtr.convtr.convtr.weight"].reshape(len(x), 4)
        y = x[:, np.newaxis] * weight
        previous = self.state.get("upsample", np.zeros((len(x), 2), F32))
        y[:, :2] = y[:, :2] + previous
        self.state["upsample"] = y[:, 2:].copy()
        return y[:, :2]

    def _residual(self, x: Array, name: str) -> Array:
        hidden = self._conv(ggml.elu(x), f"{name}.block.1.conv.conv")
        return x + self._conv(ggml.elu(hidden), f"{name}.block.3.conv.conv")

    def _transformer(self, x: Array, side: str) -> Array:
        position = self.positions[side]
        self.positions[side] += 2
        tokens = x.T.copy()
        for layer in range(self.layers):
            part = lambda key, n=layer: self.tensors[f"{side}_transformer.transformer.layers.{n}.{key}"]  # noqa: E731
            normal = [ggml.layer_norm(token, part("norm1.weight").ravel(), part("norm1.bias").ravel()) for token in tokens]
            mixed = self._attend(np.array(normal), part("self_attn.in_projs.0.weight"), f"{side}.{layer}", position)
            update = ggml.dot32(part("self_attn.out_projs.0.weight"), mixed[:, np.newaxis])
            tokens = tokens + update * part("layer_scale_1.scale").ravel()
            normal = [ggml.layer_norm(token, part("norm2.weight").ravel(), part("norm2.bias").ravel()) for token in tokens]
            hidden = ggml.gelu(ggml.dot32(part("linear1.weight"), np.array(normal)[:, np.newaxis]), self.gelu_table)
            update = ggml.dot32(part("linear2.weight"), hidden[:, np.newaxis])
            tokens = tokens + update * part("layer_scale_2.scale").ravel()
        return tokens.T

    def _attend(self, normal: Array, weight: Array, layer: str, position: int) -> Array:
        dim = normal.shape[1]
        head_dim = dim // self.heads
        projected = ggml.dot32(weight, normal[:, np.newaxis])
        query, key, value = (projected[:, i * dim : (i + 1) * dim].reshape(2, self.heads, head_dim) for i in range(3))
        ring = self.state.setdefault(layer, np.zeros((2, self.heads, self.context, head_dim), F32))
        for t in range(2):
            ring[0][:, (position + t) % self.context] = ggml.bfloat(self._rotate(key[t], position + t))
            ring[1][:, (position + t) % self.context] = ggml.bfloat(value[t])
        mixed = np.zeros_like(normal)
        for t in range(2):
            turned = ggml.bfloat(self._rotate(query[t], position + t))
            allowed = self._allowed(position, t)
            for head in range(self.heads):
                part = slice(head * head_dim, (head + 1) * head_dim)
                scale = 1 / np.sqrt(F32(head_dim))
                mixed[t, part] = ggml.attention(turned[head], ring[0][head], ring[1][head], allowed, scale)
        return mixed

    def _rotate(self, heads: Array, position: int) -> Array:
        """Interleaved pairs in, halves out."""
        cosine, sine = self.turns[position, :, 0], self.turns[position, :, 1]
        real, imaginary = heads[:, 0::2], heads[:, 1::2]
        return np.concatenate([real * cosine - imaginary * sine, real * sine + imaginary * cosine], axis=1)

    def _allowed(self, position: int, row: int) -> Array:
        slots = np.arange(self.context)
        if position <= self.context - 2:
            return slots <= position + row
        if row == 1:
            return slots >= 0
        if self.causal or position == self.context:
            return slots != (position + 1) % self.context
        return slots != (position - 1) % self.context
