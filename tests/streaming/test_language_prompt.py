"""A prompt is its steps, one by one, bit for bit: what it returns, and the state it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from codec_core.errors import CodeRangeError, InputShapeError, SessionBusyError, SettingError
from codec_core.language_model import LanguageModel
from codec_core.language_prompt import Prompt
from codec_core.language_session import FREE, GREEDY, Given, LanguageSession, LanguageStep, Sampling

RACING = Sampling(text_top_k=25, top_k=16, seed=11)
TORCH = Sampling(text_top_k=25, top_k=16, seed=11, generator="torch-cpu")
ROWS = np.linspace(-1, 1, 6 * 32, dtype=np.float32).reshape(6, 32)

Models = Callable[..., LanguageModel]


@pytest.fixture(params=["a", "b", "c", "s", "h"])
def model(request: pytest.FixtureRequest, language_models: Models) -> LanguageModel:
    return language_models(request.param)


def new_session(model: LanguageModel, sampling: Sampling = RACING) -> LanguageSession:
    return model.session(sampling, {"control": "ok", "speaker_wavs": ROWS} if model.info.conditioners else None)


def drawn(model: LanguageModel, rng: np.random.Generator, steps: int) -> Prompt:
    info = model.info
    return Prompt(
        text=rng.integers(-1, info.text_entries + 1, steps),
        codes=rng.integers(-1, info.codebook_entries + 1, (steps, info.own_levels)),
        user_codes=rng.integers(-1, info.codebook_entries + 1, (steps, info.user_levels + 1)),
    )


def plain(answer: LanguageStep | None) -> Any:
    return None if answer is None else (answer[0], None if answer[1] is None else answer[1].tolist())


def stepped(session: LanguageSession, prompt: Prompt) -> list[Any]:
    text, codes, user = (np.asarray(part) for part in (prompt.text, prompt.codes, prompt.user_codes))
    given = [Given(int(text[t]), codes[t] if session.info.own_levels else None) for t in range(len(text))]
    return [plain(session.step(user[t], given[t])) for t in range(len(text))]


def prompted(session: LanguageSession, prompt: Prompt) -> list[Any]:
    return [plain(answer) for answer in session.prompt(prompt)]


@pytest.mark.parametrize("sampling", [RACING, TORCH], ids=["counted", "torch-cpu"])
@pytest.mark.parametrize(("before", "steps"), [(0, 1), (0, 20), (0, 70), (3, 24), (30, 40)])
def test_a_prompt_is_its_steps(model: LanguageModel, rng: np.random.Generator, sampling: Sampling, before: int, steps: int):
    one, other = new_session(model, sampling), new_session(model, sampling)
    for user in rng.integers(0, 64, (before, 8)):
        one.step(user)
        other.step(user)
    prompt = drawn(model, rng, steps)
    assert prompted(one, prompt) == stepped(other, prompt)
    assert one.position_steps == before + steps
    assert one.snapshot() == other.snapshot()
    if model.info.extra_heads:
        assert np.array_equal(one.extra_heads, other.extra_heads)
    for user in rng.integers(0, 64, (4, 8)):
        assert plain(one.step(user)) == plain(other.step(user))
    one.reset()
    assert one.snapshot() == new_session(model, sampling).snapshot()


def test_the_last_step_may_leave_choices_to_the_model(model: LanguageModel, rng: np.random.Generator):
    prompt = drawn(model, rng, 9)
    np.asarray(prompt.text)[-1] = FREE
    np.asarray(prompt.codes)[-1, ::2] = FREE
    one, other = new_session(model, TORCH), new_session(model, TORCH)
    assert prompted(one, prompt) == stepped(other, prompt)
    assert one.snapshot() == other.snapshot()
    if model.info.max_delay_steps == 0:
        assert prompted(one, prompt)[-1][0] != FREE


def test_prompts_of_a_batch_are_prompts_alone(model: LanguageModel, rng: np.random.Generator):
    samplings = [RACING, TORCH, GREEDY]
    together, alone = ([new_session(model, sampling) for sampling in samplings] for _ in range(2))
    # Positions differ within the batch.
    for sessions in (together, alone):
        sessions[1].step(range(8))
    prompts = [drawn(model, rng, 26) for _ in samplings]
    found = model.prompt_batch(together, prompts)
    for lane, (session, prompt) in enumerate(zip(alone, prompts, strict=True)):
        assert [plain(answer) for answer in found[lane]] == prompted(session, prompt)
        assert together[lane].snapshot() == session.snapshot()


def test_threads_do_not_show(language_models: Models, rng: np.random.Generator):
    one, two = (new_session(language_models("c", threads=threads)) for threads in (1, 2))
    prompt = drawn(language_models("c"), rng, 40)
    assert prompted(one, prompt) == prompted(two, prompt)
    assert one.snapshot() == two.snapshot()


def test_embeddings_take_the_place_of_those_of_the_tokens(language_models: Models, rng: np.random.Generator):
    model = language_models("a")
    prompt, sums = drawn(model, rng, 30), []
    other = new_session(model)
    text, codes, user = (np.asarray(part) for part in (prompt.text, prompt.codes, prompt.user_codes))

    def note_sum(name: str, values: np.ndarray) -> None:
        if name == "emb":
            sums.append(values[0, 0].copy())

    for t in range(len(text)):
        other.step(user[t], Given(int(text[t]), codes[t]), note_sum)
    one = new_session(model)
    one.prompt(Prompt(prompt.text, prompt.codes, prompt.user_codes, np.array(sums)))
    assert one.snapshot() == other.snapshot()
    moved = new_session(model)
    moved.prompt(Prompt(prompt.text, prompt.codes, prompt.user_codes, np.array(sums) + 1))
    assert moved.snapshot() != other.snapshot()
    with pytest.raises(SettingError, match=r"embedding of lane 0: found a value that is not finite"):
        moved.prompt(Prompt(prompt.text, prompt.codes, prompt.user_codes, np.full((30, 128), np.nan)))
    with pytest.raises(InputShapeError, match="embeddings"):
        moved.prompt(Prompt(prompt.text, prompt.codes, prompt.user_codes, np.zeros((30, 127))))


def test_prompts_are_checked(language_models: Models, rng: np.random.Generator):
    model = language_models("a")
    session, prompt = new_session(model), drawn(model, rng, 4)
    text, codes, user = (np.asarray(part) for part in (prompt.text, prompt.codes, prompt.user_codes))
    before = session.snapshot()
    for wrong, message in (
        (Prompt(text[:0], codes[:0], user[:0]), r"text of prompt 0: found \[0\]"),
        (Prompt(text, None, user), r"codes of prompt 0: found \[4, 0\], expected \[4, 4\]"),
        (Prompt(text, codes[:, :3], user), r"codes of prompt 0: found \[4, 3\], expected \[4, 4\]"),
        (Prompt(text, codes, user[:3]), r"user codes of prompt 0: found \[3, 5\]"),
        (Prompt(text, codes), r"user codes of prompt 0: found \[4, 0\], expected \[4, 4 or more\]"),
        (Prompt(text, codes, user, np.zeros((3, 128))), r"embeddings of prompt 0: found \[3, 128\]"),
    ):
        with pytest.raises(InputShapeError, match=message):
            session.prompt(wrong)
    for part, value in ((text, FREE), (codes, FREE), (codes, 65), (text, 97)):
        spoilt = part.copy()
        spoilt[1] = value
        given = Prompt(spoilt if part is text else text, spoilt if part is codes else codes, user)
        with pytest.raises(CodeRangeError, match=rf"of lane 0: found {value}, expected -1"):
            session.prompt(given)
    assert session.snapshot() == before
    with pytest.raises(InputShapeError, match="prompts"):
        model.prompt_batch([session], [])
    with pytest.raises(InputShapeError, match="prompt 1: found 3 steps, expected 4"):
        model.prompt_batch([session, new_session(model)], [prompt, Prompt(text[:3], codes[:3], user[:3])])
    with pytest.raises(SessionBusyError):
        model.prompt_batch([session, session], [prompt, prompt])
