"""A language model under a RAM budget: the same bits, no more reads than there must be, and a file that fails is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import _ext
from codec_core.errors import ModelAccessError, SettingError
from codec_core.language_model import LanguageModel
from codec_core.language_prompt import Prompt
from codec_core.language_session import LanguageSession, Sampling
from codec_core.window import LanguageWindowStats, WindowPlan, plan_language_window

RACING = Sampling(text_top_k=25, top_k=16, seed=11)
STEPS = 6
PROMPT_STEPS = 30
"""More than the context of 24: the ring comes round while the prompt is taken."""
ROWS = np.linspace(-1, 1, 6 * 32, dtype=np.float32).reshape(6, 32)

Paths = Callable[..., Path]


def new_session(model: LanguageModel) -> LanguageSession:
    return model.session(RACING, {"control": "ok", "speaker_wavs": ROWS} if model.info.conditioners else None)


def prompt_for(model: LanguageModel, rng: np.random.Generator, steps: int = PROMPT_STEPS) -> Prompt:
    info = model.info
    return Prompt(
        text=rng.integers(-1, info.text_entries, steps),
        codes=rng.integers(-1, info.codebook_entries, (steps, info.own_levels)),
        user_codes=rng.integers(-1, info.codebook_entries + 1, (steps, info.user_levels)),
    )


def whole_plan(path: Path) -> WindowPlan:
    return plan_language_window(path, 1 << 40)


def stats_of(model: LanguageModel) -> LanguageWindowStats:
    stats = model.window_stats
    assert stats is not None
    return stats


def course(model: LanguageModel, seed: int) -> list[bytes]:
    """A prompt, steps and batches of steps; everything computed and the state at the end."""
    rng, found = np.random.default_rng(seed), []
    sessions = [new_session(model) for _ in range(3)]
    sessions[0].prompt(prompt_for(model, rng))
    sessions[1].prompt(prompt_for(model, rng, 5))
    for _ in range(STEPS):
        model.step_batch(
            sessions, rng.integers(0, 64, (3, 8)), observer=lambda name, values: found.append(name.encode() + values.tobytes())
        )
    model.prompt_batch(sessions[1:], [prompt_for(model, rng, 7) for _ in range(2)])
    return [*found, *(session.snapshot() for session in sessions)]


def budget_at(plan: WindowPlan, share: float) -> int:
    return plan.minimum_bytes + int(share * (plan.full_bytes - 1 - plan.minimum_bytes))


KINDS = [(name, dtype) for name in "abcsh" for dtype in ("f32", "f16", "q8_0") if (name, dtype) != ("h", "q8_0")]
"""Some matrices of h are no whole blocks wide."""


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_any_budget_gives_the_same_bits(
    language_models: Callable[..., LanguageModel], language_model_path: Paths, name: str, dtype: str
):
    path = language_model_path(name, dtype=dtype)
    expected, plan = course(language_models(name, dtype=dtype), 5), whole_plan(path)
    for share in (0.0, 0.4, 1.0) if dtype == "f32" else (0.2,):
        budget = budget_at(plan, share)
        model = LanguageModel.open(path, ram_budget_bytes=budget)
        # Snapshots name their file by its digest, which is the same.
        assert course(model, 5) == expected
        assert stats_of(model).failed_loads == 0
        assert stats_of(model).rows_read > 0
        assert model.info.weights_bytes <= budget


@pytest.mark.parametrize("slots", range(1, 7))
def test_any_number_of_slots_gives_the_same_bits(
    language_models: Callable[..., LanguageModel], language_model_path: Paths, slots: int
):
    path = language_model_path("a")
    plan = whole_plan(path)
    budget = plan.minimum_bytes + 6 * plan.slot_bytes
    native = _ext.LanguageModel.open(os.fspath(path), "", 2, budget, slots)
    assert native.window_plan["slots"] == slots
    model = LanguageModel(native, language_models("a").info)
    assert course(model, 6) == course(language_models("a"), 6)


def test_tables_are_the_first_to_go(language_model_path: Paths):
    path = language_model_path("a")
    whole = whole_plan(path)
    assert whole.resident_table_bytes == whole.table_bytes > 0
    nearly = plan_language_window(path, whole.full_bytes - 1)
    assert (nearly.slots, nearly.resident_table_bytes, nearly.resident_layers) == (0, 0, whole.layers)
    model = LanguageModel.open(path, ram_budget_bytes=whole.full_bytes - 1)
    assert model.info.weights_bytes == whole.full_bytes - whole.table_bytes
    session = new_session(model)
    for _ in range(3):
        session.step(range(8))
    stats = stats_of(model)
    assert (stats.bytes_read, stats.step_read_bytes) == (0, 0)
    # Nine channels, then the text and three codes of four.
    assert stats.rows_read == 3 * (9 + 4)
    least = plan_language_window(path, whole.full_bytes - whole.table_bytes - 1)
    assert least.slots > 0
    assert least.memory_bytes <= least.budget_bytes


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_as_much_stays_as_the_budget_allows(language_model_path: Paths, name: str):
    path = language_model_path(name)
    whole = whole_plan(path)
    for budget in np.linspace(whole.minimum_bytes, whole.full_bytes - whole.table_bytes - 1, 9, dtype=int):
        plan = plan_language_window(path, int(budget))
        assert plan.memory_bytes <= budget
        assert plan.memory_bytes > budget - plan.slot_bytes or plan.slots < 4
    with pytest.raises(SettingError, match=f"at least {whole.minimum_bytes} bytes"):
        plan_language_window(path, whole.minimum_bytes - 1)


def test_what_is_read_for_a_step_and_for_a_prompt(
    language_model_path: Paths, rng: np.random.Generator, language_models: Callable[..., LanguageModel]
):
    path = language_model_path("a")
    model = LanguageModel.open(path, ram_budget_bytes=whole_plan(path).minimum_bytes + whole_plan(path).slot_bytes)
    session = new_session(model)
    session.step(range(8))
    ahead = stats_of(model).slots * stats_of(model).slot_bytes
    before = stats_of(model)
    for _ in range(4):
        session.step(range(8))
    read = stats_of(model).bytes_read - before.bytes_read
    assert 4 * before.step_read_bytes - ahead <= read <= 4 * before.step_read_bytes + ahead
    prompt = prompt_for(model, rng, 64)
    before = stats_of(model)
    session.prompt(prompt)
    assert stats_of(model).bytes_read - before.bytes_read <= before.step_read_bytes + ahead
    assert stats_of(model).reading_ms > 0
    assert stats_of(model).read_bytes_per_s > 0
    assert language_models("a").window_stats is None


@pytest.fixture
def own_path(language_model_path: Paths, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copy(language_model_path("a"), tmp_path / "own.gguf"))


def spoiled(path: Path, change: Callable[[bytes], bytes]) -> Callable[[], None]:
    """Change the file; what is returned puts it back as it was, so that nothing can tell."""
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(change(content))

    def mend() -> None:
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return mend


def answers(session: LanguageSession, user: np.ndarray) -> list[Any]:
    found = [session.step(codes) for codes in user]
    return [None if step is None else (step[0], step[1].tolist()) for step in found]


@pytest.mark.parametrize("before_steps", [0, 3, 40], ids=["new", "young", "come round"])
def test_a_truncated_file_is_told_and_moves_no_session(
    own_path: Path, rng: np.random.Generator, language_models: Callable[..., LanguageModel], before_steps: int
):
    model = LanguageModel.open(own_path, ram_budget_bytes=budget_at(whole_plan(own_path), 0.4))
    user = rng.integers(0, 64, (before_steps + STEPS, 8))
    session, other = new_session(model), new_session(language_models("a"))
    answers(session, user[:before_steps])
    answers(other, user[:before_steps])
    before = session.snapshot()
    prompt = prompt_for(model, rng)
    # No row is read for it: what fails is a layer, after others have written their keys and values.
    replayed = replace(prompt, embeddings=rng.standard_normal((PROMPT_STEPS, 128)))
    mend = spoiled(own_path, lambda content: content[: len(content) // 2])
    for call in (lambda: session.step(user[0]), lambda: session.prompt(prompt), lambda: session.prompt(replayed)) * 2:
        with pytest.raises(ModelAccessError, match="own"):
            call()
        assert session.snapshot() == before
    mend()
    for known in (prompt, replayed):
        session.prompt(known)
        other.prompt(known)
    assert answers(session, user[before_steps:]) == answers(other, user[before_steps:])
    assert session.snapshot() == other.snapshot()
    assert stats_of(model).failed_loads > 0


def test_rows_of_a_file_written_over_are_refused(own_path: Path):
    model = LanguageModel.open(own_path, ram_budget_bytes=whole_plan(own_path).full_bytes - 1)
    session = new_session(model)
    session.step(range(8))
    before = session.snapshot()
    mend = spoiled(own_path, lambda content: content[::-1])
    os.utime(own_path, (0, 0))
    with pytest.raises(ModelAccessError, match="modified while in use"):
        session.step(range(8))
    assert session.snapshot() == before
    mend()
    assert session.step(range(8)) is not None


def test_a_file_that_another_took_the_place_of_goes_on_as_it_was(own_path: Path, language_models: Callable[..., LanguageModel]):
    model = LanguageModel.open(own_path, ram_budget_bytes=whole_plan(own_path).minimum_bytes)
    other = own_path.with_name("other.gguf")
    other.write_bytes(b"another model")
    other.replace(own_path)
    assert course(model, 7) == course(language_models("a"), 7)
