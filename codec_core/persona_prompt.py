"""Who a PersonaPlex model is to be: a voice and a text that it is given as if it had lived them, before it hears anybody.

A prompt is a run of frames in which both sides are settled: the model's sound is that of a recording (the voice) and then silence,
its text is padding and then the prompt's tokens, one a frame, and the user is a steady tone that stands for nobody speaking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from codec_core.errors import SettingError
from codec_core.gguf_file import GgufFile
from codec_core.language_session import FREE, Given

if TYPE_CHECKING:
    from codec_core.language_model import LanguageModelInfo
    from codec_core.language_session import LanguageSession
    from codec_core.text_tokenizer import TextTokenizer

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
    """A prompt: ``text`` int32 [frames]; ``own`` and ``user`` int32 [frames, 8], codes of the model's side and of the user's."""

    text: NDArray[np.int32]
    own: NDArray[np.int32]
    user: NDArray[np.int32]

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


def run_prompt(session: LanguageSession, frames: PromptFrames) -> None:
    """Have a new session live through a prompt; it then stands behind it, ready for the user's first frame.

    The last step settles only what the prompt says of it: the text and the codes without delay are the model's own already, and
    it goes on from them.

    Raises:
        CodecError: as :meth:`~codec_core.LanguageSession.step`.

    """
    delays = session.info.delays_steps[1 : 1 + session.info.own_levels]
    for index in range(len(frames)):
        session.step(frames.user[index], Given(text=_text(frames, index + 1), codes=_codes(frames, index + 1, delays)))


def _text(frames: PromptFrames, at: int) -> int:
    return int(frames.text[at]) if at < len(frames) else FREE


def _codes(frames: PromptFrames, at: int, delays: Sequence[int]) -> list[int]:
    """Return what the step that chooses position ``at`` is given: each level's code of the frame its delay leaves it at."""
    chosen: list[Any] = []
    for level, delay in enumerate(delays):
        frame = max(0, at - delay)
        chosen.append(int(frames.own[frame, level]) if frame < len(frames) else FREE)
    return chosen
