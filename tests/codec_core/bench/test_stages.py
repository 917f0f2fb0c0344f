from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel, _ext
from codec_core.bench.stages import AFTER_THE_LAST, time_stages
from codec_core.bench.streams import Lanes, SteadyState
from codec_core.bench.timing import FEWEST_CALLS


@pytest.mark.parametrize("batch", [1, 3])
def test_every_stage_the_engine_names_is_timed(tiny_model: CodecModel, steady: SteadyState, batch: int):
    encoding, decoding = time_stages(tiny_model, Lanes(tiny_model, steady, batch), steady.levels, 0)
    named: dict[str, list[str]] = {"encode": [], "decode": []}
    tiny_model.restore_encoder(steady.encoder).encode(steady.pcm[0], lambda name, _values: named["encode"].append(name))
    tiny_model.restore_decoder(steady.decoder).decode(steady.codes[0], lambda name, _values: named["decode"].append(name))
    for stages in (encoding, decoding):
        assert list(stages.ms_by_stage) == [*named[stages.direction], AFTER_THE_LAST[stages.direction]]
        assert all(ms > 0 for ms in stages.ms_by_stage.values())
        assert stages.calls >= FEWEST_CALLS
        assert stages.batch == batch


def test_a_watched_step_gives_the_same(tiny_model: CodecModel, steady: SteadyState):
    plain, watched = (tiny_model.restore_encoder(steady.encoder) for _ in range(2))
    clock = _ext.StageClock()
    clock.start()
    codes = _ext.encode_batch([watched.native], steady.pcm[:1], clock)
    assert np.array_equal(codes[0], plain.encode(steady.pcm[0]))
    assert watched.snapshot() == plain.snapshot()
    before = dict(clock.seconds)
    assert before
    clock.note("after")
    assert dict(clock.seconds).keys() - before.keys() == {"after"}


def test_times_add_up():
    clock = _ext.StageClock()
    clock.start()
    for name in ("a", "b", "a"):
        clock.note(name)
    assert [name for name, _ in clock.seconds] == ["a", "b"]


def test_an_observer_is_a_clock_or_callable(tiny_model: CodecModel, steady: SteadyState):
    session = tiny_model.restore_encoder(steady.encoder)
    with pytest.raises(TypeError, match="callable"):
        session.encode(steady.pcm[0], 7)  # type: ignore[arg-type]
    assert session.position_frames == len(steady.pcm)
