"""A loaded language model: opened once, immutable, shared by every session and thread. See ``docs/language_model.md``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codec_core import _ext, snapshot
from codec_core.errors import InputShapeError, InputTypeError, SettingError
from codec_core.language_info import Conditioner, LanguageModelInfo, describe, requested_conditions
from codec_core.language_prompt import Prompt, prompt_entered
from codec_core.language_session import GREEDY, Given, LanguageSession, LanguageStep, Sampling, step_entered
from codec_core.model_source import chosen_isa, chosen_threads, file_at_rest
from codec_core.rows import code_rows
from codec_core.session_base import StageObserver, all_entered
from codec_core.window import LanguageWindowStats, chosen_budget, language_stats_of

__all__ = ["Conditioner", "LanguageModel", "LanguageModelInfo"]

_MOST_SEED = 2**64


class LanguageModel:
    """A language model ready to serve sessions. Made by :meth:`open`; safe to use from any thread."""

    def __init__(self, native: _ext.LanguageModel, info: LanguageModelInfo) -> None:
        self._native = native
        self.info = info

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], threads: int | None = None, ram_budget_bytes: int | None = None
    ) -> LanguageModel:
        """Read, check and pack a language model's GGUF file of the enriched form, as ``mimi convert`` writes it.

        Args:
            path: the file.
            threads: threads one step may use, the caller's included; None takes ``MIMI_THREADS``, else 1. No result depends
                on it.
            ram_budget_bytes: most bytes of weights in memory; None takes ``MIMI_RAM_BUDGET``, else no limit. Under a budget
                that is smaller than the weights, rows of token tables and then matrices are read again and again from the
                file, which must stay as it is; the results are the same. Sessions and scratch come on top. See
                ``docs/tensor_window.md``.

        The instruction set is the best this machine has, or the one ``MIMI_ISA`` names.

        Raises:
            ModelAccessError, ModelFormatError, ModelContractError: the file is refused.
            SettingError: an argument outside its legal values, or a budget that is too small.
            UnavailableError: legal, but not on this machine.

        """
        file = Path(path)
        budget = chosen_budget(ram_budget_bytes)
        with file_at_rest(file):
            native = _ext.LanguageModel.open(os.fspath(file), chosen_isa(), chosen_threads(threads), budget)
            info = describe(native, file)
        return cls(native, info)

    def __repr__(self) -> str:
        info = self.info
        return f"<LanguageModel {info.name}: {info.weight_class}, {info.own_levels} + {info.user_levels} levels, {info.isa}>"

    @property
    def window_stats(self) -> LanguageWindowStats | None:
        """What has been read of the file again since the model was opened; None where all weights are in memory."""
        return language_stats_of(self._native)

    def session(self, sampling: Sampling | None = None, conditions: Mapping[str, Any] | None = None) -> LanguageSession:
        """Return a new stream.

        Args:
            sampling: how it chooses tokens; None takes the published settings, which are greedy for models without codes of
                their own.
            conditions: by the conditioner's name, a label or its number; or, for the one that takes rows, float32
                [rows, width], or a pair of that and bool [rows] that says which are there. A label not given is absent.

        Raises:
            SettingError: a setting outside its legal values; an unknown condition or label; rows missing.
            InputShapeError: rows of another width.

        """
        chosen = sampling or (Sampling() if self.info.own_levels else GREEDY)
        if not 0 <= chosen.seed < _MOST_SEED:
            raise SettingError("seed", str(chosen.seed), "0 .. 2**64 - 1")
        for name, top_k in (("text_top_k", chosen.text_top_k), ("top_k", chosen.top_k)):
            if not 0 <= top_k < _MOST_SEED:
                raise SettingError(name, str(top_k), "0 for all, or a number of tokens")
        labels, rows, filled = requested_conditions(self.info, conditions or {})
        native = _ext.LanguageSession(
            self._native,
            chosen.text_temperature,
            chosen.text_top_k,
            chosen.temperature,
            chosen.top_k,
            chosen.generator,
            chosen.seed,
            labels,
            rows,
            filled,
        )
        return LanguageSession(native, self.info)

    def step_batch(
        self,
        sessions: Sequence[LanguageSession],
        user_codes: ArrayLike,
        given: Sequence[Given] | None = None,
        observer: StageObserver | None = None,
    ) -> list[LanguageStep | None]:
        """Step each session once in one pass over the weights.

        Args:
            sessions: distinct sessions of this model.
            user_codes: integers [sessions, n], as :meth:`LanguageSession.step` takes them.
            given: one for each session, or None.
            observer: sees every stage of the step.

        Returns:
            What each session's ``step`` would have returned, bit for bit.

        Raises:
            CodecError: as :meth:`LanguageSession.step`, or a session of another model; no session has moved.

        """
        self._require_own(sessions)
        rows = code_rows(np.asarray(user_codes, dtype=None if np.size(user_codes) else np.int32))
        if not sessions or rows.ndim != 2 or len(rows) != len(sessions):
            raise InputShapeError("user codes", str(list(rows.shape)), f"one row for each of {len(sessions)} sessions")
        if given is not None and len(given) != len(sessions):
            raise InputShapeError("given", str(len(given)), f"one for each of {len(sessions)} sessions")
        with all_entered(sessions):
            return step_entered(sessions, rows, given, observer)

    def prompt_batch(self, sessions: Sequence[LanguageSession], prompts: Sequence[Prompt]) -> list[list[LanguageStep | None]]:
        """Take each session through a prompt of as many steps, in one pass over the weights for up to 64 steps of all.

        Args:
            sessions: distinct sessions of this model.
            prompts: one for each session, all of the same number of steps.

        Returns:
            What each session's ``prompt`` would have returned, bit for bit.

        Raises:
            CodecError: as :meth:`LanguageSession.prompt`, or a session of another model.

        """
        self._require_own(sessions)
        if not sessions or len(prompts) != len(sessions):
            raise InputShapeError("prompts", str(len(prompts)), f"one for each of {len(sessions)} sessions, at least one")
        with all_entered(sessions):
            return prompt_entered(sessions, prompts)

    def restore(self, blob: bytes) -> LanguageSession:
        """Continue a session from :meth:`LanguageSession.snapshot`, bit for bit.

        Raises:
            SnapshotError: damaged, or of another model.

        """
        state = snapshot.unpack_language(blob, self.info, self.info.own_levels)
        return LanguageSession(_ext.LanguageSession.restore(self._native, state), self.info)

    def _require_own(self, sessions: Sequence[LanguageSession]) -> None:
        for lane, session in enumerate(sessions):
            if not isinstance(session, LanguageSession):
                raise InputTypeError(f"session {lane}", type(session).__name__, LanguageSession.__name__)
            if session.info is not self.info:
                raise SettingError(f"session {lane}", f"one of model {session.info.name!r}", "a session made by this model")
