"""Mimi offline in float64, whole clip at once, written from the published definition and independently of the engine: no
streaming state, attention as a full masked matrix, transposed convs by overlap-add. The witness for geometries that have no
golden vectors."""

from __future__ import annotations

import math
from pathlib import Path

import gguf
import numpy as np

Array = np.ndarray
STRIDES = (4, 5, 6, 8)


class OfflineMimi:
    """The codec of one GGUF file. Arrays are [channels, steps]."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.tensors = {
            tensor.name.removeprefix("mimi."): np.asarray(tensor.data, np.float64).reshape(tuple(reversed(tensor.shape)))
            for tensor in reader.tensors
        }
        prefix = "moshi.mimi.transformer."
        self.layers = int(reader.fields[prefix + "num_layers"].contents())
        self.heads = int(reader.fields[prefix + "num_heads"].contents())
        self.context = int(reader.fields[prefix + "context"].contents())
        self.max_period = float(reader.fields[prefix + "max_period"].contents())
        self.first_step = 0
        """Absolute position of the clip's first step of the transformers."""

    def latent(self, pcm: Array) -> Array:
        """[samples] (whole frames) -> [dim, frames]"""
        x = self._conv(pcm[np.newaxis].astype(np.float64), "encoder.model.0.conv.conv")
        for stage, stride in enumerate(STRIDES):
            x = self._residual(x, f"encoder.model.{1 + 3 * stage}")
            x = self._conv(_elu(x), f"encoder.model.{3 + 3 * stage}.conv.conv", stride)
        x = self._transformer(self._conv(_elu(x), "encoder.model.14.conv.conv"), "encoder_transformer")
        return self._conv(x, "downsample.conv.conv.conv", 2, replicate=True)

    def codes(self, latent: Array, levels: int) -> tuple[Array, Array]:
        """[dim, frames] -> codes [levels, frames], and by how much each beat the second best, relative to its distance."""
        codes, margins = [], []
        for half, first, last in (("rvq_first", 0, 1), ("rvq_rest", 1, levels)):
            residual = self._project(latent, f"quantizer.{half}.input_proj.weight")
            for level in range(last - first):
                codebook = self.tensors[f"quantizer.{half}.vq.layers.{level}._codebook.embedding"]
                distances = ((codebook[:, :, np.newaxis] - residual) ** 2).sum(axis=1)
                best = distances.argmin(axis=0)
                two = np.sort(distances, axis=0)[:2]
                codes.append(best)
                margins.append((two[1] - two[0]) / np.maximum(two[1], 1e-30))
                residual = residual - codebook[best].T
        return np.array(codes), np.array(margins)

    def decode(self, codes: Array) -> Array:
        """[levels, frames] -> [frames * 1920]"""
        x = self._half("rvq_first", codes[:1])
        if len(codes) > 1:
            x = x + self._half("rvq_rest", codes[1:])
        x = self._transformer(self._upsample(x), "decoder_transformer")
        x = self._conv(x, "decoder.model.0.conv.conv")
        for stage, stride in enumerate(reversed(STRIDES)):
            x = self._transposed(_elu(x), f"decoder.model.{2 + 3 * stage}.convtr.convtr", stride)
            x = self._residual(x, f"decoder.model.{3 + 3 * stage}")
        return self._conv(_elu(x), "decoder.model.14.conv.conv")[0]

    def _half(self, half: str, codes: Array) -> Array:
        total = sum(
            self.tensors[f"quantizer.{half}.vq.layers.{level}._codebook.embedding"][row].T for level, row in enumerate(codes)
        )
        return self._project(total, f"quantizer.{half}.output_proj.weight")

    def _project(self, x: Array, name: str) -> Array:
        weight = self.tensors[name]
        return weight.reshape(weight.shape[0], -1) @ x

    def _conv(self, x: Array, name: str, stride: int = 1, replicate: bool = False) -> Array:
        weight = self.tensors[name + ".weight"]
        weight = weight.reshape(-1, x.shape[0], weight.shape[-1])
        kernel = weight.shape[2]
        past = np.repeat(x[:, :1], kernel - stride, axis=1) if replicate else np.zeros((x.shape[0], kernel - stride))
        padded = np.concatenate([past, x], axis=1)
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=1)[:, ::stride]
        y = np.einsum("oik,itk->ot", weight, windows)
        bias = self.tensors.get(name + ".bias")
        return y if bias is None else y + bias.reshape(-1, 1)

    def _transposed(self, x: Array, name: str, stride: int) -> Array:
        weight = self.tensors[name + ".weight"]
        kernel = weight.shape[2]
        y = np.zeros((weight.shape[1], (x.shape[1] - 1) * stride + kernel))
        for step in range(x.shape[1]):
            y[:, step * stride : step * stride + kernel] += np.einsum("iok,i->ok", weight, x[:, step])
        return y[:, : x.shape[1] * stride] + self.tensors[name + ".bias"].reshape(-1, 1)

    def _upsample(self, x: Array) -> Array:
        weight = self.tensors["upsample.convtr.convtr.convtr.weight"].reshape(x.shape[0], -1)
        y = np.zeros((x.shape[0], (x.shape[1] - 1) * 2 + weight.shape[1]))
        for step in range(x.shape[1]):
            y[:, step * 2 : step * 2 + weight.shape[1]] += weight * x[:, step : step + 1]
        return y[:, : x.shape[1] * 2]

    def _residual(self, x: Array, name: str) -> Array:
        hidden = self._conv(_elu(x), f"{name}.block.1.conv.conv")
        return x + self._conv(_elu(hidden), f"{name}.block.3.conv.conv")

    def _transformer(self, x: Array, side: str) -> Array:
        x = x.T
        for layer in range(self.layers):
            part = {
                key.removeprefix(f"{side}.transformer.layers.{layer}."): value
                for key, value in self.tensors.items()
                if key.startswith(f"{side}.transformer.layers.{layer}.")
            }
            normal = _layer_norm(x, part["norm1.weight"], part["norm1.bias"])
            x = x + part["layer_scale_1.scale"] * self._attention(normal, part)
            normal = _layer_norm(x, part["norm2.weight"], part["norm2.bias"])
            x = x + part["layer_scale_2.scale"] * (_gelu(normal @ part["linear1.weight"].T) @ part["linear2.weight"].T)
        return x.T

    def _attention(self, x: Array, part: dict[str, Array]) -> Array:
        steps, dim = x.shape
        projected = (x @ part["self_attn.in_projs.0.weight"].T).reshape(steps, 3, self.heads, dim // self.heads)
        query, key, value = projected.transpose(1, 2, 0, 3)
        query, key = self._rotate(query), self._rotate(key)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(dim // self.heads)
        distance = np.arange(steps)[:, np.newaxis] - np.arange(steps)
        scores = np.where((distance >= 0) & (distance < self.context), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ value).transpose(1, 0, 2).reshape(steps, dim) @ part["self_attn.out_projs.0.weight"].T

    def _rotate(self, x: Array) -> Array:
        pairs = x.shape[-1] // 2
        frequency = (self.max_period ** (-np.arange(pairs) / pairs)).astype(np.float32)
        position = np.arange(self.first_step, self.first_step + x.shape[1], dtype=np.float32)
        # One f32 product by definition; far from the beginning its rounding is what an angle differs by.
        angle = (position[:, np.newaxis] * frequency).astype(np.float64)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * weight.reshape(-1) + bias.reshape(-1)
