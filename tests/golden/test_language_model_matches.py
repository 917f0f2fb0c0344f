"""Kyutai's own program ran five small models; the engine runs them again: every token equal, every stage near."""

from __future__ import annotations

import numpy as np
import pytest

from .language_runs import RUNS, TOLERANCE, Recorded, Run, Runs, make, recorded_runs, tokens_of

STAGES = ("emb", "layers", "hidden", "text_logits", "dep_in", "dep_out", "audio_logits")


@pytest.fixture(scope="module")
def runs() -> Runs:
    return recorded_runs()


def check_stages(run: Run, found: Recorded, runs: Runs) -> None:
    for stage in STAGES:
        key = f"{run.name}/{stage}"
        if key not in runs:
            continue
        expected = runs[key]
        error = np.abs(found.stage(stage, expected.shape) - expected).max()
        assert error <= TOLERANCE.get(stage, 1e-4), f"{stage}: {error}"


@pytest.mark.parametrize("split", [False, True], ids=["fused", "split"])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_recorded_run_comes_out_again(language_models, runs: Runs, run: Run, split: bool):
    model = language_models(run.model, split=split)
    found = make(run, model, runs)
    expected = runs[f"{run.name}/out_tokens"]
    assert [output is not None for output in found.outputs] == runs[f"{run.name}/out_valid"].tolist()
    assert np.array_equal(tokens_of(found.outputs, expected.shape[1]), expected)
    check_stages(run, found, runs)


@pytest.mark.parametrize("run", [run for run in RUNS if run.name in ("b", "stt")], ids=lambda run: run.name)
def test_extra_heads_are_those_of_the_step(language_models, runs: Runs, run: Run):
    model = language_models(run.model)
    expected = runs[f"{run.name}/extra_heads"]
    heads = np.stack(make(run, model, runs).heads)[model.info.max_delay_steps :]
    assert np.abs(heads - expected).max() <= 1e-5
    assert np.abs(heads.sum(axis=-1) - 1).max() <= 1e-6


def test_conditions_are_what_the_reference_made_of_them(language_models, runs: Runs):
    run = next(run for run in RUNS if run.name == "tts")
    total, rows = run.session(language_models("c"), runs).native.condition_vectors
    assert np.abs(total[0] - runs["tts/condition_sum"]).max() <= 1e-6
    assert np.abs(rows - runs["tts/condition_cross"]).max() <= 1e-6


def test_the_text_it_would_have_said_is_seen_beside_what_it_was_given(language_models, runs: Runs):
    run = next(run for run in RUNS if run.name == "tts")
    found = make(run, language_models("c"), runs)
    own = np.stack(found.stages["text_logits"]).argmax(axis=1)
    assert np.array_equal(own, runs["tts/own_text"])
    assert not np.array_equal(own, runs["tts/sampled_text"])
