from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from codec_core import CodecModel, _ext
from codec_core.bench.limits import Peak, Work, Workload, workload

ENCODER = r"mimi\.(encoder\.|encoder_transformer\.|downsample\.)"
DECODER = r"mimi\.(decoder\.|decoder_transformer\.|upsample\.)"
LEVELS = 4


def matrices(tensors: list[dict], pattern: str) -> int:
    """Values of tensors of two dimensions and more that match; a bias has one, or (n, 1)."""
    shapes = [t["shape"] for t in tensors if re.match(pattern, t["name"]) and not t["name"].endswith((".bias", ".scale"))]
    return sum(math.prod(shape) for shape in shapes if len(shape) > 1)


@pytest.mark.parametrize("levels", [1, 2, LEVELS, 32])
def test_weights_are_those_of_the_file(tiny_model_path: Path, levels: int):
    inspection = _ext.inspect_model(str(tiny_model_path))
    tensors, rvq = inspection["tensors"], inspection["geometry"]["rvq"]
    found = workload(inspection, levels, 1)
    halves = ["rvq_first", "rvq_rest"][: min(levels, 2)]
    projections = {
        side: sum(matrices(tensors, rf"mimi\.quantizer\.{half}\.{side}_proj") for half in halves)
        for side in ("input", "output")
    }
    codebooks = levels * rvq["codebook_entries"] * rvq["codebook_dim"]
    assert found.encode.weights == matrices(tensors, ENCODER) + projections["input"] + codebooks
    assert found.decode.weights == matrices(tensors, DECODER) + projections["output"] + levels * rvq["codebook_dim"]


def test_multiplications_of_the_full_size(full_model: CodecModel):
    """221 and 220 million a frame at 8 levels, counted by hand from the published sizes."""
    found = workload(_ext.inspect_model(full_model.info.path), 8, full_model.info.weights_bytes)
    convs = (
        1920 * (7 * 64 + 2 * 64 * 32 * 2) + 480 * (64 * 128 * 8 + 2 * 128 * 64 * 2) + 96 * (128 * 256 * 10 + 2 * 256 * 128 * 2)
    )
    convs += 16 * (256 * 512 * 12 + 2 * 512 * 256 * 2) + 2 * (512 * 1024 * 16 + 1024 * 512 * 3) + 512 * 512 * 4
    transformer = 8 * (2 * (4 * 512 * 512 + 2 * 512 * 2048) + 2 * 2 * 250 * 512)
    assert found.encode.macs == convs + transformer + 2 * 512 * 256 + 8 * 2048 * 256
    assert round(found.decode.macs / 1e6) == 220
    assert found.encode.context_bytes == found.decode.context_bytes == 8 * 250 * 512 * 2 * 4
    assert found.bytes_per_weight == pytest.approx(4, rel=0.01)


def test_duplex_is_both(tiny_model: CodecModel):
    found = workload(_ext.inspect_model(tiny_model.info.path), LEVELS, tiny_model.info.weights_bytes)
    assert found.of("duplex").macs == found.of("encode").macs + found.of("decode").macs
    assert found.of("duplex").weights == found.of("encode").weights + found.of("decode").weights


def test_the_limit_is_the_slower_of_computing_and_reading():
    work = Workload(Work(1_000_000, 500_000, 1000), Work(1, 1, 1), 4.0)
    peak = Peak("any", 1, 2e9, 1e9, 0)
    assert work.limit_ms("encode", 1, peak) == pytest.approx(1000 * 2_001_000 / 1e9)
    assert work.limit_ms("encode", 4, peak) == pytest.approx(1000 * 2_000_000 / 2e9)


@pytest.mark.parametrize("isa", _ext.Kernels.usable_isas())
@pytest.mark.parametrize("threads", [1, 2])
def test_peaks_are_measured(isa: str, threads: int):
    peak = Peak.measure(isa, threads, 1_000_000)
    assert 1e6 < peak.flop_per_s < 1e14
    assert 1e6 < peak.read_bytes_per_s < 1e14
