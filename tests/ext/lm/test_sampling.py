"""How a token is chosen, against the same in plain Python from the logits the observer saw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codec_core.errors import InputShapeError, SettingError
from codec_core.language_model import LanguageModel
from codec_core.language_session import FREE, GREEDY, Given, Sampling
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import lm_metadata, write_lm

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
STEPS = 12


def finalise(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def counted(seed: int, step: int, channel: int, count: int) -> list[np.float32]:
    """The definition in ext/lm/random_stream.h."""
    key = finalise((finalise((seed + GOLDEN) & MASK) + step * GOLDEN) & MASK)
    numbers = [finalise((key + ((channel << 32) + j + 1) * GOLDEN) & MASK) for j in range(count)]
    return [np.float32(-math.log(((z >> 11) + 0.5) * 2.0**-53)) for z in numbers]


def winner(logits: np.ndarray, temperature: float, top_k: int, noise: Callable[[int], list[np.float32]]) -> int:
    order = np.arange(len(logits)) if top_k == 0 else np.argsort(-logits, kind="stable")[:top_k]
    weights = np.exp((logits[order].astype(np.float64) - logits.max()) / temperature)
    arrivals = weights / np.array(noise(len(order)), np.float64)
    best = np.argsort(arrivals)
    assert arrivals[best[-1]] > 1.0001 * arrivals[best[-2]], "too near to call without f32"
    return int(order[best[-1]])


@pytest.fixture
def model(language_models: Callable[..., LanguageModel]) -> LanguageModel:
    return language_models("a")


def answers(
    model: LanguageModel, sampling: Sampling, given: Callable[[int], Given] = lambda _step: Given()
) -> tuple[list[list[np.ndarray]], list[list[int]]]:
    """Each step's logits by channel; and the answers, the first of which comes after the second step."""
    session = model.session(sampling)
    logits: list[list[np.ndarray]] = []
    rows = []

    def observe(name: str, values: np.ndarray) -> None:
        if name == "text_logits" or name.startswith("audio_logits"):
            logits[-1].append(values[0, 0].copy())

    for step in range(STEPS + 1):
        logits.append([])
        output = session.step([step, 2, 3, 4], given(step), observe)
        if output is not None:
            rows.append([output[0], *output[1].tolist()])
    return logits, rows


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("top_k", [0, 2, 7, 500])
def test_the_race_is_the_documented_one(model: LanguageModel, seed: int, top_k: int):
    sampling = Sampling(text_temperature=0.9, text_top_k=top_k, temperature=1.3, top_k=top_k, seed=seed)
    logits, rows = answers(model, sampling)
    # Text and the first code have no delay: what a step chose is in the answer after it.
    for step in range(STEPS):
        text = winner(logits[step][0], 0.9, top_k, lambda count, at=step: counted(seed, at, 0, count))
        code = winner(logits[step][1], 1.3, top_k, lambda count, at=step: counted(seed, at, 1, count))
        assert rows[step][:2] == [text, code]


def test_other_seeds_say_other_things(model: LanguageModel):
    said = {tuple(map(tuple, answers(model, Sampling(seed=seed))[1])) for seed in range(4)}
    assert len(said) == 4


def test_what_is_given_shifts_no_number(model: LanguageModel):
    """With counted numbers a given token leaves every later draw its own."""
    sampling = Sampling(seed=9, top_k=0, text_top_k=0)
    free = answers(model, sampling)[1]

    def given(step: int) -> Given:
        return Given(free[step][0], [free[step][1], FREE, FREE, FREE]) if step < STEPS else Given()

    same = answers(model, sampling, given)[1]
    assert same == free


def test_one_candidate_is_greedy(model: LanguageModel):
    assert answers(model, Sampling(top_k=1, text_top_k=1, seed=4))[1] == answers(model, GREEDY)[1]


def test_greedy_takes_the_first_of_equals(tmp_path: Path):
    arrays = lm_arrays("a")
    arrays["text_linear.weight"] = np.repeat(arrays["text_linear.weight"][:1], 96, axis=0)
    model = LanguageModel.open(write_lm(tmp_path / "equal.gguf", arrays, lm_metadata(LM_CONFIGS["a"])))
    assert {row[0] for row in answers(model, GREEDY)[1]} == {0}


def test_given_noise_decides(model: LanguageModel):
    """All but one of the candidates arrive late: that one wins, whatever the logits."""
    noise = np.full((5, 25), 1e30, np.float32)
    noise[:, 3] = 0
    sampling = Sampling(text_top_k=25, top_k=16)
    session = model.session(sampling)
    seen: dict[str, np.ndarray] = {}
    session.step([1, 2, 3, 4], Given(noise=noise), lambda name, values: seen.setdefault(name, values.copy()))
    text, codes = session.step([1, 2, 3, 4])
    assert text == np.argsort(-seen["text_logits"][0, 0], kind="stable")[3]
    assert codes[0] == np.argsort(-seen["audio_logits.0"][0, 0], kind="stable")[3]


def test_noise_that_does_not_fit(model: LanguageModel):
    session = model.session(Sampling(text_top_k=25, top_k=16))
    with pytest.raises(InputShapeError, match="noise of lane 0"):
        session.step([1, 2, 3, 4], Given(noise=np.ones((4, 25))))
    with pytest.raises(InputShapeError, match="found 24 numbers a channel, expected at least 25"):
        session.step([1, 2, 3, 4], Given(noise=np.ones((5, 24))))
    with pytest.raises(SettingError, match="not negative"):
        session.step([1, 2, 3, 4], Given(noise=np.full((5, 25), np.nan)))
    assert session.position_steps == 0


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"text_temperature": 1e-9}, "text_temperature"),
        ({"text_temperature": 1e9}, "text_temperature"),
        ({"generator": "rand"}, "generator"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"top_k": -1}, "top_k"),
    ],
)
def test_settings_out_of_bounds(model: LanguageModel, change: dict[str, object], subject: str):
    with pytest.raises(SettingError) as caught:
        model.session(replace(Sampling(), **change))
    assert caught.value.subject == subject
