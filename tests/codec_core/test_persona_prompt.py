"""Prompts of PersonaPlex, against a second bookkeeping: the published one, which numbers calls otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import Given, LanguageModel, Sampling
from codec_core.errors import CodecError, ModelContractError, SettingError
from codec_core.gguf_file import GgufFile
from codec_core.language_session import FREE
from codec_core.persona_prompt import (
    SILENCE,
    SILENT_FRAMES,
    TONE,
    PromptFrames,
    prompt_frames,
    prompt_steps,
    require_prompts,
    run_prompt,
    stored_voice_frames,
    system_tokens,
)
from codec_core.text_tokenizer import TextTokenizer
from codec_core.voice_prompt import VoicePrompt

SLOTS = 4
"""Of the published ring: the largest delay and three."""


@pytest.fixture(scope="module")
def path(talk_model_path) -> Path:
    return talk_model_path("persona", 2048)


@pytest.fixture(scope="module")
def persona(path: Path) -> LanguageModel:
    return LanguageModel.open(path)


@pytest.fixture
def frames(rng: np.random.Generator) -> PromptFrames:
    return prompt_frames(rng.integers(0, 2048, (8, 5)).astype(np.int32), [17, 40, 21], 3)


class PublishedRing:
    """Calls from 0; call s takes frame s, reads position s - 1 and settles position s, keeping what was given for it."""

    def __init__(self, delays: tuple[int, ...], initial: list[int]) -> None:
        self.delays, self.initial = delays, initial
        self.cache = np.full((len(delays), SLOTS), FREE)
        self.given = np.zeros((len(delays), SLOTS), bool)
        self.call = 0

    def begin(self, tokens: list[int]) -> list[int] | None:
        """Take a frame (FREE where a channel is the model's own); return what the model reads, from call 1 on."""
        for channel, delay in enumerate(self.delays):
            slot = (self.call + delay) % SLOTS
            if tokens[channel] != FREE:
                self.cache[channel, slot], self.given[channel, slot] = tokens[channel], True
            if self.call <= delay:
                self.cache[channel, self.call % SLOTS], self.given[channel, self.call % SLOTS] = self.initial[channel], True
        if self.call == 0:
            self.call = 1
            return None
        return self.cache[:, (self.call - 1) % SLOTS].tolist()

    def settle(self, chosen: list[int]) -> None:
        """Keep what was chosen where nothing was given."""
        slot = self.call % SLOTS
        free = ~self.given[: len(chosen), slot]
        self.cache[: len(chosen), slot][free] = np.array(chosen)[free]
        self.given[:, (self.call - 1) % SLOTS] = False
        self.call += 1


def test_every_step_reads_what_the_published_program_reads(persona: LanguageModel, path: Path, frames: PromptFrames) -> None:
    info = persona.info
    session = persona.session(Sampling(seed=5))
    read: list[np.ndarray] = []

    def watch(name: str, values: np.ndarray) -> None:
        if name == "emb":
            read.append(values.reshape(-1).copy())

    steps = prompt_steps(frames, info.delays_steps[1:9])
    live = np.arange(8) * 7
    for text, codes, user in zip(steps.text, steps.codes, steps.user, strict=True):
        session.step(user, Given(text=int(text), codes=codes), watch)
    answer = session.step(live, observer=watch)
    ring = PublishedRing(info.delays_steps, [info.text_entries, *[2048] * 16])
    tables = Tables(path)
    for index in range(len(frames) + 1):
        tokens = (
            [int(frames.text[index]), *frames.own[index].tolist(), *frames.user[index].tolist()]
            if index < len(frames)
            else None
        )
        heard = ring.begin(tokens or [FREE] * 9 + live.tolist())
        if heard is not None:
            assert np.array_equal(tables.sum(heard), read[index - 1]), index
            ring.settle([FREE] * 9)
    # The step behind the prompt reads the text and the first code that the model chose by itself, and the rest as given.
    seam = ring.cache[:, len(frames) % SLOTS]
    assert [seam[channel] == FREE for channel in range(17)] == [True, True, *[False] * 15]
    assert answer is not None
    seam[:2] = answer[0], answer[1][0]
    assert np.array_equal(Tables(path).sum(seam.tolist()), read[-1])


class Tables:
    """The model's embedding tables, as the file has them."""

    def __init__(self, path: Path) -> None:
        file = GgufFile(path)
        self.codes = [file.rows(f"lm.emb.{level}.weight") for level in range(16)]
        self.text = file.rows("lm.text_emb.weight")

    def sum(self, tokens: list[int]) -> np.ndarray:
        total = self.codes[0][tokens[1]].copy()
        for table, token in zip(self.codes[1:], tokens[2:], strict=True):
            total += table[token]
        return total + self.text[tokens[0]]


def test_a_prompt_is_laid_out_as_published(frames: PromptFrames) -> None:
    assert len(frames) == 5 + SILENT_FRAMES + 3 + SILENT_FRAMES
    assert frames.text.tolist() == [3] * 11 + [17, 40, 21] + [3] * 6
    assert (frames.own[5:] == SILENCE).all()
    assert (frames.user == TONE).all()
    assert len(prompt_frames(np.empty((8, 0), np.int32), [], 3)) == 2 * SILENT_FRAMES


def test_what_was_lived_through_shows(persona: LanguageModel, frames: PromptFrames) -> None:
    """The same user, another prompt: another answer. The same prompt: the same answer."""
    answers = []
    for text in (frames.text, frames.text, frames.text + 1):
        session = persona.session()
        run_prompt(session, PromptFrames(text, frames.own, frames.user))
        assert session.position_steps == len(frames)
        answers.append([session.step(np.full(8, step))[1].tolist() for step in range(6)])
    assert answers[0] == answers[1] != answers[2]


def stored(path: Path, persona: LanguageModel, voice_codes: np.ndarray) -> VoicePrompt:
    """Store a voice as the published program does: what its calls read, and its ring behind the last of them."""
    ring = PublishedRing(persona.info.delays_steps, [persona.info.text_entries, *[2048] * 16])
    tables, rows = Tables(path), []
    for codes in voice_codes.T:
        if (read := ring.begin([3, *codes.tolist(), *TONE])) is not None:
            rows.append(tables.sum(read))
            ring.settle([FREE] * 9)
    return VoicePrompt("stored", np.stack(rows), ring.cache.astype(np.int32))


@pytest.mark.parametrize("count", [2, 5, 8, 70])
def test_a_stored_voice_is_that_of_its_recording(persona: LanguageModel, path: Path, rng, count: int) -> None:
    codes = rng.integers(0, 2048, (8, count)).astype(np.int32)
    voice, answers = stored(path, persona, codes), []
    for frames in (prompt_frames(codes, [17, 40], 3), stored_voice_frames(voice, [17, 40], persona.info)):
        session = persona.session(Sampling(seed=3))
        run_prompt(session, frames)
        assert session.position_steps == len(frames)
        answers.append([session.step(np.full(8, step))[1].tolist() for step in range(6)])
    assert answers[0] == answers[1]


def test_a_voice_of_another_model_is_refused(persona: LanguageModel, path: Path, rng) -> None:
    voice = stored(path, persona, rng.integers(0, 2048, (8, 4)).astype(np.int32))
    for cache in (voice.cache[:-1], voice.cache[:, :2]):
        with pytest.raises(ModelContractError, match=r"voice 'stored': found 1[67] channels of"):
            stored_voice_frames(VoicePrompt("stored", voice.embeddings, cache), [], persona.info)
    narrow = VoicePrompt("stored", voice.embeddings[:, :-1], voice.cache)
    with pytest.raises(CodecError, match="embeddings"):
        run_prompt(persona.session(), stored_voice_frames(narrow, [], persona.info))


def test_the_users_codebooks_are_not_computed(persona: LanguageModel) -> None:
    assert (persona.info.own_levels, persona.info.user_levels, persona.info.audio_channels) == (8, 8, 16)


def test_only_models_that_say_so_take_prompts(persona: LanguageModel, path: Path, talk_model_path) -> None:
    require_prompts(persona.info, GgufFile(path))
    for other in (talk_model_path("converses"), talk_model_path("persona", 1024)):
        with pytest.raises(SettingError, match=r"a PersonaPlex model: its file has the key moshi\.lm\.inference\.dep_q"):
            require_prompts(LanguageModel.open(other).info, GgufFile(other))


def test_words_are_marked_and_cut_by_the_models_tokenizer(path: Path) -> None:
    tokenizer = TextTokenizer.open(path)
    assert system_tokens(tokenizer, "  ka lo ") == tokenizer.encode("<system> ka lo <system>")
    with pytest.raises(SettingError, match="--tokenizer"):
        system_tokens(None, "ka lo")
