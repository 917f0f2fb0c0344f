"""How fast a frame could be: the work that the model's geometry asks for, and what this machine can do at most.

No order of computing can need less than ``max(flop / peak, bytes / bandwidth)``: every multiplication has to be done, and every
weight read once a batch, every key and value within the context once a frame of each stream. Activations, which fit the
caches, and everything that is not a multiplication of a matrix or of attention count nothing, so the limit is a lower bound.
The peak is that of chains of fused multiplications and additions in registers, the bandwidth that of reading as many bytes
again and again: both measured, by the instruction set and the number of threads in question, and the best of many tries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from codec_core import _ext
from codec_core.bench.streams import STEPS_PER_FRAME

PEAK_SECONDS: Final = 0.2
BANDWIDTH_SECONDS: Final = 0.5
_KEYS_AND_VALUES: Final = 2
_FLOAT_BYTES: Final = 4


@dataclass(frozen=True)
class Work:
    """What one frame of one stream asks for in one direction."""

    macs: int
    """Multiplications with an addition."""
    weights: int
    """Weights that take part, each counted once."""
    context_bytes: int
    """Keys and values within reach of attention."""

    def __add__(self, other: Work) -> Work:
        """Return the work of both."""
        return Work(self.macs + other.macs, self.weights + other.weights, self.context_bytes + other.context_bytes)


_NO_WORK: Final = Work(0, 0, 0)


@dataclass(frozen=True)
class Workload:
    """The work of a frame in each direction, and how many bytes a weight takes in memory."""

    encode: Work
    decode: Work
    bytes_per_weight: float
    """The packed copy by the number of weights in the file."""

    def of(self, direction: str) -> Work:
        """Return the work of ``encode``, ``decode`` or, both together, ``duplex``."""
        return {"encode": self.encode, "decode": self.decode, "duplex": self.encode + self.decode}[direction]

    def limit_ms(self, direction: str, batch: int, peak: Peak) -> float:
        """Return the least time a frame of one stream can take in a batch, in milliseconds."""
        work = self.of(direction)
        moved_bytes = work.weights * self.bytes_per_weight / batch + work.context_bytes
        return 1000 * max(2 * work.macs / peak.flop_per_s, moved_bytes / peak.read_bytes_per_s)


@dataclass(frozen=True)
class Peak:
    """What so many threads of this machine reach with one instruction set."""

    isa: str
    threads: int
    flop_per_s: float
    read_bytes_per_s: float
    read_bytes: int
    """Size of the memory that was read for it."""

    @classmethod
    def measure(cls, isa: str, threads: int, read_bytes: int) -> Peak:
        """Measure both, in less than a second where the memory is not large."""
        flop_per_s = _ext.flop_per_s(isa, threads, PEAK_SECONDS)
        read_per_s = _ext.read_bytes_per_s(isa, threads, BANDWIDTH_SECONDS, read_bytes)
        return cls(isa, threads, flop_per_s, read_per_s, read_bytes)


def workload(inspection: dict[str, Any], levels: int, weights_bytes: int) -> Workload:
    """Count the work of a frame.

    Args:
        inspection: what ``_ext.inspect_model`` says of the file.
        levels: RVQ levels of the streams.
        weights_bytes: of the packed copy in memory.

    """
    geometry = inspection["geometry"]
    values = sum(math.prod(tensor["shape"]) for tensor in inspection["tensors"])
    return Workload(
        sum(_encoder_parts(geometry, levels), _NO_WORK),
        sum(_decoder_parts(geometry, levels), _NO_WORK),
        weights_bytes / values,
    )


def _encoder_parts(geometry: dict[str, Any], levels: int) -> Iterator[Work]:
    rows = geometry["frame_samples"]
    yield _conv(geometry["encoder"]["first"], rows)
    for stage in geometry["encoder"]["stages"]:
        yield _conv(stage["residual_wide"], rows)
        yield _conv(stage["residual_point"], rows)
        rows //= stage["resample"]["stride"]
        yield _conv(stage["resample"], rows)
    yield _conv(geometry["encoder"]["last"], rows)
    yield _transformer(geometry["encoder_transformer"])
    yield _conv(geometry["downsample"], 1)
    rvq = geometry["rvq"]
    for in_half in _levels_by_half(rvq, levels):
        yield _dense(rvq["dim"] * rvq["codebook_dim"], 1)
        yield _dense(in_half * rvq["codebook_entries"] * rvq["codebook_dim"], 1)


def _decoder_parts(geometry: dict[str, Any], levels: int) -> Iterator[Work]:
    rvq = geometry["rvq"]
    for in_half in _levels_by_half(rvq, levels):
        yield Work(0, in_half * rvq["codebook_dim"], 0)
        yield _dense(rvq["codebook_dim"] * rvq["dim"], 1)
    upsample = geometry["upsample"]
    yield _dense(upsample["in_channels"] * upsample["kernel"], 1)
    yield _transformer(geometry["decoder_transformer"])
    rows = STEPS_PER_FRAME
    yield _conv(geometry["decoder"]["first"], rows)
    for stage in geometry["decoder"]["stages"]:
        # Every input row meets the whole kernel, as if the conv were the other way round.
        yield _conv(stage["resample"], rows)
        rows *= stage["resample"]["stride"]
        yield _conv(stage["residual_wide"], rows)
        yield _conv(stage["residual_point"], rows)
    yield _conv(geometry["decoder"]["last"], rows)


def _levels_by_half(rvq: dict[str, Any], levels: int) -> list[int]:
    """Return how many levels each half of the quantiser works on; a half without any does not run."""
    semantic = min(levels, rvq["semantic_levels"])
    return [count for count in (semantic, levels - semantic) if count]


def _dense(weights: int, rows: int) -> Work:
    return Work(weights * rows, weights, 0)


def _conv(conv: dict[str, int], rows: int) -> Work:
    return _dense(conv["in_channels"] * conv["out_channels"] * conv["kernel"], rows)


def _transformer(transformer: dict[str, Any]) -> Work:
    dim, reach = transformer["heads"] * transformer["head_dim"], transformer["context_steps"]
    projections = 4 * transformer["dim"] * dim + 2 * transformer["dim"] * transformer["mlp_width"]
    attention = Work(STEPS_PER_FRAME * _KEYS_AND_VALUES * reach * dim, 0, _KEYS_AND_VALUES * reach * dim * _FLOAT_BYTES)
    return sum([_dense(projections, STEPS_PER_FRAME) + attention] * transformer["layers"], _NO_WORK)
