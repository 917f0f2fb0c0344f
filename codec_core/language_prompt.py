"""Prompts: steps of a language model's stream whose tokens are known before they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core import _ext
from codec_core.errors import InputShapeError
from codec_core.rows import code_rows

if TYPE_CHECKING:
    from codec_core.language_info import LanguageModelInfo
    from codec_core.language_session import LanguageSession, LanguageStep


@dataclass(frozen=True)
class Prompt:
    """What as many steps of a stream are given, the first one's first.

    ``text``, integers [steps], and ``codes``, integers [steps, own_levels], are what :class:`codec_core.Given` has for one
    step: ids of tokens, or -1 for nothing. None of them may be left to the model (-2) but those of the last step. ``codes``
    stays None where the model has none of its own. ``user_codes``, integers [steps, n], n >= ``info.user_levels``, is what a
    step takes of the user; it may be left out where the model listens to nobody.

    ``embeddings``, float32 [steps, dim], go into the temporal transformer in place of the sums of the tokens' embeddings, as
    a stored voice has them; the stream takes note of the tokens all the same, and reads them back afterwards.
    """

    text: ArrayLike
    codes: ArrayLike | None = None
    user_codes: ArrayLike | None = None
    embeddings: ArrayLike | None = None


@dataclass(frozen=True)
class _Rows:
    """One prompt as arrays that have been checked: [steps, ...] each."""

    text: NDArray[np.int32]
    codes: NDArray[np.int32]
    user_codes: NDArray[np.int32]
    embeddings: NDArray[np.float32] | None


def prompt_entered(sessions: Sequence[LanguageSession], prompts: Sequence[Prompt]) -> list[list[LanguageStep | None]]:
    """Take sessions that are entered already through their prompts; see :meth:`codec_core.LanguageModel.prompt_batch`."""
    info = sessions[0].info
    lanes = [_checked(lane, prompt, info) for lane, prompt in enumerate(prompts)]
    steps = len(lanes[0].text)
    for lane, rows in enumerate(lanes):
        if len(rows.text) != steps:
            raise InputShapeError(f"prompt {lane}", f"{len(rows.text)} steps", f"{steps}, as of prompt 0")
    answers: list[list[LanguageStep | None]] = [[] for _ in sessions]
    for first in range(0, steps, _ext.MOST_PROMPT_STEPS):
        part = slice(first, first + _ext.MOST_PROMPT_STEPS)
        texts, codes, heads = _ext.language_prompt_batch(
            [session.native for session in sessions],
            _by_step([rows.user_codes[part] for rows in lanes]),
            _by_step([rows.text[part] for rows in lanes]),
            _by_step([rows.codes[part] for rows in lanes]) if info.own_levels else None,
            _embeddings(lanes, part),
        )
        for row, text in enumerate(texts):
            chosen = None if text is None else (text, codes[row] if info.own_levels else None)
            answers[row % len(sessions)].append(chosen)
        for lane, session in enumerate(sessions):
            session.extra_heads = heads[lane] if info.extra_heads else None
    return answers


def _checked(lane: int, prompt: Prompt, info: LanguageModelInfo) -> _Rows:
    text = code_rows(prompt.text)
    if text.ndim != 1 or not len(text):
        raise InputShapeError(f"text of prompt {lane}", str(list(text.shape)), "[steps], at least one")
    steps = len(text)
    user = _token_rows(f"user codes of prompt {lane}", prompt.user_codes, steps)
    if user.shape[1] < info.user_levels:
        raise InputShapeError(f"user codes of prompt {lane}", str(list(user.shape)), f"[{steps}, {info.user_levels} or more]")
    codes = _token_rows(f"codes of prompt {lane}", prompt.codes, steps)
    if codes.shape[1] != info.own_levels:
        raise InputShapeError(f"codes of prompt {lane}", str(list(codes.shape)), f"[{steps}, {info.own_levels}]")
    embeddings = None if prompt.embeddings is None else np.asarray(prompt.embeddings, np.float32)
    if embeddings is not None and (embeddings.ndim != 2 or len(embeddings) != steps):
        raise InputShapeError(f"embeddings of prompt {lane}", str(list(embeddings.shape)), f"[{steps}, the model's width]")
    return _Rows(text, codes, user[:, : info.user_levels], embeddings)


def _token_rows(what: str, tokens: ArrayLike | None, steps: int) -> NDArray[np.int32]:
    rows = np.empty((steps, 0), np.int32) if tokens is None else code_rows(tokens)
    if rows.ndim != 2 or len(rows) != steps:
        raise InputShapeError(what, str(list(rows.shape)), f"[{steps}, levels]")
    return rows


def _by_step(lanes: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the lanes' rows as the engine takes them: the first of every lane, then the second of every lane, and so on."""
    rows = np.stack(lanes, axis=1)
    return rows.reshape(rows.shape[0] * rows.shape[1], *rows.shape[2:])


def _embeddings(lanes: list[_Rows], part: slice) -> NDArray[np.float32] | None:
    given = [rows.embeddings[part] for rows in lanes if rows.embeddings is not None]
    if not given:
        return None
    if len(given) < len(lanes) or any(rows.shape != given[0].shape for rows in given):
        raise InputShapeError("embeddings", "those of some prompts, or of several widths", "those of all prompts, or of none")
    return _by_step(given)
