"""One stream through a language model: the user's codes in, a text token and the model's codes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core import _ext
from codec_core.errors import InputShapeError
from codec_core.language_prompt import Prompt, prompt_entered
from codec_core.rows import code_rows
from codec_core.session_base import ExclusiveSession, StageObserver
from codec_core.snapshot import SnapshotContent, pack

if TYPE_CHECKING:
    from codec_core.language_info import LanguageModelInfo

ZERO: Final = -1
"""A token that stands for nothing: its embedding is exactly zero."""
FREE: Final = -2
"""In place of a token: the model's own choice."""

LanguageStep = tuple[int, NDArray[np.int32] | None]
"""A text token and the model's own codes, int32 [own_levels], of one audio time; no codes where the model has none."""


@dataclass(frozen=True)
class Sampling:
    """How a stream chooses its tokens.

    A temperature of 0 takes the likeliest token, the lowest of equal ones; else it is 0.001 .. 1000, and the ``top_k``
    likeliest tokens (0: all) race. The numbers of the race come from ``seed`` (any 64 bits), the same on every machine:
    ``generator`` is ``counted``, where each depends on nothing but the seed, the step, the channel and the token's rank, or
    ``torch-cpu``, the stream that PyTorch's CPU generator gives after ``manual_seed``. The defaults are the published ones.
    """

    text_temperature: float = 0.7
    text_top_k: int = 25
    temperature: float = 0.8
    top_k: int = 250
    seed: int = 0
    generator: str = "counted"


GREEDY: Final = Sampling(text_temperature=0.0, temperature=0.0)
"""The likeliest token, always."""


@dataclass(frozen=True)
class Given:
    """What a step takes instead of the model's own choices. Tokens are ids, :data:`ZERO`, or :data:`FREE` for its own.

    ``text`` replaces the text token before the codes are chosen, which follow from it. ``codes``, integers [own_levels],
    replace choices of codes, and those after them follow from them; where all are given none is computed. ``kept``, the same
    shape, replaces codes once all are chosen, so that no other choice of the step follows from them. ``noise``, float32
    [1 + own_levels, entries], replaces the generator's numbers: standard exponential, by channel and rank.
    """

    text: int = FREE
    codes: ArrayLike | None = None
    kept: ArrayLike | None = None
    noise: ArrayLike | None = None


