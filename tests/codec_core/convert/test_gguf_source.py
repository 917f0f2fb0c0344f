from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.convert import convert_model
from codec_core.convert.gguf_source import read_gguf as read_gguf_source
from codec_core.convert.source_file import SourceFile
from codec_core.errors import ModelAccessError, ModelContractError, ModelFormatError

Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]
Writer = Callable[[Path, Path], dict[str, bytes]]


@pytest.mark.parametrize("weight_class", ["f32", "f16"])
def test_raw(weight_class: str, small_raw_source: Path, tmp_path: Path, read_gguf: Reader, write_raw_gguf: Writer) -> None:
    raw, restored = tmp_path / "raw.gguf", tmp_path / "restored.gguf"
    payloads = write_raw_gguf(small_raw_source / f"{weight_class}.gguf", raw)
    report = convert_model(raw, restored)
    _, stored = read_gguf(raw)
    assert sum(len(name) == 8 for name in stored) == 16  # four long names in each of two layers of two sides
    metadata, found = read_gguf(restored)
    assert {name: tensor.data.tobytes() for name, tensor in found.items()} == payloads
    assert (report.source_kind, report.numerics, report.weight_class) == ("raw GGUF", "ggml", weight_class)
    assert (report.default_levels, report.unchanged_tensors) == (8, report.tensors)
    assert metadata["moshi.component"] == "mimi"
    assert metadata["general.name"] == "raw"


def test_the_restored_file_gives_the_same_codes(
    small_raw_source: Path, tmp_path: Path, write_raw_gguf: Writer, speechlike: Any
) -> None:
    write_raw_gguf(small_raw_source / "f32.gguf", tmp_path / "raw.gguf")
    convert_model(tmp_path / "raw.gguf", tmp_path / "restored.gguf", numerics="kyutai")
    pcm = speechlike(1920 * 6, 3)
    found = [
        CodecModel.open(path, numerics="kyutai").encoder(32).push(pcm)
        for path in (small_raw_source / "f32.gguf", tmp_path / "restored.gguf")
    ]
    assert np.array_equal(*found)


def test_a_file_with_metadata_keeps_what_it_says(tiny_gguf: Path, tmp_path: Path, read_gguf: Reader) -> None:
    report = convert_model(tiny_gguf, tmp_path / "again.gguf", levels=5, numerics="ggml")
    before, old = read_gguf(tiny_gguf)
    after, new = read_gguf(tmp_path / "again.gguf")
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {"moshi.mimi.n_q", "moshi.mimi.numerics", "moshi.mimi.source_sha256"}
    assert report.source_kind == "GGUF with metadata"
    assert all(new[name].data.tobytes() == old[name].data.tobytes() for name in old)


def test_types_change_only_when_asked(tiny_gguf: Path, tiny_f16_gguf: Path, tmp_path: Path, read_gguf: Reader) -> None:
    report = convert_model(tiny_gguf, tmp_path / "narrow.gguf", dtype="f16")
    _, narrow = read_gguf(tmp_path / "narrow.gguf")
    _, direct = read_gguf(tiny_f16_gguf)
    assert report.weight_class == "f16"
    assert all(narrow[name].data.tobytes() == direct[name].data.tobytes() for name in direct)
    wide = convert_model(tiny_f16_gguf, tmp_path / "wide.gguf", dtype="f32")
    assert wide.weight_class == "f32"
    _, found = read_gguf(tmp_path / "wide.gguf")
    assert all(np.array_equal(found[name].data, direct[name].data.astype(np.float32)) for name in direct)


def test_short_names_that_cannot_be_restored(
    small_raw_source: Path, tmp_path: Path, read_gguf: Reader, write_raw_gguf: Writer
) -> None:
    raw = tmp_path / "raw.gguf"
    write_raw_gguf(small_raw_source / "f32.gguf", raw)
    first, second = [name.encode() for name in read_gguf(raw)[1] if len(name) == 8][:2]
    data = raw.read_bytes()
    for replacement, error in ((b"00000000", ModelContractError), (second, ModelFormatError)):
        raw.write_bytes(data.replace(first, replacement))
        with pytest.raises(error) as caught:
            convert_model(raw, tmp_path / "x.gguf")
        assert (first if replacement != second else second).decode() in str(caught.value)
    assert not (tmp_path / "x.gguf").exists()


def test_the_file_that_is_inspected_is_the_one_that_is_read(tiny_gguf: Path, tiny_f16_gguf: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tiny_gguf)
    with SourceFile(link) as file:
        link.unlink()
        link.symlink_to(tiny_f16_gguf)
        with pytest.raises(ModelAccessError, match="changed while it was read"):
            read_gguf_source(file, None)
