"""Who a PersonaPlex model is to be: a voice and a text that it is given as if it had lived them, before it hears anybody.

A prompt is a run of frames in which both sides are settled: the model's sound is that of a recording (the voice) and then
silence, its text is padding and then the prompt's tokens, one a frame, and the user is a steady tone that stands for nobody
speaking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from codec_core.errors import ModelContractError, SettingError
from codec_core.gguf_file import GgufFile
from codec_core.language_prompt import Prompt
from codec_core.language_session import FREE

if TYPE_CHECKING:
    from codec_core.language_model import LanguageModelInfo
    from codec_core.language_session import LanguageSession
    from codec_core.text_tokenizer import TextTokenizer
    from codec_core.voice_prompt import VoicePrompt

OWN_LEVELS_KEY: Final = "moshi.lm.inference.dep_q"
"""A file that says how many of its codebooks are its own is of a model that takes prompts."""
SILENCE: Final = (948, 243, 1178, 546, 1736, 1030, 1978, 2008)
"""Codes of silence, by level."""
TONE: Final = (430, 1268, 381, 1611, 1095, 1495, 56, 472)
"""Codes of a tone of 440 Hz, by level: nobody speaks."""
SILENT_FRAMES: Final = 6
"""Half a second, before and after the text."""
_MOST_CODE: Final = max(SILENCE + TONE)


@dataclass(frozen=True)
class PromptFrames:
    """A prompt: ``text`` int32 [frames]; ``own`` and ``user`` int32 [frames, 8], codes of the model's side and the user's.

    The first steps may take ``embeddings``, float32 [steps, dim], in place of what was settled before: a stored voice.
    """

    text: NDArray[np.int32]
    own: NDArray[np.int32]
    user: NDArray[np.int32]
    embeddings: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.text)


def require_prompts(info: LanguageModelInfo, file: GgufFile) -> None:
    """Refuse a model that cannot be told who it is.

    Raises:
        SettingError: its file does not say that it can, or it has other codes than the prompt's.

    """
    fits = info.own_levels == info.user_levels == len(SILENCE) and info.codebook_entries > _MOST_CODE
    if OWN_LEVELS_KEY not in file.metadata or not fits:
        found = f"{info.name!r}, which takes none"
        raise SettingError("voice and prompt", found, f"a PersonaPlex model: its file has the key {OWN_LEVELS_KEY}")


def system_tokens(tokenizer: TextTokenizer | None, prompt: str) -> list[int]:
    """Return the tokens of a text prompt.

    Raises:
        SettingError: the model's file has no tokenizer.
        UnavailableError: the extra ``lm`` is not installed.

    """
    if tokenizer is None:
        raise SettingError(
            "prompt", "a model file without a text tokenizer", "one made by `mimi convert --tokenizer FILE.model`"
        )
    return tokenizer.encode(f"<system> {prompt.strip()} <system>")


def prompt_frames(voice_codes: NDArray[np.int32], tokens: Sequence[int], padding_id: int) -> PromptFrames:
    """Lay out a prompt.

    Args:
        voice_codes: int32 [8, frames] of a recording of the voice; no frames, for none.
        tokens: of the text, with its marks; empty for none.
        padding_id: the text token that says nothing.

    """
    silence = np.full(SILENT_FRAMES, padding_id, np.int32)
    voiced = np.full(voice_codes.shape[1], padding_id, np.int32)
    text = np.concatenate([voiced, silence, np.asarray(tokens, np.int32), silence])
    own = np.tile(np.asarray(SILENCE, np.int32), (len(text), 1))
    own[: len(voiced)] = voice_codes.T
    return PromptFrames(text, own, np.tile(np.asarray(TONE, np.int32), (len(text), 1)))


def stored_voice_frames(voice: VoicePrompt, tokens: Sequence[int], info: LanguageModelInfo) -> PromptFrames:
    """Lay out a prompt whose voice is a stored one.

    Its N rows are what the steps of N + 1 frames read, but the last; that one reads the ring, in which slot p modulo the number
    of slots is position p. So the voice's last frames are known, and of those before nothing is read any more.

    Args:
        voice: the voice.
        tokens: as of :func:`prompt_frames`.
        info: of the model.

    Raises:
        ModelContractError: the voice is another model's.

    """
    steps, slots = len(voice.embeddings), voice.cache.shape[1]
    found = f"{voice.cache.shape[0]} channels of {slots} slots"
    if voice.cache.shape[0] != info.audio_channels + 1 or slots < info.max_delay_steps + 2:
        expected = f"{info.audio_channels + 1} channels of {info.max_delay_steps + 2} slots or more, as of {info.name!r}"
        raise ModelContractError(f"voice {voice.name!r}", found, expected)
    frames = prompt_frames(np.tile(np.asarray(SILENCE, np.int32)[:, None], (1, steps + 1)), tokens, info.text_padding_id)
    frames.text[steps] = voice.cache[0, steps % slots]
    for channel, delay in enumerate(info.delays_steps[1:]):
        side, level = divmod(channel, info.own_levels)
        for frame in range(max(steps - delay, 0), steps + 1):
            (frames.own, frames.user)[side][frame, level] = voice.cache[1 + channel, (frame + delay) % slots]
    return replace(frames, embeddings=voice.embeddings)


@dataclass(frozen=True)
class PromptSteps:
    """What the steps of a prompt are given: ``text`` int32 [steps], ``codes`` and ``user`` int32 [steps, 8].

    Only in the last of them are tokens left to the model, :data:`~codec_core.language_session.FREE`.
    """

    text: NDArray[np.int32]
    codes: NDArray[np.int32]
    user: NDArray[np.int32]


def prompt_steps(frames: PromptFrames, delays_steps: Sequence[int]) -> PromptSteps:
    """Lay a prompt out in steps: each settles the tokens that the next one reads, each level by its delay later than the text.

    The last step settles only what the prompt says of it: the text and the codes without delay are the model's own already,
    and it goes on from them.

    Args:
        frames: the prompt.
        delays_steps: of the model's own levels.

    """
    count = len(frames)
    following = np.arange(1, count + 1)
    text = np.append(frames.text[1:], FREE).astype(np.int32)
    codes = np.full((count, len(delays_steps)), FREE, np.int32)
    for level, delay in enumerate(delays_steps):
        frame = np.maximum(following - delay, 0)
        codes[frame < count, level] = frames.own[frame[frame < count], level]
    return PromptSteps(text, codes, frames.user)


def run_prompt(session: LanguageSession, frames: PromptFrames) -> None:
    """Have a new session live through a prompt; it then stands behind it, ready for the user's first frame.

    Raises:
        CodecError: as :meth:`~codec_core.LanguageSession.prompt`.

    """
    steps = prompt_steps(frames, session.info.delays_steps[1 : 1 + session.info.own_levels])
    replayed = 0 if frames.embeddings is None else len(frames.embeddings)
    for part, embeddings in ((slice(0, replayed), frames.embeddings), (slice(replayed, len(frames)), None)):
        if len(steps.text[part]):
            session.prompt(Prompt(steps.text[part], steps.codes[part], steps.user[part], embeddings))
