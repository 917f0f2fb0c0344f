"""Blocks of ggml's quantised types: what they stand for, and how f32 becomes them.

The same values give the same bytes on every machine: numbers whose last bit could depend on the order of a sum are added in a
fixed one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

Q8_0_BLOCK: Final = np.dtype([("scale", "<f2"), ("quants", "i1", (32,))])
"""One block of q8_0: value i is ``scale * quants[i]``."""
Q4_0_BLOCK: Final = np.dtype([("scale", "<f2"), ("nibbles", "u1", (16,))])
"""One block of q4_0: value i is ``scale * (nibble - 8)``; the low four bits of the bytes are the first half."""
Q4_K_BLOCK: Final = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("packed", "u1", (12,)), ("nibbles", "u1", (128,))])
"""One block of q4_k: eight groups of 32, each with a scale and a minimum of six bits, packed. Value i of a group is
``scale * group scale * nibble - minimum * group minimum``; two groups share 32 bytes."""
_GROUPS: Final = 8
_GROUP: Final = 32
_MOST_FACTOR: Final = 63
_MOST_NIBBLE: Final = 15
_SPANS: Final = (13.0, 13.5, 14.0, 14.5, 15.0, 15.5, 16.0)
"""Steps from a group's least to its largest value that are tried; more than 15 cuts off the ends."""
_AT_ONCE: Final = 2048
"""Groups that are fitted together: few enough to stay in the cache."""

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


def widen_blocks(data: bytes, type_name: str) -> Float32Array:
    """Read q8_0, q4_0 or q4_k as f32, as ggml does, bit for bit."""
    if type_name == "q8_0":
        blocks = np.frombuffer(data, Q8_0_BLOCK)
        return (blocks["scale"].astype(np.float32)[:, None] * blocks["quants"].astype(np.float32)).reshape(-1)
    if type_name == "q4_0":
        blocks = np.frombuffer(data, Q4_0_BLOCK)
        nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
        return (blocks["scale"].astype(np.float32)[:, None] * (nibbles.astype(np.float32) - 8)).reshape(-1)
    return _widen_q4_k(np.frombuffer(data, Q4_K_BLOCK))


def quantise_blocks(values: Float32Array, type_name: str, name: str) -> npt.NDArray[Any]:
    """Store whole blocks of q8_0, q4_0 or q4_k.

    Raises:
        CheckpointError: a value that is not finite or past what scales can hold.

    """
    if type_name == "q8_0":
        return _quantise_q8_0(values.reshape(-1, 32), name)
    if type_name == "q4_0":
        return _quantise_q4_0(values.reshape(-1, 32), name)
    return _quantise_q4_k(values.reshape(-1, _GROUPS * _GROUP), name)


def require_within(values: Float32Array, outside: npt.NDArray[np.bool_], name: str, expected: str) -> None:
    """Refuse the first value that is outside.

    Raises:
        CheckpointError: there is one.

    """
    if outside.any():
        found = values.reshape(-1)[int(np.argmax(np.broadcast_to(outside, values.shape)))]
        raise CheckpointError(f"tensor {shown(name)}", f"{found}", expected)


def _quantise_q8_0(blocks: Float32Array, name: str) -> npt.NDArray[Any]:
    """Take the largest magnitude over 127 as f16, the values over it rounded half away from zero."""
    scales = np.abs(blocks).max(axis=1, keepdims=True, initial=0) / np.float32(127)
    stored = np.empty(len(blocks), Q8_0_BLOCK)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        stored["scale"] = scales[:, 0]
        inverse = np.float32(1) / scales
        # Values too small for the scale to have an inverse are nothing in f16 either.
        scaled = blocks * np.where(np.isfinite(inverse), inverse, np.float32(0))
    outside = ~np.isfinite(stored["scale"].astype(np.float32))[:, None] | ~np.isfinite(blocks)
    require_within(blocks, outside, name, "finite values within 8319008 for q8_0")
    whole = np.floor(np.abs(scaled))
    rounded = whole + np.floor(2 * (np.abs(scaled) - whole))
    stored["quants"] = np.copysign(rounded, scaled).astype(np.int8)
    return stored


def _quantise_q4_0(blocks: Float32Array, name: str) -> npt.NDArray[Any]:
    """Make the value of the largest magnitude -8: its eighth, negated, is the scale."""
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scales = largest / np.float32(-8)
    stored = np.empty(len(blocks), Q4_0_BLOCK)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        stored["scale"] = scales[:, 0]
        inverse = np.float32(1) / scales
        inverse = np.where(np.isfinite(inverse), inverse, np.float32(0))
        outside = ~np.isfinite(stored["scale"].astype(np.float32))[:, None] | ~np.isfinite(blocks)
        require_within(blocks, outside, name, "finite values within 524032 for q4_0")
        nibbles = np.trunc(blocks.astype(np.float64) * inverse + 8.5).clip(0, _MOST_NIBBLE).astype(np.uint8)
    stored["nibbles"] = nibbles[:, :16] | nibbles[:, 16:] << 4
    return stored


