"""A GGUF file of any kind, header checked: its tensors, its metadata with arrays, and rows of tensors as float32.

Whether the file is a whole model, and of what, is not looked at; that is what opening it does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core import _ext
from codec_core.errors import ModelContractError, ModelFormatError

ARRAY_TYPES: Final = {
    "u8": "u1",
    "i8": "i1",
    "u16": "<u2",
    "i16": "<i2",
    "u32": "<u4",
    "i32": "<i4",
    "f32": "<f4",
    "bool": "u1",
    "u64": "<u8",
    "i64": "<i8",
    "f64": "<f8",
}
"""Element types of an array of numbers, as numpy calls them."""


@dataclass(frozen=True)
class GgufTensor:
    """One tensor of a file."""

    name: str
    """As it is stored."""
    type: str
    """Such as "bf16" or "q4_k"."""
    dims: tuple[int, ...]
    """ggml order: fastest-varying first."""
    offset_bytes: int
    """From the start of the file."""
    size_bytes: int


class GgufFile:
    """An open file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open it.

        Raises:
            ModelAccessError, ModelFormatError.

        """
        self.native = _ext.GgufFile(os.fspath(path))
        """The engine's side of it."""
        self.path = self.native.path
        self.size_bytes = self.native.file_bytes
        self.metadata: dict[str, Any] = self.native.metadata
        """Single values as Python's own, arrays as a dict of their element_type and count."""
        self.tensors = {
            entry["name"]: GgufTensor(entry["name"], entry["type"], entry["dims"], entry["offset_bytes"], entry["bytes"])
            for entry in self.native.tensors
        }
        """By name, in the file's order."""

    def text(self, key: str) -> str | None:
        """Return a string; None where the key is absent.

        Raises:
            ModelFormatError: it is of another type. So all that follow.

        """
        value: str | None = self._single(key, str, "a string")
        return value

    def flag(self, key: str) -> bool | None:
        """Return a bool; None where the key is absent."""
        value: bool | None = self._single(key, bool, "a bool")
        return value

    def count(self, key: str) -> int | None:
        """Return an integer that is not negative; None where the key is absent."""
        value: int | None = self._single(key, int, "an integer")
        if value is not None and value < 0:
            raise ModelFormatError(f"key {key!r}", f"{value}", "an integer that is not negative")
        return value

    def texts(self, key: str) -> list[str] | None:
        """Return an array of strings; None where the key is absent."""
        if key not in self.metadata:
            return None
        self._require_array(key, ("string",))
        values = self.native.array(key)
        return values if isinstance(values, list) else []

    def numbers(self, key: str, types: tuple[str, ...] = tuple(ARRAY_TYPES)) -> npt.NDArray[Any] | None:
        """Return an array of numbers in its own element type, one of ``types``; None where the key is absent."""
        if key not in self.metadata:
            return None
        element_type = self._require_array(key, types)
        values = self.native.array(key)
        return np.frombuffer(values if isinstance(values, bytes) else b"", ARRAY_TYPES[element_type])

    def value(self, key: str) -> Any:
        """Return whatever a key holds: a single value, a list of strings, or an array of numbers."""
        value = self.metadata[key]
        if not isinstance(value, dict):
            return value
        return self.texts(key) if value["element_type"] == "string" else self.numbers(key)

    def rows(self, name: str, first_row: int = 0, rows: int | None = None) -> npt.NDArray[np.float32]:
        """Return rows of a tensor as float32, blocks of quantised types as ggml dequantises them, bit for bit.

        Args:
            name: of a tensor of f32, f16, bf16, q8_0, q4_0 or q4_k.
            first_row: the first that is wanted; a row has ``dims[0]`` values.
            rows: how many; None: all from there on.

        Returns:
            [rows, dims[0]], with memory of its own.

        Raises:
            ModelContractError: another type, or a value that is not finite.
            SettingError: no such tensor, or rows it does not have.
            ModelAccessError: the file changed since it was opened.

        """
        if rows is None:
            tensor = self.tensors.get(name)
            every = 0 if tensor is None else int(np.prod(tensor.dims[1:], dtype=np.int64))
            rows = max(0, every - first_row)
        return self.native.rows(name, first_row, rows)

    def integers(self, name: str) -> npt.NDArray[np.int32]:
        """Return the values of a tensor of i32, flat, in the file's order.

        Raises:
            ModelContractError: another type.

        """
        tensor = self.tensors[name]
        if tensor.type != "i32":
            raise ModelContractError(f"tensor {name!a} type", tensor.type, "i32")
        return np.frombuffer(self.native.payload(name), "<i4").astype(np.int32)

    def _single(self, key: str, kind: type, expected: str) -> Any:
        value = self.metadata.get(key)
        if value is not None and type(value) is not kind:
            raise ModelFormatError(f"key {key!r}", _kind_of(value), expected)
        return value

    def _require_array(self, key: str, types: tuple[str, ...]) -> str:
        value = self.metadata[key]
        found = value["element_type"] if isinstance(value, dict) else None
        if found not in types:
            raise ModelFormatError(f"key {key!r}", _kind_of(value), f"an array of {' or '.join(types)}")
        return str(found)


def moshi_component(file: GgufFile) -> str:
    """Return the component of Moshi a file says it is: "mimi", "lm" or "voice"; "" where it says nothing.

    Raises:
        ModelContractError: a file of something else, or one part of a split file.

    """
    if (parts := file.count("split.count") or 1) > 1:
        raise ModelContractError("key 'split.count'", f"one of {parts} parts", "one whole file: merge the parts first")
    if (architecture := file.text("general.architecture") or "moshi") != "moshi":
        raise ModelContractError("key 'general.architecture'", f"{architecture!a}", "'moshi'")
    return file.text("moshi.component") or ""


def check_language_model(file: GgufFile) -> dict[str, Any]:
    """Check a language model's file as completely as opening it does, every value included.

    Returns:
        Its sizes, as the engine calls them.

    Raises:
        ModelContractError, ModelFormatError: it is no language model the engine runs; names tensor or key, found and expected.
        ModelAccessError: the file changed since it was opened.

    """
    return _ext.check_language_model(file.native)


def _kind_of(value: Any) -> str:
    if isinstance(value, dict):
        return f"an array of {value['element_type']}"
    return {bool: "a bool", int: "an integer", float: "a real number", str: "a string"}[type(value)]
