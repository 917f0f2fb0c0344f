"""The tensors of a synthetic checkpoint: names, shapes, and values that can be had run by run.

Value i of tensor T is ``(2u - 1) * bound (+ offset)``, with ``u`` the top 24 bits, as a fraction, of
``splitmix64(fnv1a64(T) + (i + 1) * GOLDEN)``. Only integer operations, and IEEE operations in a fixed order, are
involved; no libm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Values = Callable[[int, int], Float32Array]
"""``values(start, count)``: that run of a tensor's elements, in row-major order."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
RATIOS: Final = (8, 6, 5, 4)
"""Strides of the decoder's stages; the encoder runs them backwards."""
_ELU_GAIN: Final = 1.25
_SQRT_3: Final = 1.7320508
_DEAD_ENTRY: Final = 5
"""Entry of each quantiser's first codebook whose usage lies below the clamp of 1e-5."""


@dataclass(frozen=True)
class SynthPreset:
    """Sizes of a synthetic model."""

    name: str
    filters: int
    dim: int
    layers: int
    heads: int
    mlp_width: int
    context_steps: int
    entries: int
    codebook_dim: int
    levels: int = 32
    default_levels: int = 32


@dataclass(frozen=True)
class SynthTensor:
    """One tensor: its shape, and a function from (start, count) to that run of its elements, in row-major order."""

    shape: tuple[int, ...]
    values: Values

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))


def plan_tensors(preset: SynthPreset) -> dict[str, SynthTensor]:
    """List every tensor of a preset by its published name, in no particular order."""
    tensors: dict[str, SynthTensor] = {}
    for part in (_encoder, _decoder, _transformers, _resampling, _quantizers):
        tensors.update(part(preset))
    return tensors


