"""What ``mimi talk`` runs on: the codec, the language model with its tokenizer, and a session that knows who it is to be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel, LanguageModel, Sampling
from codec_core.audio_file import AudioReader
from codec_core.errors import SettingError
from codec_core.gguf_file import GgufFile
from codec_core.language_session import GREEDY, LanguageSession
from codec_core.persona_prompt import prompt_frames, require_prompts, run_prompt, stored_voice_frames, system_tokens
from codec_core.talk import SpeechTimes, require_fitting
from codec_core.text_tokenizer import TextTokenizer
from codec_core.voice_prompt import VoicePrompt


@dataclass(frozen=True)
class TalkModels:
    """Everything that was opened."""

    codec: CodecModel
    language: LanguageModel
    file: GgufFile
    """The language model's."""
    tokenizer: TextTokenizer | None
    times: SpeechTimes


@dataclass(frozen=True)
class Choices:
    """How the model is to choose, and who it is to be; a setting that is None is as published."""

    seed: int
    sampling: dict[str, Any]
    conditions: tuple[str, ...] = ()
    voice: Path | None = None
    prompt: str | None = None


def open_models(
    language_path: Path, codec_name: str, numerics: str | None, threads: int | None, ram_budget_bytes: int | None
) -> TalkModels:
    """Open a language model and the codec that belongs to it; a budget of memory is the language model's.

    Raises:
        CodecError: a file is refused, or the two do not fit.

    """
    codec = CodecModel.open(codec_name, numerics=numerics, threads=threads)
    language = LanguageModel.open(language_path, threads, ram_budget_bytes)
    require_fitting(codec.info, language.info)
    file = GgufFile(language_path)
    return TalkModels(codec, language, file, TextTokenizer.from_file(file), SpeechTimes.of(file))


def new_session(models: TalkModels, choices: Choices, *, prompted: bool = True) -> LanguageSession:
    """Make a session, behind its prompt where there is one and it is wanted.

    Raises:
        SettingError: a setting that the model does not know.
        AudioFileError: the recording of the voice cannot be read.
        ModelContractError: the stored voice is refused.

    """
    base = Sampling() if models.language.info.own_levels else GREEDY
    given = {name: value for name, value in choices.sampling.items() if value is not None}
    session = models.language.session(replace(base, seed=choices.seed, **given), _conditions(choices.conditions))
    if prompted and (choices.voice is not None or choices.prompt is not None):
        _prompt(models, choices, session)
    return session


def _conditions(given: tuple[str, ...]) -> dict[str, str | int]:
    conditions: dict[str, str | int] = {}
    for one in given:
        name, separator, label = one.partition("=")
        if not (name and separator and label):
            raise SettingError("--condition", repr(one), "NAME=LABEL")
        conditions[name] = label
    return conditions


def _prompt(models: TalkModels, choices: Choices, session: LanguageSession) -> None:
    info = models.language.info
    require_prompts(info, models.file)
    tokens = [] if choices.prompt is None else system_tokens(models.tokenizer, choices.prompt)
    if choices.voice is not None and choices.voice.suffix.lower() == ".gguf":
        run_prompt(session, stored_voice_frames(VoicePrompt.open(choices.voice), tokens, info))
        return
    voice = np.empty((info.own_levels, 0), np.int32) if choices.voice is None else _voice_codes(models, choices.voice)
    run_prompt(session, prompt_frames(voice, tokens, info.text_padding_id))


def _voice_codes(models: TalkModels, path: Path) -> npt.NDArray[np.int32]:
    """Encode the whole frames of a recording."""
    with AudioReader(path) as reader:
        session = models.codec.encoder(models.language.info.own_levels)
        pieces = [session.push(pcm) for pcm in reader.pcm()]
    return np.concatenate([np.empty((session.levels, 0), np.int32), *pieces], axis=1)
