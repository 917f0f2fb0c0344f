"""Inputs on which our C library functions are compared with glibc 2.36's, and glibc itself.

On a machine whose C library is glibc 2.36 and whose CPU has FMA,

    python tests/ext/kernels/libm_inputs.py tests/golden/vectors/libm_glibc.npz

makes the committed digests again, by asking the C library for every value (some minutes).
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

POSITIONS = 1 << 21
PAIRS = 32
F32 = np.float32
Function = Callable[[np.ndarray], np.ndarray]


def frequencies(pairs: int = PAIRS) -> np.ndarray:
    """The rotary frequencies of ggml's graph for a period of 10000, float32 [pairs]."""
    exponents = [F32(F32(F32(-math.log(10000)) * F32(j)) / F32(pairs)) for j in range(pairs)]
    return np.array([math.exp(float(exponent)) for exponent in exponents], F32)


def rotary_angles(pair: int, step: int = 1) -> np.ndarray:
    """Every ``step``-th position's angle."""
    return np.arange(0, POSITIONS, step, dtype=F32) * frequencies()[pair]


def floats(first_bits: int, last_bits: int, step: int) -> np.ndarray:
    """Every ``step``-th float32 of a range of bit patterns."""
    return np.arange(first_bits, last_bits, step, dtype=np.uint32).view(F32)


def expf_inputs(step: int = 97) -> np.ndarray:
    """-0 .. -104"""
    return floats(0x80000000, 0xC2D00000, step)


def expm1f_inputs(step: int = 97) -> np.ndarray:
    """-0 .. -64, and 0 .. 88: tanh asks for those"""
    return np.concatenate([floats(0x80000000, 0xC2800000, step), floats(0, 0x42B00000, step)])


def tanhf_inputs(step: int = 97) -> np.ndarray:
    """All magnitudes up to 64, both signs"""
    return np.concatenate([floats(0, 0x42800000, step), floats(0x80000000, 0xC2800000, step)])


def digest(parts: Iterable[np.ndarray]) -> np.ndarray:
    """SHA-256 of the bits, uint8 [32]."""
    total = hashlib.sha256()
    for part in parts:
        total.update(np.ascontiguousarray(part, "<f4").data)
    return np.frombuffer(total.digest(), np.uint8)


def c_library() -> dict[str, Function] | None:
    """The machine's own functions, where its C library is glibc 2.36 on an x86-64 CPU with FMA; else None."""
    if platform.libc_ver() != ("glibc", "2.36") or platform.machine() != "x86_64":
        return None
    if " fma " not in Path("/proc/cpuinfo").read_text():
        return None
    library = ctypes.CDLL("libm.so.6")
    return {name: _vectorized(library, name) for name in ("expf", "expm1f", "tanhf", "sinf", "cosf")}


def _vectorized(library: ctypes.CDLL, name: str) -> Function:
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    return lambda values: np.array([function(value) for value in values.tolist()], F32)


def all_digests(functions: dict[str, Function], progress: Callable[[str], None]) -> dict[str, np.ndarray]:
    """One digest per function, and one per rotary frequency."""
    found = {}
    for name, inputs in (("expf", expf_inputs), ("expm1f", expm1f_inputs), ("tanhf", tanhf_inputs)):
        progress(name)
        found[name] = digest([functions[name](inputs())])
    for name in ("sinf", "cosf"):
        for pair in range(PAIRS):
            progress(f"{name} {pair}")
            found[f"{name}.{pair}"] = digest([functions[name](rotary_angles(pair))])
    return found


if __name__ == "__main__":
    functions = c_library()
    if functions is None:
        sys.exit("this is not glibc 2.36 with FMA")
    digests = all_digests(functions, lambda name: print(name, flush=True))
    angles = np.arange(24, dtype=F32)[:, np.newaxis] * frequencies(4)
    turns = np.stack([functions[name](angles.ravel()).reshape(angles.shape) for name in ("cosf", "sinf")], axis=-1)
    np.savez_compressed(sys.argv[1], rotary=turns, **digests)