class LanguageSession(ExclusiveSession[_ext.LanguageSession]):
    """A stream through a language model. Made by :meth:`codec_core.LanguageModel.session`."""

    def __init__(self, native: _ext.LanguageSession, info: LanguageModelInfo) -> None:
        super().__init__(native)
        self.info = info
        self.extra_heads: NDArray[np.float32] | None = None
        """Probabilities of the extra heads at the last step, float32 [heads, classes]; None before, or without such heads."""

    def __repr__(self) -> str:
        return f"<LanguageSession of {self.info.name}: {self.position_steps} steps>"

    @property
    def levels(self) -> int:
        """Codebooks of the model's own: how many codes a step gives; 0 where it has none."""
        return self.info.own_levels

    @property
    def position_steps(self) -> int:
        """Steps since the start or the last reset."""
        return self.native.position_steps

    def step(
        self, user_codes: ArrayLike = (), given: Given | None = None, observer: StageObserver | None = None
    ) -> LanguageStep | None:
        """Go on by one step of 80 ms.

        Args:
            user_codes: integers [n], n >= ``info.user_levels``; what is more is ignored. 0 .. ``codebook_entries`` (the last
                is the initial code), or :data:`ZERO`.
            given: what to take instead of the model's own choices.
            observer: sees every stage of the step.

        Returns:
            Text token and codes of one audio time, or None in the first ``info.max_delay_steps`` steps.

        Raises:
            InputShapeError, InputTypeError, CodeRangeError, SettingError, NumericOverflowError, SessionBusyError,
            SessionClosedError.

        """
        row = code_rows(np.asarray(user_codes, dtype=None if np.size(user_codes) else np.int32))
        if row.ndim != 1:
            raise InputShapeError("user codes", str(list(row.shape)), f"[{self.info.user_levels}]: one step")
        with self.entered():
            return step_entered([self], row[np.newaxis], None if given is None else [given], observer)[0]

    def prompt(self, prompt: Prompt) -> list[LanguageStep | None]:
        """Go on by all the steps of a prompt, whose tokens are known beforehand, in a fraction of the time.

        The result is that of calling :meth:`step` for each row of the prompt, bit for bit, and so is the state it leaves: the
        stream may then be stepped, snapshot or reset. But the steps go through each matrix together, up to 64 at a time, so
        that weights are read from memory, or under a RAM budget from the file, once for all of them; and no codes are computed
        but what the last step leaves free.

        Args:
            prompt: text, codes, the user's codes; see :class:`codec_core.language_prompt.Prompt`.

        Returns:
            What :meth:`step` would have returned for each row. ``extra_heads`` are those of the last one.

        Raises:
            InputShapeError, InputTypeError, CodeRangeError, SettingError, NumericOverflowError, ModelAccessError,
            SessionBusyError, SessionClosedError. Of the 64 steps in which it fails none happened; those before them did, as
            ``position_steps`` tells, and the rest of the prompt may be tried again.

        """
        with self.entered():
            return prompt_entered([self], [prompt])[0]

    def reset(self) -> None:
        """Become as a new session with the same sampling and conditions, bit for bit."""
        with self.entered():
            self.native.reset()
            self.extra_heads = None

    def snapshot(self) -> bytes:
        """Return the whole state, sampling and conditions included; see :mod:`codec_core.snapshot`."""
        with self.entered():
            state = self.native.save_state()
        return pack(self.info, "language", SnapshotContent(self.info.own_levels, np.empty(0, np.float32), state))


def step_entered(
    sessions: Sequence[LanguageSession],
    user_codes: NDArray[np.int32],
    given: Sequence[Given] | None,
    observer: StageObserver | None,
) -> list[LanguageStep | None]:
    """Step sessions that are entered already; see :meth:`codec_core.LanguageModel.step_batch`."""
    info = sessions[0].info
    if user_codes.shape[1] < info.user_levels:
        raise InputShapeError("user codes", f"{user_codes.shape[1]} a step", f"at least {info.user_levels}")
    choices = list(given) if given is not None else [Given()] * len(sessions)
    texts, codes, heads = _ext.language_step_batch(
        [session.native for session in sessions],
        np.ascontiguousarray(user_codes[:, : info.user_levels]),
        code_rows([choice.text for choice in choices]),
        _token_rows([choice.codes for choice in choices], info.own_levels),
        _token_rows([choice.kept for choice in choices], info.own_levels),
        _noise_rows([choice.noise for choice in choices], 1 + info.own_levels),
        observer,
    )
    for lane, session in enumerate(sessions):
        session.extra_heads = heads[lane] if info.extra_heads else None
    return [None if text is None else (text, codes[lane] if info.own_levels else None) for lane, text in enumerate(texts)]


def _token_rows(rows: list[ArrayLike | None], width: int) -> NDArray[np.int32] | None:
    if all(row is None for row in rows):
        return None
    given = np.full((len(rows), width), FREE, np.int32)
    for lane, row in enumerate(rows):
        if row is None:
            continue
        tokens = code_rows(row)
        if tokens.shape != (width,):
            raise InputShapeError(f"given codes of lane {lane}", str(list(tokens.shape)), f"[{width}]")
        given[lane] = tokens
    return given


def _noise_rows(rows: list[ArrayLike | None], channels: int) -> NDArray[np.float32] | None:
    if all(row is None for row in rows):
        return None
    noises = [np.asarray([] if row is None else row, np.float32) for row in rows]
    for lane, noise in enumerate(noises):
        if noise.ndim != 2 or noise.shape[0] != channels or noise.shape != noises[0].shape:
            raise InputShapeError(f"noise of lane {lane}", str(list(noise.shape)), f"[{channels}, entries], alike in all lanes")
    return np.ascontiguousarray(np.stack(noises))
