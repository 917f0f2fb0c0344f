"""A conversation frame by frame, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codec_core import LanguageModel
from codec_core.errors import ModelContractError
from codec_core.gguf_file import GgufFile
from codec_core.talk import SpeechTimes, Talk, Transcript, Words, held_back_frames, require_fitting, steps_of_next_frame
from codec_core.text_tokenizer import TextTokenizer
from tests.talk_models import direct_answer


@pytest.fixture(scope="module")
def converses(talk_model_path) -> LanguageModel:
    return LanguageModel.open(talk_model_path("converses"))


@pytest.mark.parametrize("kind", ["converses", "lags", "writes"])
def test_it_is_the_librarys_calls(kind: str, talk_model_path, default_model, pcm) -> None:
    language = LanguageModel.open(talk_model_path(kind))
    tokenizer = TextTokenizer.open(talk_model_path(kind))
    frames = pcm[: 12 * 1920].reshape(-1, 1920)
    talk = Talk(default_model, language, language.session(), tokenizer)
    spoken = [talk.hear(frame) for frame in frames]
    late = held_back_frames(language.info)
    assert late == (kind == "lags")
    assert [one is None for one in spoken] == [True] * late + [False] * (12 - late)
    said = [one for one in spoken if one is not None]
    tokens, sound = direct_answer(default_model, language, frames)
    assert [one.token for one in said] == tokens
    assert all((one.pcm is None) == (kind == "writes") for one in said)
    heard = [one.pcm for one in said if one.pcm is not None]
    assert np.array_equal(np.concatenate([np.empty(0, np.float32), *heard]), sound)
    text = "".join(one.text for one in said) + talk.transcript.flush()
    stream = Transcript(tokenizer, 3)
    assert text == "".join(stream.push(token) for token in tokens) + stream.flush()


def test_the_first_frame_is_stepped_twice_and_none_is_lost(converses, default_model, pcm) -> None:
    """Any frame of the input, the first too, changes what is said in the next."""
    session = converses.session()
    assert steps_of_next_frame(session) == 2
    Talk(default_model, converses, session, None).hear(pcm[:1920])
    assert (session.position_steps, steps_of_next_frame(session)) == (2, 1)
    answers = []
    for loudness in (1.0, 0.1):
        frames = pcm[: 4 * 1920].reshape(4, -1).copy()
        frames[0] *= np.float32(loudness)
        answers.append(direct_answer(default_model, converses, frames)[1])
    assert not np.array_equal(*answers)


def test_models_that_do_not_fit(converses, default_model, talk_model_path) -> None:
    codec, language = default_model.info, converses.info
    require_fitting(codec, language)
    cases = (
        (codec, replace(language, user_levels=0), "a model that hears"),
        (codec, replace(language, codebook_entries=64), "1024, as the codec"),
        (codec, replace(language, own_levels=33), "at most 32"),
        (codec, LanguageModel.open(talk_model_path("reads_out")).info, "a model that hears"),
    )
    for *pair, expected in cases:
        with pytest.raises(ModelContractError, match=expected):
            require_fitting(*pair)


def test_without_a_tokenizer_there_are_tokens_alone() -> None:
    transcript = Transcript(None, 3)
    assert [transcript.push(token) for token in (0, 3, 50)] == ["", "", ""]
    assert transcript.flush() == ""


def test_a_token_without_a_piece_reads_as_nothing(talk_model_path) -> None:
    tokenizer = TextTokenizer.open(talk_model_path("converses"))
    transcript = Transcript(tokenizer, 3)
    assert transcript.push(len(tokenizer)) == ""
    assert transcript.push(len(tokenizer) - 1) != ""


def test_words_begin_at_their_first_piece() -> None:
    words = Words()
    pieces = [(" he", 0.0), ("llo", 0.08), ("", 0.16), (" there you", 0.24), (".", 0.32)]
    found = [word for text, at_s in pieces for word in words.push(text, at_s)]
    assert found == [(0.0, "hello"), (0.24, "there")]
    assert list(words.flush()) == [(0.24, "you.")]
    assert list(words.flush()) == []


def test_times_of_a_model_that_recognises_speech(talk_model_path) -> None:
    assert SpeechTimes.of(GgufFile(talk_model_path("writes"))) == SpeechTimes(0.5, 0.25)
    assert SpeechTimes.of(GgufFile(talk_model_path("converses"))) == SpeechTimes()
