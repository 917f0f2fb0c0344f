from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from codec_core.convert.gguf_writer import payload_bytes, write_gguf
from codec_core.convert.planned_model import PlannedTensor
from codec_core.errors import InternalError


def planned(name: str, array: np.ndarray, pieces: int = 1) -> PlannedTensor:
    data = array.tobytes()
    step = max(1, len(data) // pieces // 4) * 4
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    stored = "f16" if array.dtype == np.float16 else "f32"
    return PlannedTensor(name, tuple(reversed(array.shape)), stored, lambda: iter(parts), stored)


def test_the_public_reader_reads_it_back(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(7, dtype=np.float32),
        "b": np.arange(30, dtype=np.float16).reshape(2, 3, 5),
        "\u00e9": np.arange(1, dtype=np.float32),
    }
    tensors = [planned(name, array, 3) for name, array in arrays.items()]
    metadata: list[tuple[str, str | int | float]] = [("general.architecture", "moshi"), ("n", 7), ("rate", 12.5), ("empty", "")]
    sizes: list[int] = []
    path = tmp_path / "x.gguf"
    write_gguf(path, metadata, tensors, sizes.append)
    reader = gguf.GGUFReader(path)
    assert {field: reader.fields[field].contents() for field, _ in metadata} == dict(metadata)
    assert reader.fields["n"].types == [gguf.GGUFValueType.UINT32]
    assert reader.fields["rate"].types == [gguf.GGUFValueType.FLOAT32]
    for tensor in reader.tensors:
        assert np.array_equal(tensor.data, arrays[tensor.name])
        assert tensor.data_offset % 32 == 0
    assert sum(sizes) == payload_bytes(tensors) == 28 + 60 + 4
    assert path.stat().st_size % 32 == 0


def test_a_payload_of_another_size_is_a_bug(tmp_path: Path) -> None:
    tensor = PlannedTensor("x", (4,), "f32", lambda: iter([bytes(12)]), "f32")
    with pytest.raises(InternalError, match="payload of 'x': found 12 bytes, expected 16"):
        write_gguf(tmp_path / "x.gguf", [], [tensor], lambda _: None)
