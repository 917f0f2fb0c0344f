"""A conversation with a language model: sound in, text and sound out, a frame of 80 ms at a time.

Each frame of the user's sound becomes codes, the codes a step of the language model, and what the model says sound again. A
model hears nothing in its first step, so the first frame is stepped twice and what the first of the two gives is dropped: no
frame is lost, and nothing comes later for it. The service (mode ``talk``) does the very same, many streams at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from codec_core.errors import ModelContractError
from codec_core.gguf_file import GgufFile
from codec_core.text_tokenizer import END_OF_PAD_TOKEN, TextStream, TextTokenizer

if TYPE_CHECKING:
    from codec_core.language_model import LanguageModel, LanguageModelInfo
    from codec_core.language_session import LanguageSession
    from codec_core.model import CodecModel, ModelInfo

FRAME_S: Final = 0.08
_TIMES: Final = ("audio_delay_seconds", "audio_silence_prefix_seconds")


@dataclass(frozen=True)
class Spoken:
    """What a model says in one frame.

    ``token`` is the id of its text, ``text`` what that adds to the text: often nothing. ``pcm``, float32 [frame_samples], is
    its sound; None of a model without codes of its own.
    """

    token: int
    text: str
    pcm: NDArray[np.float32] | None


@dataclass(frozen=True)
class SpeechTimes:
    """When a model that recognises speech writes: ``delay_s`` after it heard; and it wants ``prefix_s`` of silence first."""

    delay_s: float = 0.0
    prefix_s: float = 0.0

    @classmethod
    def of(cls, file: GgufFile) -> SpeechTimes:
        """Read what a language model's file says; nothing of a model that does not recognise speech."""
        return cls(*(_seconds(file, f"moshi.lm.stt.{name}") for name in _TIMES))


def require_fitting(codec: ModelInfo, language: LanguageModelInfo) -> None:
    """Refuse a codec and a language model that cannot talk to each other.

    Raises:
        ModelContractError: the language model hears nobody, or its codes are not the codec's.

    """
    name = f"language model {language.name!r}"
    if not language.user_levels:
        raise ModelContractError(
            f"{name}: user's codebooks", "none: it hears nobody", "a model that hears, not one that reads out"
        )
    if language.codebook_entries != codec.codebook_entries:
        expected = f"{codec.codebook_entries}, as the codec {codec.name!r} has: the two belong together"
        raise ModelContractError(f"{name}: codes of a codebook", f"{language.codebook_entries}", expected)
    most = max(language.user_levels, language.own_levels)
    if most > codec.levels:
        raise ModelContractError(f"{name}: codebooks", f"{most}", f"at most {codec.levels}, as the codec {codec.name!r} has")


def held_back_frames(language: LanguageModelInfo) -> int:
    """Count the frames by which sound out lags sound in, besides the frame itself: those that the delays of codebooks make."""
    return max(0, language.max_delay_steps - 1)


def steps_of_next_frame(session: LanguageSession) -> int:
    """Count the steps that the next frame of a stream takes; what any but the last of them gives is dropped."""
    return 1 if session.position_steps else 2


class Transcript:
    """Text of one stream of tokens, as they arrive.

    Args:
        tokenizer: of the model's file; None where it has none, and there is no text, only tokens.
        padding_id: the token that says nothing.

    """

    def __init__(self, tokenizer: TextTokenizer | None, padding_id: int) -> None:
        self.stream: TextStream | None = None if tokenizer is None else tokenizer.stream((END_OF_PAD_TOKEN, padding_id))
        self._pieces = 0 if tokenizer is None else len(tokenizer)

    def push(self, token: int) -> str:
        """Return what a token adds: nothing, where the tokenizer has no piece for it."""
        return self.stream.push(token) if self.stream is not None and token < self._pieces else ""

    def flush(self) -> str:
        """Return what is left at the end."""
        return "" if self.stream is None else self.stream.flush()


class Talk:
    """One conversation, in one thread.

    Args:
        codec: the codec.
        language: the language model, which fits it (:func:`require_fitting`).
        session: a session of the language model; as new, or behind a prompt.
        tokenizer: of the language model's file, or None.

    """

    def __init__(
        self, codec: CodecModel, language: LanguageModel, session: LanguageSession, tokenizer: TextTokenizer | None
    ) -> None:
        info = language.info
        self._session = session
        self._encoder = codec.encoder(info.user_levels)
        self._decoder = codec.decoder(info.own_levels) if info.own_levels else None
        self.transcript = Transcript(tokenizer, info.text_padding_id)
        # Behind a prompt the model answers at once, but what it says first belongs to the prompt.
        self._unheard_frames = held_back_frames(info) if session.position_steps else 0

    def hear(self, pcm: NDArray[np.float32]) -> Spoken | None:
        """Take a frame of sound, float32 [frame_samples]; return what the model says, or None while it holds that back.

        Raises:
            CodecError: as encoding, a step and decoding; the conversation is then over.

        """
        codes = self._encoder.encode(pcm)
        step = None
        for _ in range(steps_of_next_frame(self._session)):
            step = self._session.step(codes)
        if step is None or self._unheard_frames:
            self._unheard_frames -= self._unheard_frames > 0
            return None
        token, own = step
        sound = None if own is None or self._decoder is None else self._decoder.decode(own)
        return Spoken(token, self.transcript.push(token), sound)


class Words:
    """Words with their times, out of pieces of text."""

    def __init__(self) -> None:
        self._word = ""
        self._start_s = 0.0

    def push(self, text: str, at_s: float) -> Iterator[tuple[float, str]]:
        """Take what was said at a time; yield the words that are complete, each with the time of its first piece."""
        for index, part in enumerate(text.split(" ")):
            if index:
                yield from self.flush()
            if part and not self._word:
                self._start_s = at_s
            self._word += part

    def flush(self) -> Iterator[tuple[float, str]]:
        """Yield the word that is left."""
        word, self._word = self._word, ""
        if word:
            yield self._start_s, word


def _seconds(file: GgufFile, key: str) -> float:
    value = file.value(key) if key in file.metadata else 0.0
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 60:
        raise ModelContractError(f"key '{key}'", f"{value!a}"[:80], "seconds, 0 .. 60")
    return float(value)
