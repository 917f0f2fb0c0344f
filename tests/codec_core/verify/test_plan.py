from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core.errors import ModelAccessError, SettingError
from codec_core.verify import Check, Plan, run_checks
from codec_core.verify.vectors import PACKAGED


def test_quick_is_the_default_model_only():
    with Plan(quick=True) as plan:
        groups = list(dict.fromkeys(check.group for check in plan.checks))
        started: list[Check] = []
        count = len(plan.checks)
        results = list(run_checks(plan, started.append))
    assert groups == [
        "default model, kyutai vectors",
        "default model, ggml vectors",
        "default, kyutai invariances",
        "default, ggml invariances",
    ]
    assert [result.detail for result in results if not result.passed] == []
    assert len(started) == len(results) == count
    assert [(check.group, check.name) for check in started] == [(result.group, result.name) for result in results]


def test_a_model_of_the_user_s_has_no_vectors(tiny_model_path: Path):
    with Plan(str(tiny_model_path), numerics="ggml-causal", quick=True) as plan:
        assert {check.group for check in plan.checks} == {f"{tiny_model_path.stem}, ggml-causal invariances"}
        assert all(result.passed for result in run_checks(plan))


def test_what_a_check_raises_is_its_result(tiny_model_path: Path):
    broken = tiny_model_path.with_name("broken.gguf")
    broken.write_bytes(tiny_model_path.read_bytes()[:5000])
    with Plan(str(broken), numerics="kyutai", quick=True) as plan:
        results = list(run_checks(plan))
    assert results
    assert all(not result.passed and result.detail.startswith("model_format: ") for result in results)


def test_refusals(tmp_path: Path):
    with pytest.raises(SettingError, match="numerics"):
        Plan(numerics="exact")
    with pytest.raises(SettingError, match="vectors"):
        Plan(vectors=tmp_path)
    with pytest.raises(ModelAccessError):
        Plan("no-such-model")


@pytest.mark.slow
def test_a_wrong_code_of_the_full_size_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One signal, one code changed; and what was made for it is gone afterwards."""
    scratch, folder = tmp_path / "scratch", tmp_path / "vectors"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (folder / "signals").mkdir(parents=True)
    (folder / "signals" / "tone440.wav").write_bytes((PACKAGED / "full" / "signals" / "tone440.wav").read_bytes())
    with np.load(PACKAGED / "full" / "tone440.npz") as file:
        arrays = dict(file)
    arrays["ggml_codes"][30, 8] ^= 1
    np.savez(folder / "tone440.npz", **arrays)
    with Plan(numerics="ggml", vectors=folder) as plan:
        results = [result for result in run_checks(plan) if result.group.startswith("synthetic")]
        assert [path.name for path in next(scratch.iterdir()).iterdir()] == ["full.gguf"]
    assert [(result.name, result.passed) for result in results] == [("tone440: codes", False), ("tone440: sound", False)]
    difference = results[0].difference
    assert difference is not None
    assert (difference.frame, difference.level, difference.differing) == (8, 30, 1)
    assert list(scratch.iterdir()) == []
