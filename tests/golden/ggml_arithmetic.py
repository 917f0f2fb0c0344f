"""The primitive operations of `ggml` numerics in NumPy, written from docs/numerics.md and independently of the engine.

Arrays are float32 unless said otherwise; every operation written as one rounds once. Dot products run over the last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

Array = np.ndarray
F32, F64 = np.float32, np.float64


def bits(values: Array) -> Array:
    return np.ascontiguousarray(values, F32).view(np.uint32)


def from_bits(values: Array | int) -> Array:
    return np.asarray(values, np.uint32).view(F32)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a b + c, rounded once: the exact product is a double, the sum is rounded to odd in double, then to f32."""
    product, addend = np.multiply(a, b, dtype=F64), np.asarray(c, F64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    even = (total.view(np.int64) & 1) == 0
    toward = np.where(error > 0, np.inf, -np.inf)
    odd = np.where((error != 0) & even & np.isfinite(total), np.nextafter(total, toward), total)
    return odd.astype(F32)


def half(x: Array) -> Array:
    """Rounded to f16."""
    return x.astype(np.float16).astype(F32)


def bfloat(x: Array) -> Array:
    """Rounded to bf16, ties to even."""
    u = bits(x)
    return from_bits((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000)


def _lanes(x: Array, y: Array, accumulate: Callable[[Array, Array, Array], Array]) -> Array:
    """s[l] of eight lanes: four accumulators of eight over blocks of 32 elements, added crosswise."""
    x, y = np.broadcast_arrays(x, y)
    total = np.zeros((*x.shape[:-1], 32), F32)
    for start in range(0, x.shape[-1] // 32 * 32, 32):
        total = accumulate(x[..., start : start + 32], y[..., start : start + 32], total)
    a = [total[..., 8 * j : 8 * j + 8] for j in range(4)]
    return (a[0] + a[2]) + (a[1] + a[3])


def _tail(x: Array, y: Array) -> list[tuple[Array, Array]]:
    return [(x[..., i], y[..., i]) for i in range(x.shape[-1] // 32 * 32, x.shape[-1])]


def dot32(x: Array, y: Array) -> Array:
    s = _lanes(x, y, fma)
    t = s[..., :4] + s[..., 4:]
    total = (t[..., 0] + t[..., 1]) + (t[..., 2] + t[..., 3])
    for a, b in _tail(x, y):
        total = fma(a, b, total)
    return total


def dot16(x: Array, y: Array) -> Array:
    """Operands hold f16 values."""
    s = _lanes(x, y, fma)
    t = s[..., :4] + s[..., 4:]
    total = ((t[..., 0] + t[..., 1]) + (t[..., 2] + t[..., 3])).astype(F64)
    for a, b in _tail(x, y):
        total = total + (a * b).astype(F64)
    return total.astype(F32)


def dotb(x: Array, y: Array) -> Array:
    """Operands hold bf16 values."""
    total = hsum8(_lanes(x, y, lambda a, b, c: a * b + c)).astype(F64)
    for a, b in _tail(x, y):
        total = total + (a * b).astype(F64)
    return total.astype(F32)


def hsum8(v: Array) -> Array:
    g = v[..., 4:] + v[..., :4]
    return (g[..., 0] + g[..., 2]) + (g[..., 1] + g[..., 3])


def expv(x: Array) -> Array:
    """The vector exponential."""
    one = lambda text: F32(float.fromhex(text))  # noqa: E731
    magic = one("0x1.8p23")
    z = fma(x, one("0x1.715476p+0"), magic)
    n = z - magic
    b = fma(-n, one("0x1.7f7d1cp-20"), fma(-n, one("0x1.62e4p-1"), x))
    e = bits(z) << np.uint32(23)
    k = from_bits(e + np.uint32(0x3F800000))
    u = b * b
    first = fma(one("0x1.0e4020p-7"), b, one("0x1.573e2ep-5"))
    second = fma(one("0x1.555e66p-3"), b, one("0x1.fffdb6p-2"))
    j = fma(fma(first, u, second), u, one("0x1.ffffecp-1") * b)
    g = np.where(n <= 0, np.uint32(0x82000000), np.uint32(0))
    s1, s2 = from_bits(g + np.uint32(0x7F000000)), from_bits(e - g)
    far = np.where(np.abs(n) > 192, s1 * s1, fma(s2, j, s2) * s1)
    return np.where(np.abs(n) > 126, far, fma(k, j, k))


def expf(x: float) -> np.float32:
    """The C library's exponential, in exact arithmetic rounded where it rounds."""
    if x == -np.inf:
        return F32(0)
    inverse = float.fromhex("0x1.71547652b82fep+0") * 32
    c0 = float.fromhex("0x1.c6af84b912394p-5") / 32**3
    c1 = float.fromhex("0x1.ebfce50fac4f3p-3") / 32**2
    c2 = float.fromhex("0x1.62e42ff0c52d6p-1") / 32
    n = round(inverse * x)

    def fused(a: float, b: float, c: float) -> float:
        return float(Fraction(a) * Fraction(b) + Fraction(c))

    r = fused(inverse, x, -n)
    power = 2.0 ** ((n % 32) / 32) * 2.0 ** (n // 32)
    return F32(fused(fused(c0, r, c1), r * r, fused(c2, r, 1.0)) * power)


def expm1f(x: Array) -> Array:
    """The C library's expm1 for x <= 0."""
    q = [from_bits(value) for value in (0xBD088889, 0x3AD00D01, 0xB8A670CD, 0x36867E54, 0xB457EDBB)]
    high_part, low_part, inverse = from_bits(0x3F317180), from_bits(0x3717F7D1), from_bits(0x3FB8AA3B)
    magnitude = bits(x) & np.uint32(0x7FFFFFFF)
    k = np.trunc(inverse * x - F32(0.5))
    k = np.where(magnitude < 0x3F851592, F32(-1), k)
    k = np.where(magnitude <= 0x3EB17218, F32(0), k)
    high, low = x - k * high_part, k * low_part
    r = high - low
    c = (high - r) - low
    half_r = F32(0.5) * r
    square = r * half_r
    series = F32(1) + square * (q[0] + square * (q[1] + square * (q[2] + square * (q[3] + square * q[4]))))
    t = F32(3) - series * half_r
    e = square * ((series - t) / (F32(6) - r * t))
    near_zero = r - (r * e - square)
    e = (r * (e - c) - c) - square
    scaled = from_bits(bits(F32(1) - (e - r)) + (k.astype(np.int32).view(np.uint32) << np.uint32(23))) - F32(1)
    result = np.where(k == 0, near_zero, np.where(k == -1, F32(0.5) * (r - e) - F32(0.5), scaled))
    return np.where(magnitude >= 0x4195B844, F32(-1), np.where(magnitude < 0x33000000, x, result))


def elu(x: Array) -> Array:
    return np.where(x > 0, x, expm1f(np.where(x > 0, F32(0), x)))


def gelu(x: Array, table: Array) -> Array:
    """``table``: uint16 by the bits of a half."""
    looked_up = table[x.astype(np.float16).view(np.uint16)].view(np.float16).astype(F32)
    return np.where(x <= -10, F32(0), np.where(x >= 10, x, looked_up))


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    """[dim]"""
    dim = F32(len(x))
    total = F64(0)
    for value in x:
        total = total + F64(value)
    y = x - F32(total) / dim
    squares = F64(0)
    for start in range(0, len(x) // 8 * 8, 8):
        squares = squares + F64(hsum8(y[start : start + 8] * y[start : start + 8]))
    for value in y[len(x) // 8 * 8 :]:
        squares = squares + F64(value * value)
    scale = F32(1) / np.sqrt(F32(squares / F64(len(x))) + F32(1e-5))
    return y * scale * weight + bias


def attention(query: Array, keys: Array, values: Array, allowed: Array, scale: float) -> Array:
    """query [dim], keys and values [slots, dim] hold bf16 values; allowed bool [slots] -> [dim]"""
    scores = np.where(allowed, dotb(keys, query) * F32(scale), F32(-np.inf))
    shifted = scores - scores.max()
    weights = expv(shifted)
    total = F64(0)
    whole = len(scores) // 8 * 8
    for start in range(0, whole, 8):
        total = total + F64(hsum8(weights[start : start + 8]))
    for slot in range(whole, len(scores)):
        weights[slot] = expf(float(shifted[slot]))
        total = total + F64(weights[slot])
    weights = weights * F32(1 / total)
    return dotb(values.T, bfloat(weights))


def nearest(codewords: Array, residual: Array) -> int:
    """The last of the largest 1 / (1 + d)."""
    distance = np.zeros(len(codewords), F64)
    for k in range(len(residual)):
        difference = codewords[:, k] - residual[k]
        distance = distance + (difference * difference).astype(F64)
    closeness = F32(1) / (distance.astype(F32) + F32(1))
    return int(len(codewords) - 1 - np.argmax(closeness[::-1]))