def _fnv1a64(text: str) -> int:
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = ((state ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return state


def random_bits(name: str, start: int, count: int) -> npt.NDArray[np.uint64]:
    """Return that run of a name's stream of 64-bit numbers."""
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= _GOLDEN
    z += np.uint64(_fnv1a64(name))
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _noise(name: str) -> Values:
    """Return the values -1 .. 1 (1 excluded) of a name: multiples of 2^-23."""

    def values(start: int, count: int) -> Float32Array:
        z = random_bits(name, start, count)
        z >>= np.uint64(40)
        centred = z.view(np.int64)
        centred -= 1 << 23
        return centred.astype(np.float32) * np.float32(2.0**-23)

    return values


def uniform(name: str, shape: tuple[int, ...], bound: float | np.float32, offset: float = 0.0) -> SynthTensor:
    """Return a tensor of a name's values between ``offset - bound`` and ``offset + bound``."""
    noise = _noise(name)

    def values(start: int, count: int) -> Float32Array:
        drawn = noise(start, count)
        drawn *= np.float32(bound)
        if offset:
            drawn += np.float32(offset)
        return drawn

    return SynthTensor(shape, values)


def _bound(gain: float, fan_in: int) -> np.float32:
    """Return the bound under which a sum over ``fan_in`` unit-variance inputs has the deviation ``gain``."""
    return np.float32(float(np.sqrt(np.float64(3.0) / fan_in)) * gain)


def _conv(path: str, inputs: int, outputs: int, kernel: int, gain: float, *, bias: float = 0.05) -> dict[str, SynthTensor]:
    return {
        f"{path}.weight": uniform(f"{path}.weight", (outputs, inputs, kernel), _bound(gain, inputs * kernel)),
        f"{path}.bias": uniform(f"{path}.bias", (outputs,), bias),
    }


def _transposed_conv(path: str, inputs: int, outputs: int, stride: int) -> dict[str, SynthTensor]:
    shape = (inputs, outputs, 2 * stride)
    return {
        f"{path}.weight": uniform(f"{path}.weight", shape, _bound(_ELU_GAIN, inputs * 2)),
        f"{path}.bias": uniform(f"{path}.bias", (outputs,), 0.05),
    }


def _residual(path: str, channels: int) -> dict[str, SynthTensor]:
    return {
        **_conv(f"{path}.block.1.conv.conv", channels, channels // 2, 3, _ELU_GAIN),
        **_conv(f"{path}.block.3.conv.conv", channels // 2, channels, 1, 0.6),
    }


def _encoder(preset: SynthPreset) -> dict[str, SynthTensor]:
    channels = preset.filters
    tensors = _conv("encoder.model.0.conv.conv", 1, channels, 7, 4.0, bias=0.1)
    for stage, stride in enumerate(reversed(RATIOS)):
        at = 1 + 3 * stage
        tensors |= _residual(f"encoder.model.{at}", channels)
        tensors |= _conv(f"encoder.model.{at + 2}.conv.conv", channels, 2 * channels, 2 * stride, _ELU_GAIN * 0.95)
        channels *= 2
    return tensors | _conv("encoder.model.14.conv.conv", channels, preset.dim, 3, _ELU_GAIN)


def _decoder(preset: SynthPreset) -> dict[str, SynthTensor]:
    channels = 16 * preset.filters
    tensors = _conv("decoder.model.0.conv.conv", preset.dim, channels, 7, 1.0)
    for stage, stride in enumerate(RATIOS):
        at = 2 + 3 * stage
        tensors |= _transposed_conv(f"decoder.model.{at}.convtr.convtr", channels, channels // 2, stride)
        channels //= 2
        tensors |= _residual(f"decoder.model.{at + 1}", channels)
    return tensors | _conv("decoder.model.14.conv.conv", channels, 1, 3, 0.15, bias=0.01)


def _transformers(preset: SynthPreset) -> dict[str, SynthTensor]:
    tensors: dict[str, SynthTensor] = {}
    for side in ("encoder", "decoder"):
        for layer in range(preset.layers):
            tensors |= _transformer_layer(f"{side}_transformer.transformer.layers.{layer}.", preset)
    return tensors


def _transformer_layer(path: str, preset: SynthPreset) -> dict[str, SynthTensor]:
    dim, width = preset.dim, preset.mlp_width

    def linear(name: str, outputs: int, inputs: int, gain: float) -> dict[str, SynthTensor]:
        return {path + name: uniform(path + name, (outputs, inputs), _bound(gain, inputs))}

    tensors = {
        path + "self_attn.in_proj_weight": _attention_input(path + "self_attn.in_proj_weight", dim),
        **linear("self_attn.out_proj.weight", dim, dim, 1.5),
        **linear("linear1.weight", width, dim, 1.2),
        **linear("linear2.weight", dim, width, 1.4),
    }
    for name in ("norm1", "norm2"):
        tensors[f"{path}{name}.weight"] = uniform(f"{path}{name}.weight", (dim,), 0.2, 1.0)
        tensors[f"{path}{name}.bias"] = uniform(f"{path}{name}.bias", (dim,), 0.1)
    for name in ("layer_scale_1", "layer_scale_2"):
        tensors[f"{path}{name}.scale"] = uniform(f"{path}{name}.scale", (dim,), 0.1, 0.2)
    return tensors


def _attention_input(name: str, dim: int) -> SynthTensor:
    """Query and key rows are a quarter larger, which sharpens the attention."""
    plain = uniform(name, (3 * dim, dim), _bound(1.0, dim))

    def values(start: int, count: int) -> Float32Array:
        drawn = plain.values(start, count)
        drawn[: max(0, 2 * dim * dim - start)] *= np.float32(1.25)
        return drawn

    return SynthTensor(plain.shape, values)


def _resampling(preset: SynthPreset) -> dict[str, SynthTensor]:
    up = "upsample.convtr.convtr.convtr.weight"
    down = "downsample.conv.conv.conv.weight"
    plain = uniform(down, (preset.dim, preset.dim, 4), _bound(1.3, preset.dim * 4))

    def without_mean(start: int, count: int) -> Float32Array:
        """Three quarters of the taps' mean removed, so that the latent's constant part is damped."""
        taps = plain.values(start, count).reshape(-1, 4)
        mean = ((taps[:, 0] + taps[:, 1]) + (taps[:, 2] + taps[:, 3])) * np.float32(0.25)
        return (taps - (mean * np.float32(0.75))[:, None]).reshape(-1)

    return {down: SynthTensor(plain.shape, without_mean), up: uniform(up, (preset.dim, 1, 4), _bound(1.0, 2))}


def _quantizers(preset: SynthPreset) -> dict[str, SynthTensor]:
    tensors: dict[str, SynthTensor] = {}
    for half, levels in (("rvq_first", 1), ("rvq_rest", preset.levels - 1)):
        path = f"quantizer.{half}."
        shape_in, shape_out = (preset.codebook_dim, preset.dim, 1), (preset.dim, preset.codebook_dim, 1)
        tensors[path + "input_proj.weight"] = uniform(path + "input_proj.weight", shape_in, _bound(1.0, preset.dim))
        bound = _bound(2.0, preset.codebook_dim)
        tensors[path + "output_proj.weight"] = uniform(path + "output_proj.weight", shape_out, bound)
        scale = np.float32(0.30)
        for level in range(levels):
            tensors |= _codebook(f"{path}vq.layers.{level}._codebook.", preset, float(scale), dead_entry=level == 0)
            scale *= np.float32(0.965)
    return tensors


def _codebook(path: str, preset: SynthPreset, scale: float, *, dead_entry: bool) -> dict[str, SynthTensor]:
    usage = uniform(path + "cluster_usage", (preset.entries,), 40.0, 50.0).values(0, preset.entries)
    if dead_entry:
        usage[_DEAD_ENTRY] = np.float32(1e-7)
    width = preset.codebook_dim
    rows = uniform(path + "embedding", (preset.entries, width), scale * _SQRT_3)
    clamped = np.maximum(usage, np.float32(1e-5))

    def sums(start: int, count: int) -> Float32Array:
        return rows.values(start, count) * clamped[np.arange(start, start + count) // width]

    return {
        path + "cluster_usage": SynthTensor(usage.shape, lambda start, count: usage[start : start + count]),
        path + "embedding_sum": SynthTensor(rows.shape, sums),
        path + "_initialized": SynthTensor((1,), lambda _start, count: np.ones(count, np.float32)),
    }
