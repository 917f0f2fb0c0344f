from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from codec_core.convert.gguf_layout import payload_offsets
from codec_core.convert.source_file import SourceFile
from codec_core.errors import ModelFormatError


def offsets_of(path: Path) -> dict[str, int]:
    with SourceFile(path) as file:
        return payload_offsets(file)


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
def test_offsets_of_a_file_of_the_public_writer(alignment: int | None, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "moshi")
    if alignment:
        writer.add_custom_alignment(alignment)
    values: list[Any] = [1, "two", 3.5, True]
    for value, add in zip(values, (writer.add_uint64, writer.add_string, writer.add_float64, writer.add_bool), strict=True):
        add(f"key.{value}", value)
    writer.add_array("tokens", ["a", "", "bcd"] * 500)
    writer.add_array("scores", [0.5, 0.25])
    arrays = {f"t{size}": np.arange(size, dtype=np.float32) for size in (1, 9, 33)}
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    data, offsets = path.read_bytes(), offsets_of(path)
    assert offsets.keys() == arrays.keys()
    for name, array in arrays.items():
        assert data[offsets[name] : offsets[name] + array.nbytes] == array.tobytes()


def test_every_truncation_of_the_header_has_a_typed_error(tiny_gguf: Path, tmp_path: Path) -> None:
    data = tiny_gguf.read_bytes()
    end = min(offsets_of(tiny_gguf).values()) - 32
    path = tmp_path / "short.gguf"
    for size in range(0, end, 7):
        path.write_bytes(data[:size])
        with pytest.raises(ModelFormatError):
            offsets_of(path)


@pytest.mark.parametrize(
    "head",
    [
        b"GGUF" + struct.pack("<IQQ", 2, 0, 0),
        b"FUGG" + struct.pack("<IQQ", 3, 0, 0),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 9, 1),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**62),
        b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 1) + b"t" + struct.pack("<I", 2**32 - 1),
    ],
)
def test_lies(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(head + bytes(64))
    with pytest.raises(ModelFormatError):
        offsets_of(tmp_path / "x.gguf")
