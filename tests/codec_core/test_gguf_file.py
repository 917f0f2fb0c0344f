"""Metadata of any type out of files written by hand, and keys of the wrong one."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core.errors import ModelAccessError, ModelContractError, ModelFormatError
from codec_core.gguf_file import GgufFile, moshi_component
from tests.ext.weights.gguf_bytes import (
    ARRAY,
    F32,
    FLOAT32,
    I32,
    STRING,
    U8,
    U32,
    U64,
    Key,
    Tensor,
    array,
    f32,
    string,
    text,
    u32,
)
from tests.ext.weights.gguf_bytes import GgufFile as Written

TENSOR = Tensor("w", (2,), F32, bytes(8))


def write(path: Path, *keys: Key) -> GgufFile:
    path.write_bytes(Written(list(keys), [TENSOR]).to_bytes())
    return GgufFile(path)


def numbers(name: str, element_type: int, code: str, *values: float) -> Key:
    return array(name, element_type, len(values), struct.pack(f"<{len(values)}{code}", *values))


def test_arrays_of_every_kind(tmp_path: Path) -> None:
    file = write(
        tmp_path / "x.gguf",
        numbers("u8", U8, "B", 0, 255),
        numbers("i32", I32, "i", -5, 7),
        numbers("u64", U64, "Q", 1 << 40),
        numbers("f32", FLOAT32, "f", 0.5, -1.25),
        array("words", STRING, 3, string("") + string("\u2581a\u00e9") + string("<0x0A>")),
        numbers("none", U32, "I"),
        u32("one", 3),
    )
    assert file.value("u8").tolist() == [0, 255]
    assert file.value("i32").tolist() == [-5, 7]
    assert file.value("u64").tolist() == [1 << 40]
    assert file.numbers("f32", ("f32",)).tolist() == [0.5, -1.25]
    assert file.texts("words") == file.value("words") == ["", "\u2581a\u00e9", "<0x0A>"]
    assert file.numbers("none").size == 0
    assert file.metadata["words"] == {"element_type": "string", "count": 3}
    assert (file.value("one"), file.count("one"), file.count("none of that")) == (3, 3, None)
    assert file.texts("none of that") is file.numbers("none of that") is file.text("none of that") is None


@pytest.mark.parametrize(
    ("call", "key", "message"),
    [
        (GgufFile.texts, u32("k", 1), "found an integer, expected an array of string"),
        (GgufFile.texts, numbers("k", U8, "B", 1), "found an array of u8, expected an array of string"),
        (GgufFile.numbers, text("k", "x"), "found a string, expected an array of"),
        (
            lambda file, key: file.numbers(key, ("f32",)),
            numbers("k", I32, "i", 1),
            "found an array of i32, expected an array of f32",
        ),
        (GgufFile.text, f32("k", 1.5), "found a real number, expected a string"),
        (GgufFile.count, Key("k", 7, b"\1"), "found a bool, expected an integer"),
        (GgufFile.count, Key("k", I32, struct.pack("<i", -1)), "found -1, expected an integer that is not negative"),
        (GgufFile.flag, u32("k", 1), "found an integer, expected a bool"),
    ],
)
def test_a_key_of_another_type(call: Any, key: Key, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=message):
        call(write(tmp_path / "x.gguf", key), "k")


def test_what_a_file_says_it_is(tmp_path: Path) -> None:
    assert moshi_component(write(tmp_path / "x.gguf")) == ""
    assert moshi_component(write(tmp_path / "x.gguf", text("moshi.component", "lm"))) == "lm"
    with pytest.raises(ModelContractError, match=r"'general.architecture'.*'llama', expected 'moshi'"):
        moshi_component(write(tmp_path / "x.gguf", text("general.architecture", "llama")))
    with pytest.raises(ModelContractError, match=r"one of 4 parts.*merge"):
        moshi_component(write(tmp_path / "x.gguf", u32("split.count", 4)))


def test_an_array_that_claims_more_than_there_is(tmp_path: Path) -> None:
    for key in (array("k", U32, 1 << 20, bytes(8)), array("k", STRING, 1 << 24, string("x")), array("k", ARRAY, 1, bytes(16))):
        with pytest.raises(ModelFormatError, match="key 'k'"):
            write(tmp_path / "x.gguf", key)


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    file = write(tmp_path / "x.gguf", numbers("k", U32, "I", 1))
    os.utime(tmp_path / "x.gguf", ns=(0, 0))
    for read in (lambda: file.value("k"), lambda: file.rows("w"), lambda: file.native.payload("w")):
        with pytest.raises(ModelAccessError):
            read()


def test_every_row_of_a_tensor(tmp_path: Path, rng: np.random.Generator) -> None:
    values = rng.standard_normal((5, 3)).astype("<f4")
    (tmp_path / "x.gguf").write_bytes(Written([], [Tensor("w", (3, 5), F32, values.tobytes())]).to_bytes())
    file = GgufFile(tmp_path / "x.gguf")
    assert np.array_equal(file.rows("w"), values)
    assert np.array_equal(file.rows("w", 4), values[4:])
    assert (file.tensors["w"].dims, file.tensors["w"].size_bytes, file.path) == ((3, 5), 60, str(tmp_path / "x.gguf"))
