"""Where two results first differ, by frame, level, step and channel: compared bit for bit, or within a bound."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Codes = npt.NDArray[np.integer[Any]]

DIGEST_BYTES: Final = 8


@dataclass(frozen=True)
class Difference:
    """The first value that differs. What a place does not have is None."""

    what: str
    """``codes``, ``sound``, or the name of a stage."""
    expected: str
    found: str
    frame: int | None = None
    level: int | None = None
    step: int | None = None
    """Time index within the frame: the sample, in sound."""
    channel: int | None = None
    differing: int | None = None
    """How many values differ in all, of ``compared``."""
    compared: int | None = None

    def __str__(self) -> str:
        place = [
            f"{name} {value}"
            for name, value in (("frame", self.frame), ("level", self.level), ("step", self.step), ("channel", self.channel))
            if value is not None
        ]
        count = f" ({self.differing} of {self.compared} differ)" if self.differing is not None else ""
        return f"{self.what}, {', '.join(place) or 'as a whole'}: expected {self.expected}, found {self.found}{count}"


def compare_codes(expected: Codes, found: Codes, alternative: Codes | None = None, what: str = "codes") -> Difference | None:
    """Compare codes [levels, frames] in order of time; where ``alternative`` is given, a code may equal either."""
    if expected.shape != found.shape:
        return Difference(what, f"shape {list(expected.shape)}", f"shape {list(found.shape)}")
    wrong = expected != found
    if alternative is not None:
        wrong &= alternative != found
    if not wrong.any():
        return None
    frame, level = (int(index) for index in np.argwhere(wrong.T)[0])
    values = str(expected[level, frame]), str(found[level, frame])
    return Difference(what, *values, frame=frame, level=level, differing=int(wrong.sum()), compared=wrong.size)


def compare_sound(expected: Float32Array, found: Float32Array, frame_samples: int) -> Difference | None:
    """Compare the bits of float32 [samples]."""
    if expected.shape != found.shape:
        return Difference("sound", f"{len(expected)} samples", f"{len(found)} samples")
    wrong = expected.view(np.uint32) != found.view(np.uint32)
    if not wrong.any():
        return None
    frame, step = divmod(int(np.argmax(wrong)), frame_samples)
    at = frame * frame_samples + step
    values = exact_text(expected[at]), exact_text(found[at])
    return Difference("sound", *values, frame=frame, step=step, differing=int(wrong.sum()), compared=wrong.size)


def compare_steps(what: str, expected: Float32Array, found: Float32Array, frame: int) -> Difference | None:
    """Compare the bits of a stage's values [channels, steps] of one frame, step by step."""
    if expected.shape != found.shape:
        return Difference(what, f"shape {list(expected.shape)}", f"shape {list(found.shape)}", frame=frame)
    wrong = np.ascontiguousarray(expected).view(np.uint32) != np.ascontiguousarray(found).view(np.uint32)
    if not wrong.any():
        return None
    step, channel = (int(index) for index in np.argwhere(wrong.T)[0])
    values = exact_text(expected[channel, step]), exact_text(found[channel, step])
    count = int(wrong.sum())
    return Difference(what, *values, frame=frame, step=step, channel=channel, differing=count, compared=wrong.size)


def compare_closely(what: str, expected: Float32Array, found: Float32Array, frame: int, bound: float) -> Difference | None:
    """Compare a stage's values [channels, steps] by their relative RMS error; names the value furthest off."""
    if expected.shape != found.shape:
        return Difference(what, f"shape {list(expected.shape)}", f"shape {list(found.shape)}", frame=frame)
    error = relative_rms(expected, found)
    if error <= bound:
        return None
    distance = np.nan_to_num(np.abs(expected.astype(np.float64) - found), nan=np.inf)
    channel, step = (int(index) for index in np.unravel_index(int(np.argmax(distance)), distance.shape))
    wanted = f"{exact_text(expected[channel, step])} and a relative RMS error of at most {bound:g}"
    seen = f"{exact_text(found[channel, step])} and {error:.3g}"
    return Difference(what, wanted, seen, frame=frame, step=step, channel=channel)


def compare_digests(
    what: str, expected: npt.NDArray[np.uint8], found: npt.NDArray[np.uint8], frame: int | None = None
) -> Difference | None:
    """Compare row digests [n, DIGEST_BYTES], one per frame, or one per step of ``frame`` where that is given."""
    if expected.shape != found.shape:
        return Difference(what, f"{len(expected)} digests", f"{len(found)} digests", frame=frame)
    wrong = (expected != found).any(axis=1)
    if not wrong.any():
        return None
    row = int(np.argmax(wrong))
    values = f"digest {expected[row].tobytes().hex()}", f"digest {found[row].tobytes().hex()}"
    place = (row, None) if frame is None else (frame, row)
    return Difference(what, *values, frame=place[0], step=place[1], differing=int(wrong.sum()), compared=len(wrong))


def digest_rows(values: Float32Array) -> npt.NDArray[np.uint8]:
    """Return one digest (BLAKE2b, 8 bytes) of the bits of each row: [rows, n] -> uint8 [rows, DIGEST_BYTES]."""
    rows = np.ascontiguousarray(values, dtype="<f4")
    joined = b"".join(hashlib.blake2b(row.tobytes(), digest_size=DIGEST_BYTES).digest() for row in rows)
    return np.frombuffer(joined, np.uint8).reshape(len(rows), DIGEST_BYTES).copy()


def relative_rms(expected: npt.NDArray[Any], found: npt.NDArray[Any]) -> float:
    """Return the RMS of the error over the RMS of what was expected; 0 where both are silent."""
    wide = expected.astype(np.float64)
    error, reference = float(((wide - found) ** 2).sum()), float((wide**2).sum())
    if error == 0:
        return 0.0
    return float(np.sqrt(error / reference)) if reference and np.isfinite(error) else float("inf")


def exact_text(value: np.float32) -> str:
    """Return a float32 as decimal and as bits."""
    return f"{float(value):.9g} (0x{np.float32(value).view(np.uint32):08x})"
