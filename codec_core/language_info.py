"""What a loaded language model is, and what its streams may be told; see ``docs/language_model.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codec_core import _ext
from codec_core.errors import InputShapeError, ModelContractError, SettingError
from codec_core.model_source import FileDigest


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
    text first; ``context_steps`` is how far attention reaches. ``weight_class`` is what the first matrix is stored as;
    ``weights_bytes`` are those in memory. A step multiplies matrices of ``temporal_bytes`` and ``depformer_bytes``, however
    many sessions it is of. A stream may come to hold ``state_bytes``, and has what its steps have written of them.
    """

    name: str
    path: str
    digest: FileDigest = field(repr=False, compare=False)
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

    @property
    def sha256(self) -> str:
        """Of the model's file, in hexadecimal: the whole file is read when it is first asked for, as by a snapshot.

        Raises:
            ModelAccessError: the file has been written to since the model was opened.

        """
        return self.digest.hexadecimal()

    def facts(self) -> dict[str, Any]:
        """Return all of it by name, ``sha256`` in place of the digest, conditioners as dictionaries: for JSON.

        Raises:
            ModelAccessError: as :attr:`sha256`.

        """
        own = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "digest"}
        return own | {"sha256": self.sha256, "conditioners": [asdict(conditioner) for conditioner in self.conditioners]}


ConditionRequest = tuple[list[int | None], NDArray[np.float32] | None, list[bool]]
"""A label's number by conditioner, None where it is absent; rows; and which of them are there."""


def requested_conditions(info: LanguageModelInfo, conditions: Mapping[str, Any]) -> ConditionRequest:
    """Return conditions by name in the form the engine takes; see :meth:`codec_core.LanguageModel.session`.

    Raises:
        SettingError, InputShapeError: one that the model does not know, or that has another form.

    """
    left = dict(conditions)
    labels: list[int | None] = []
    rows, filled = None, list[bool]()
    for conditioner in info.conditioners:
        value = left.pop(conditioner.name, None)
        if conditioner.label_count:
            labels.append(None if value is None else _label_number(conditioner, value))
            continue
        labels.append(None)
        if value is not None:
            rows, filled = _condition_rows(conditioner, value)
    if left:
        known = ", ".join(conditioner.name for conditioner in info.conditioners) or "none: the model takes no conditions"
        raise SettingError("conditions", ", ".join(left), known)
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


def describe(native: _ext.LanguageModel, path: Path) -> LanguageModelInfo:
    """Return what a model that has just been opened is.

    Raises:
        ModelAccessError: its file is gone. ModelContractError: what it says of its conditions is not of the form published.

    """
    geometry = native.geometry
    return LanguageModelInfo(
        name=native.name or path.stem,
        path=os.fspath(path),
        digest=FileDigest(path),
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
