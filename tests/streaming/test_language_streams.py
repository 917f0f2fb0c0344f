"""Streams of the language model: reset, snapshots, batches, failures, threads and instruction sets leave every bit as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from codec_core._ext import Kernels
from codec_core.errors import CodeRangeError, SessionBusyError, SettingError
from codec_core.language_model import LanguageModel
from codec_core.language_session import Given, LanguageSession, Sampling
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import QUANTISED, lm_metadata, write_lm

RACING = Sampling(text_top_k=25, top_k=16, seed=11)
TORCH = Sampling(text_top_k=25, top_k=16, seed=11, generator="torch-cpu")
STEPS = 32
"""More than the context of 24: the ring wraps."""
ROWS = np.linspace(-1, 1, 6 * 32, dtype=np.float32).reshape(6, 32)


def conditions_of(model: LanguageModel) -> dict[str, Any] | None:
    return {"control": "ok", "speaker_wavs": ROWS} if model.info.conditioners else None


def new_session(model: LanguageModel, sampling: Sampling = RACING) -> LanguageSession:
    return model.session(sampling, conditions_of(model))


class Trail:
    """Everything a session answers and computes, as bytes."""

    def __init__(self) -> None:
        self.outputs: list[object] = []
        self.stages: list[bytes] = []

    def step(self, session: LanguageSession, user: np.ndarray) -> None:
        output = session.step(user, observer=lambda _name, values: self.stages.append(values.tobytes()))
        self.outputs.append(None if output is None else (output[0], None if output[1] is None else output[1].tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and (self.outputs, self.stages) == (other.outputs, other.stages)

    __hash__ = None


@pytest.fixture
def user(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 64, (STEPS, 8))


def trail_of(session: LanguageSession, user: np.ndarray) -> Trail:
    trail = Trail()
    for codes in user:
        trail.step(session, codes)
    return trail


@pytest.fixture(params=["a", "s", "c", "h"])
def model(request: pytest.FixtureRequest, language_models: Callable[..., LanguageModel]) -> LanguageModel:
    return language_models(request.param)


@pytest.mark.parametrize("sampling", [RACING, TORCH], ids=["counted", "torch-cpu"])
def test_reset_is_a_new_session(model: LanguageModel, user: np.ndarray, sampling: Sampling):
    session = new_session(model, sampling)
    first = trail_of(session, user)
    session.reset()
    assert session.position_steps == 0
    assert trail_of(session, user) == first


@pytest.mark.parametrize("at", [0, 1, 13, 29])
@pytest.mark.parametrize("sampling", [RACING, TORCH], ids=["counted", "torch-cpu"])
def test_a_snapshot_goes_on(model: LanguageModel, user: np.ndarray, sampling: Sampling, at: int):
    session = new_session(model, sampling)
    trail_of(session, user[:at])
    blob = session.snapshot()
    rest = trail_of(session, user[at:])
    restored = model.restore(blob)
    assert restored.position_steps == at
    assert trail_of(restored, user[at:]) == rest
    assert restored.snapshot() == session.snapshot()


def test_two_streams_do_not_mix(model: LanguageModel, user: np.ndarray):
    one, other = new_session(model), new_session(model, Sampling(seed=3, top_k=0, text_top_k=0))
    trails = Trail(), Trail()
    for index in range(STEPS):
        trails[0].step(one, user[index])
        trails[1].step(other, user[STEPS - 1 - index])
    assert trails[0] == trail_of(new_session(model), user)
    assert trails[1] == trail_of(new_session(model, Sampling(seed=3, top_k=0, text_top_k=0)), user[::-1])


def test_a_batch_is_its_streams_alone(model: LanguageModel, user: np.ndarray):
    samplings = [RACING, TORCH, Sampling(seed=5), RACING]
    together = [new_session(model, sampling) for sampling in samplings]
    alone = [new_session(model, sampling) for sampling in samplings]
    # The third joins later and the first leaves early: positions differ within a batch.
    for index in range(STEPS):
        lanes = [lane for lane in range(4) if not (lane == 2 and index < 7) and not (lane == 0 and index > 20)]
        codes = np.stack([np.roll(user[index], lane) for lane in lanes])
        seen: dict[str, np.ndarray] = {}
        outputs = model.step_batch([together[lane] for lane in lanes], codes, observer=seen.__setitem__)
        for row, lane in enumerate(lanes):
            own: dict[str, np.ndarray] = {}
            expected = alone[lane].step(codes[row], observer=own.__setitem__)
            found = outputs[row]
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert found[0] == expected[0]
                assert np.array_equal(found[1], expected[1]) if expected[1] is not None else found[1] is None
            assert all(seen[name][row].tobytes() == values[0].tobytes() for name, values in own.items())


def test_threads_do_not_show(language_models: Callable[..., LanguageModel], user: np.ndarray):
    one, two = (language_models("c", threads=threads) for threads in (1, 2))
    assert trail_of(new_session(one), user) == trail_of(new_session(two), user)


@pytest.mark.parametrize("name", ["a", "b", "c", "s"])
def test_a_budget_does_not_show(
    language_models: Callable[..., LanguageModel], language_model_path: Callable[..., Path], user: np.ndarray, name: str
):
    whole = language_models(name)
    plan = whole._native.window_plan
    budget = plan["minimum_bytes"]
    small = LanguageModel.open(language_model_path(name), ram_budget_bytes=budget)
    assert small._native.window_plan["slots"] > 0
    assert small.info.weights_bytes <= budget < plan["full_bytes"]
    assert trail_of(new_session(small), user[:8]) == trail_of(new_session(whole), user[:8])
    with pytest.raises(SettingError, match="ram_budget_bytes"):
        LanguageModel.open(language_model_path(name), ram_budget_bytes=budget - 1)


@pytest.mark.parametrize("name", ["a", "c", "h"])
def test_instruction_sets_do_not_show(
    language_model_path: Callable[..., Path], user: np.ndarray, monkeypatch: pytest.MonkeyPatch, name: str
):
    trails = []
    for isa in Kernels.usable_isas():
        monkeypatch.setenv("MIMI_ISA", isa)
        trails.append(trail_of(new_session(LanguageModel.open(language_model_path(name))), user))
    assert all(trail == trails[0] for trail in trails)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_weights_are_those_weights_widened(language_models: Callable[..., LanguageModel], user, dtype: str, tmp_path):
    for name in ("a", "c"):
        kind = QUANTISED[dtype]
        arrays = {
            tensor: gguf.quants.dequantize(gguf.quants.quantize(np.ascontiguousarray(array), kind), kind)
            if array.ndim == 2 and "condition_provider" not in tensor
            else array
            for tensor, array in lm_arrays(name).items()
        }
        wide = LanguageModel.open(write_lm(tmp_path / f"{name}.gguf", arrays, lm_metadata(LM_CONFIGS[name])))
        narrow = language_models(name, dtype=dtype)
        assert narrow.info.weight_class == dtype
        assert narrow.info.weights_bytes < 0.6 * wide.info.weights_bytes
        assert trail_of(new_session(narrow), user) == trail_of(new_session(wide), user)


def test_a_step_that_fails_never_happened(model: LanguageModel, user: np.ndarray):
    session = new_session(model, TORCH)
    trail_of(session, user[:9])
    before = session.snapshot()

    def refuse_late(name: str, _values: np.ndarray) -> None:
        if name in ("audio_logits.1", "text_logits"):
            raise RuntimeError(name)

    with pytest.raises(RuntimeError):
        session.step(user[9], observer=refuse_late)
    if model.info.user_levels:
        with pytest.raises(CodeRangeError, match=r"user code 0 of lane 0: found 65, expected -1 \.\. 64"):
            session.step([65] * 8)
    with pytest.raises(CodeRangeError, match="text 0 of lane 0"):
        session.step(user[9], Given(text=97 if model.info.text_entries == 96 and not model.info.conditioners else 10**6))
    assert session.snapshot() == before
    fresh = new_session(model, TORCH)
    trail_of(fresh, user[:9])
    assert trail_of(session, user[9:]) == trail_of(fresh, user[9:])


def test_a_session_twice_in_a_batch_is_refused(model: LanguageModel, user: np.ndarray):
    session = new_session(model)
    with pytest.raises(SessionBusyError):
        model.step_batch([session, session], user[:2])
    session.step(user[0])