def _quantise_q4_k(blocks: Float32Array, name: str) -> npt.NDArray[Any]:
    """Fit every group by least squares, then the scales and minima of eight groups to one of each."""
    require_within(blocks, ~np.isfinite(blocks), name, _Q4_K_RANGE)
    groups = blocks.reshape(-1, _GROUP)
    fitted = [_fit(groups[at : at + _AT_ONCE]) for at in range(0, len(groups), _AT_ONCE)]
    scales, minima = (np.concatenate([part[i] for part in fitted]).reshape(-1, _GROUPS) for i in range(2))
    stored = np.empty(len(blocks), Q4_K_BLOCK)
    scale, group_scales = _shared_factor(scales)
    minimum, group_minima = _shared_factor(minima)
    outside = ~(np.isfinite(scale) & np.isfinite(minimum))[:, None]
    require_within(blocks, outside, name, _Q4_K_RANGE)
    stored["scale"], stored["minimum"] = scale, minimum
    stored["packed"] = _packed(group_scales, group_minima)
    step = (scale.astype(np.float64)[:, None] * group_scales)[:, :, None]
    lowest = (minimum.astype(np.float64)[:, None] * group_minima)[:, :, None]
    places = (blocks.reshape(-1, _GROUPS, _GROUP) + lowest) / np.where(step == 0, np.inf, step)
    nibbles = np.rint(places).clip(0, _MOST_NIBBLE).astype(np.uint8).reshape(-1, _GROUPS // 2, 2, _GROUP)
    stored["nibbles"] = (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(len(blocks), -1)
    return stored


_Q4_K_RANGE: Final = "finite values within 4126752 for q4_k"


def _fit(groups: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Return scales and minima, neither below 0, of values that scale * (0 .. 15) - minimum shall come near.

    For each number of steps tried the nearest integers are taken, and to them the best scale and minimum; of all that the one
    with the least squared error.
    """
    x = np.ascontiguousarray(groups.T, np.float64)
    low, total = np.minimum(x.min(axis=0), 0), _total(x)
    spread = x.max(axis=0) - low
    best_scale, best_minimum, best_gain = np.zeros_like(low), -low, np.full_like(low, -np.inf)
    above = x - low
    for span in _SPANS:
        places = np.rint(above * (span / np.where(spread == 0, np.inf, spread))).clip(0, _MOST_NIBBLE)
        scale, offset, gain = _least_squares(places, x, total)
        better = gain > best_gain
        best_scale, best_gain = np.where(better, scale, best_scale), np.where(better, gain, best_gain)
        best_minimum = np.where(better, -offset, best_minimum)
    return best_scale, best_minimum


def _least_squares(
    places: Float64Array, x: Float64Array, total: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return scale, offset (not above 0) and by how much they lessen the sum of squares."""
    count = len(x)
    first, second, mixed = _total(places), _total(places * places), _total(places * x)
    spread = count * second - first * first
    scale = (count * mixed - first * total) / np.where(spread == 0, np.inf, spread)
    offset = (total - scale * first) / count
    pinned = (offset > 0) | ((spread == 0) & (second > 0))
    scale = np.where(pinned, np.maximum(mixed, 0) / np.where(second == 0, np.inf, second), scale)
    offset = np.where(pinned, 0.0, offset)
    return scale, offset, scale * mixed + offset * total


def _total(rows: Float64Array) -> Float64Array:
    """Add 32 rows, halves upon halves."""
    while len(rows) > 1:
        half = len(rows) // 2
        rows = rows[:half] + rows[half:]
    first: Float64Array = rows[0]
    return first


def _shared_factor(factors: Float64Array) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.uint8]]:
    """Return for rows of factors one of f16, and whole numbers of 0 .. 63 whose products with it come near them."""
    largest = factors.max(axis=1)
    with np.errstate(over="ignore"):
        shared = (largest / _MOST_FACTOR).astype(np.float16)
    by = np.where(largest == 0, np.inf, largest)[:, None]
    return shared, np.rint(factors * (_MOST_FACTOR / by)).astype(np.uint8)


def _packed(scales: npt.NDArray[np.uint8], minima: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Six bits each: four groups whole, of the other four the low bits in bytes of their own, the high ones above the first."""
    high = [scales[:, :4] | scales[:, 4:] >> 4 << 6, minima[:, :4] | minima[:, 4:] >> 4 << 6]
    return np.concatenate([*high, scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)


def _widen_q4_k(blocks: npt.NDArray[Any]) -> Float32Array:
    packed = blocks["packed"]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1).astype(np.float32)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1).astype(np.float32)
    step = blocks["scale"].astype(np.float32)[:, None] * scales
    lowest = blocks["minimum"].astype(np.float32)[:, None] * minima
    pairs = blocks["nibbles"].reshape(-1, _GROUPS // 2, 1, _GROUP)
    nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, _GROUPS, _GROUP).astype(np.float32)
    return (step[:, :, None] * nibbles - lowest[:, :, None]).reshape(-1)
