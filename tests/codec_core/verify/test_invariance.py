"""The checks find what they look for: each passes on the engine, and fails where the stream it compares with is another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel, _ext
from codec_core.errors import UnavailableError
from codec_core.verify import invariance
from codec_core.verify.invariance import ReferenceStream, check_variant

CHECKS = [
    invariance.check_chunks,
    invariance.check_batches,
    invariance.check_two_sessions,
    invariance.check_refusals,
    invariance.check_variant,
]


@pytest.fixture(params=["kyutai", "ggml", "ggml-causal"])
def stream(request: pytest.FixtureRequest, tiny_model_path: Path) -> ReferenceStream:
    return ReferenceStream(CodecModel.open(tiny_model_path, numerics=request.param))


def test_the_second_span_is_where_the_ring_wraps(stream: ReferenceStream):
    """The tiny model's ring holds eight steps: four frames."""
    start, wrap = stream.spans
    assert (start.first, wrap.first) == (0, 2)
    assert wrap.first < 4 < wrap.first + len(wrap.pcm)
    assert np.array_equal(start.codes[:, 2:], wrap.codes[:, :4])


@pytest.mark.parametrize("check", [*CHECKS, invariance.check_reset])
def test_the_engine_passes(stream: ReferenceStream, check):
    assert check(stream) is None


@pytest.mark.parametrize("isa", _ext.Kernels.usable_isas())
def test_every_instruction_set_passes(stream: ReferenceStream, isa: str):
    assert check_variant(stream, isa=isa) is None


def test_threads_pass(stream: ReferenceStream):
    assert check_variant(stream, threads=3) is None


def test_an_absent_instruction_set_is_no_pass(stream: ReferenceStream):
    with pytest.raises(UnavailableError):
        check_variant(stream, isa="sse9")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("what", ["codes", "sound"])
def test_another_result_is_found_and_placed(stream: ReferenceStream, check, what: str):
    start, wrap = stream.spans
    if what == "codes":
        codes = wrap.codes.copy()
        codes[5, 3] ^= 1
        spoilt = replace(wrap, codes=codes)
    else:
        sound = wrap.sound.copy()
        sound[3 * 1920 + 9] += np.float32(1e-7)
        spoilt = replace(wrap, sound=sound)
    stream.__dict__["spans"] = start, spoilt
    difference = check(stream)
    assert difference is not None
    assert difference.what.startswith(what)
    assert difference.frame == wrap.first + 3
    assert difference.level == (5 if what == "codes" else None)
    assert difference.step == (None if what == "codes" else 9)


def test_a_reset_that_leaves_something_behind_is_found(stream: ReferenceStream):
    start, wrap = stream.spans
    stream.__dict__["spans"] = replace(start, encoder_state=wrap.encoder_state), wrap
    difference = invariance.check_reset(stream)
    assert difference is not None
    assert difference.what == "state after reset"
