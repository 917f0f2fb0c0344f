from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from codec_core import CodecModel, _ext
from codec_core.convert import convert_model
from codec_core.errors import CheckpointError, SettingError

Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]
Writer = Callable[[Path, Path], Any]
LONG = "mimi.encoder_transformer.transformer.layers.0.self_attn.in_projs.0.weight"


def test_it_is_what_an_independent_writer_writes(small_raw_source: Path, tmp_path: Path, write_raw_gguf: Writer) -> None:
    write_raw_gguf(small_raw_source / "f16.gguf", tmp_path / "theirs.gguf")
    report = convert_model(small_raw_source / "x.safetensors", tmp_path / "ours.gguf", form="raw")
    assert (tmp_path / "ours.gguf").read_bytes() == (tmp_path / "theirs.gguf").read_bytes()
    assert (report.form, report.weight_class, report.numerics, report.default_levels) == ("raw", "f16", "ggml", 8)


def test_f16_unless_another_type_is_asked_for(small_raw_source: Path, tmp_path: Path) -> None:
    for source in ("x.safetensors", "f32.gguf"):
        assert convert_model(small_raw_source / source, tmp_path / "x.gguf", form="raw", force=True).weight_class == "f16"
    report = convert_model(small_raw_source / "x.safetensors", tmp_path / "x.gguf", form="raw", dtype="f32", force=True)
    assert report.weight_class == "f32"


def test_it_can_be_enriched_again(small_raw_source: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(small_raw_source / "x.safetensors", tmp_path / "raw.gguf", form="raw")
    report = convert_model(tmp_path / "raw.gguf", tmp_path / "again.gguf", numerics="kyutai", name="once more")
    assert (report.source_kind, report.name, report.form) == ("raw GGUF", "once more", "enriched")
    found, direct = (read_gguf(path)[1] for path in (tmp_path / "again.gguf", small_raw_source / "f16.gguf"))
    assert {name: tensor.data.tobytes() for name, tensor in found.items()} == {
        name: tensor.data.tobytes() for name, tensor in direct.items()
    }


@pytest.mark.parametrize("numerics", ["kyutai", "ggml"])
def test_one_model_in_every_form_gives_the_same_codes(
    numerics: str, small_raw_source: Path, tmp_path: Path, write_transformers: Writer, speechlike: Any
) -> None:
    checkpoint = small_raw_source / "x.safetensors"
    convert_model(checkpoint, tmp_path / "kyutai.gguf", dtype="f16")
    convert_model(write_transformers(checkpoint, tmp_path / "theirs"), tmp_path / "transformers.gguf", dtype="f16")
    convert_model(checkpoint, tmp_path / "raw.gguf", dtype="f16", form="raw")
    convert_model(tmp_path / "raw.gguf", tmp_path / "enriched.gguf")
    pcm = speechlike(1920 * 12, 5)
    found = {
        path.name: CodecModel.open(path, numerics=numerics).encoder(32).push(pcm) for path in sorted(tmp_path.glob("*.gguf"))
    }
    assert list(found) == ["enriched.gguf", "kyutai.gguf", "raw.gguf", "transformers.gguf"]
    assert all(np.array_equal(codes, found["kyutai.gguf"]) for codes in found.values())
    assert len(np.unique(found["kyutai.gguf"])) > 8


def test_what_a_raw_file_cannot_say(small_raw_source: Path, tiny_checkpoint: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    checkpoint = small_raw_source / "x.safetensors"
    for settings, message in (
        ({"levels": 4}, "levels: found 4, expected 8"),
        ({"numerics": "kyutai"}, "numerics: found kyutai, expected ggml"),
    ):
        with pytest.raises(SettingError, match=message):
            convert_model(checkpoint, tmp_path / "x.gguf", form="raw", **settings)
    for source in (tiny_checkpoint, tiny_gguf):
        with pytest.raises(CheckpointError, match="heads: found 2, expected 8"):
            convert_model(source, tmp_path / "x.gguf", form="raw")
    with pytest.raises(SettingError, match="form: found plain, expected enriched or raw"):
        convert_model(checkpoint, tmp_path / "x.gguf", form="plain")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_names_are_shortened_by_one_rule() -> None:
    assert _ext.mangled_name("x" * 63) == "x" * 63
    assert _ext.mangled_name(LONG) == "".join(f"{byte & 15:x}" for byte in _crc32(LONG.encode()).to_bytes(4, "little")) + "0000"


def _crc32(data: bytes) -> int:
    """The CRC-32 of IEEE 802.3 from its definition, a bit at a time."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0xEDB88320 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def test_the_full_model_has_moshi_cpps_own_sizes(full_model_path: Path, tmp_path: Path, speechlike: Any) -> None:
    raw = tmp_path / "raw.gguf"
    convert_model(full_model_path, raw, form="raw")
    reader = gguf.GGUFReader(raw)
    assert (reader.fields["GGUF.version"].contents(), reader.fields["GGUF.kv_count"].contents()) == (3, 0)
    assert len(reader.tensors) == 254
    assert sum(len(tensor.name) == 8 for tensor in reader.tensors) == 64
    assert len({tensor.name for tensor in reader.tensors}) == 254
    assert 346_000_000 < raw.stat().st_size < 348_000_000
    shapes = {tensor.name: [int(size) for size in tensor.shape] for tensor in reader.tensors}
    assert shapes["mimi.decoder.model.14.conv.conv.weight"] == [3, 64]
    assert shapes["mimi.encoder.model.0.conv.conv.bias"] == [1, 64]
    assert shapes["mimi.quantizer.rvq_first.input_proj.weight"] == [1, 512, 256]
    del reader
    convert_model(full_model_path, tmp_path / "enriched.gguf", dtype="f16")
    pcm = speechlike(1920 * 3, 1)
    codes = [CodecModel.open(path, numerics="ggml").encoder(32).push(pcm) for path in (raw, tmp_path / "enriched.gguf")]
    assert np.array_equal(*codes)
    for path in tmp_path.iterdir():
        path.unlink()
