"""A loaded language model: opened once, immutable, shared by every session and thread. See ``docs/language_model.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core import _ext, snapshot
from codec_core.errors import InputShapeError, InputTypeError, ModelContractError, SettingError
from codec_core.language_session import GREEDY, Given, LanguageSession, LanguageStep, Sampling, step_entered
from codec_core.model_source import chosen_isa, chosen_threads, file_at_rest, sha256_of
from codec_core.rows import code_rows
from codec_core.session_base import StageObserver, all_entered
from codec_core.window import chosen_budget

_MOST_SEED = 2**64


@dataclass(frozen=True)
class Conditioner:
    """What a stream may be told besides its tokens: one of ``labels``, or rows of ``width`` numbers where there are none.

    ``label_count`` is how many labels there are; a file that does not name them has no ``labels``.
    """

    name: str
    width: int
    label_count: int
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class LanguageModelInfo:
    """What a loaded language model is.

    Audio has ``audio_channels`` codebooks in all, ``own_levels`` of the model's own and ``user_levels`` of the user's; a step
    is 80 ms. ``text_entries`` and ``codebook_entries`` are also the ids of the initial tokens. ``delays_steps`` are by channel,
    text first; ``context_steps`` is how far attention reaches. ``weight_class`` is what the first matrix is stored as. A step
    multiplies matrices of ``temporal_bytes`` and ``depformer_bytes``, however many sessions it is of.
    """

    name: str
    path: str
    sha256: str
    weight_class: str
    numerics: str
    audio_channels: int
    own_levels: int
    user_levels: int
    codebook_entries: int
    text_entries: int
    text_padding_id: int
    delays_steps: tuple[int, ...]
    max_delay_steps: int
    context_steps: int
    extra_heads: int
    conditioners: tuple[Conditioner, ...]
    isa: str
    threads: int
    weights_bytes: int
    temporal_bytes: int
    depformer_bytes: int
    state_bytes: int


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
                that is smaller than the weights, matrices are read again and again from the file, which must stay as it is;
                the results are the same. Sessions and scratch come on top.

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
            info = _describe(native, file)
        return cls(native, info)

    def __repr__(self) -> str:
        info = self.info
        return f"<LanguageModel {info.name}: {info.weight_class}, {info.own_levels} + {info.user_levels} levels, {info.isa}>"

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
        labels, rows, filled = self._conditions(dict(conditions or {}))
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
        for lane, session in enumerate(sessions):
            if not isinstance(session, LanguageSession):
                raise InputTypeError(f"session {lane}", type(session).__name__, LanguageSession.__name__)
            if session.info is not self.info:
                raise SettingError(f"session {lane}", f"one of model {session.info.name!r}", "a session made by this model")
        rows = code_rows(np.asarray(user_codes, dtype=None if np.size(user_codes) else np.int32))
        if not sessions or rows.ndim != 2 or len(rows) != len(sessions):
            raise InputShapeError("user codes", str(list(rows.shape)), f"one row for each of {len(sessions)} sessions")
        if given is not None and len(given) != len(sessions):
            raise InputShapeError("given", str(len(given)), f"one for each of {len(sessions)} sessions")
        with all_entered(sessions):
            return step_entered(sessions, rows, given, observer)

    def restore(self, blob: bytes) -> LanguageSession:
        """Continue a session from :meth:`LanguageSession.snapshot`, bit for bit.

        Raises:
            SnapshotError: damaged, or of another model.

        """
        state = snapshot.unpack_language(blob, self.info, self.info.own_levels)
        return LanguageSession(_ext.LanguageSession.restore(self._native, state), self.info)

    def _conditions(self, conditions: dict[str, Any]) -> tuple[list[int | None], NDArray[np.float32] | None, list[bool]]:
        labels: list[int | None] = []
        rows, filled = None, list[bool]()
        for conditioner in self.info.conditioners:
            value = conditions.pop(conditioner.name, None)
            if conditioner.label_count:
                labels.append(None if value is None else _label_number(conditioner, value))
                continue
            labels.append(None)
            if value is not None:
                rows, filled = _condition_rows(conditioner, value)
        if conditions:
            known = (
                ", ".join(conditioner.name for conditioner in self.info.conditioners) or "none: the model takes no conditions"
            )
            raise SettingError("conditions", ", ".join(conditions), known)
        return labels, rows, filled


def _label_number(conditioner: Conditioner, value: object) -> int:
    if isinstance(value, str) and value in conditioner.labels:
        return conditioner.labels.index(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < conditioner.label_count:
        return value
    names = ", ".join(conditioner.labels) or "unnamed in this file"
    raise SettingError(
        f"condition {conditioner.name!r}", repr(value), f"0 .. {conditioner.label_count - 1}, or a label: {names}"
    )


def _condition_rows(conditioner: Conditioner, value: Any) -> tuple[NDArray[np.float32], list[bool]]:
    rows, filled = value if isinstance(value, tuple) else (value, None)
    array = np.ascontiguousarray(rows, np.float32)
    if array.ndim != 2 or array.shape[1] != conditioner.width:
        raise InputShapeError(f"condition {conditioner.name!r}", str(list(array.shape)), f"[rows, {conditioner.width}]")
    if not np.isfinite(array).all():
        raise SettingError(f"condition {conditioner.name!r}", "a value that is not finite", "finite values")
    return array, [True] * len(array) if filled is None else [bool(there) for there in filled]


def _labels_by_name(text: str) -> dict[str, tuple[str, ...]]:
    """Read the labels out of the configuration a file carries.

    Raises:
        ModelContractError: it is not of the form published.

    """
    try:
        conditioners = json.loads(text) if text else {}
        return {
            name: tuple(str(value) for value in conditioner[conditioner["type"]].get("possible_values", ()))
            for name, conditioner in conditioners.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelContractError(
            "key 'moshi.lm.conditioners'", repr(error), "the configuration's conditioners as JSON"
        ) from None


def _conditioners(native: _ext.LanguageModel) -> tuple[Conditioner, ...]:
    names = _labels_by_name(native.conditioners)
    found = []
    for entry in native.geometry["conditioners"]:
        labels = names.get(entry["name"], ())
        if labels and len(labels) != entry["labels"]:
            raise ModelContractError(
                "key 'moshi.lm.conditioners'",
                f"{len(labels)} labels of {entry['name']!r}",
                f"{entry['labels']}, as the tensors say",
            )
        found.append(Conditioner(entry["name"], entry["width"], entry["labels"], labels))
    return tuple(found)


def _describe(native: _ext.LanguageModel, path: Path) -> LanguageModelInfo:
    geometry = native.geometry
    return LanguageModelInfo(
        name=native.name or path.stem,
        path=os.fspath(path),
        sha256=sha256_of(path),
        weight_class=native.weight_class,
        numerics="kyutai",
        audio_channels=geometry["audio_channels"],
        own_levels=geometry["own_levels"],
        user_levels=geometry["user_levels"],
        codebook_entries=geometry["codebook_entries"],
        text_entries=geometry["text_entries"],
        text_padding_id=geometry["text_padding_id"],
        delays_steps=geometry["delays_steps"],
        max_delay_steps=max(geometry["delays_steps"]),
        context_steps=geometry["temporal"]["context_steps"],
        extra_heads=geometry["extra_heads"],
        conditioners=_conditioners(native),
        isa=native.isa,
        threads=native.threads,
        weights_bytes=native.weights_bytes,
        temporal_bytes=native.step_bytes[0],
        depformer_bytes=native.step_bytes[1],
        state_bytes=native.state_bytes,
    )
