from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import CodecModel, __version__
from codec_core.convert import convert_model, source_file
from codec_core.errors import CheckpointError, ModelAccessError, ModelContractError, OutputExistsError, SettingError
from codec_core.synth import write_synthetic

Tensors = dict[str, Any]
Reader = Callable[[Path], tuple[dict[str, Any], Tensors]]


def test_what_is_written_and_reported(tiny_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    path = tmp_path / "x.gguf"
    report = convert_model(tiny_checkpoint, path, levels=12)
    sha256 = hashlib.sha256(tiny_checkpoint.read_bytes()).hexdigest()
    metadata, tensors = read_gguf(path)
    assert list(metadata.items()) == [
        ("general.architecture", "moshi"),
        ("general.name", "mimi-synth-tiny"),
        ("moshi.component", "mimi"),
        ("moshi.mimi.sample_rate", 24000),
        ("moshi.mimi.frame_rate", 12.5),
        ("moshi.mimi.n_q", 12),
        ("moshi.mimi.card", 32),
        ("moshi.mimi.dim", 16),
        ("moshi.mimi.semantic_n_q", 1),
        ("moshi.mimi.codebook_dim", 8),
        ("moshi.mimi.transformer.num_layers", 2),
        ("moshi.mimi.transformer.num_heads", 2),
        ("moshi.mimi.transformer.context", 8),
        ("moshi.mimi.transformer.max_period", 10000),
        ("moshi.mimi.numerics", "kyutai"),
        ("moshi.mimi.weight_class", "f32"),
        ("moshi.mimi.source_sha256", sha256),
        ("moshi.mimi.converter", f"mimi-server {__version__}"),
    ]
    assert (report.source_sha256, report.levels, report.default_levels) == (sha256, 32, 12)
    assert (report.tensors, report.unchanged_tensors) == (len(tensors), len(tensors) - 32)
    info = CodecModel.open(path).info
    assert (info.name, info.levels, info.default_levels, info.weight_class) == ("mimi-synth-tiny", 32, 12, "f32")


def test_the_same_source_gives_the_same_bytes(tiny_checkpoint: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    convert_model(tiny_checkpoint, tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == tiny_gguf.read_bytes()


def test_the_size_of_the_pieces_does_not_show(
    tiny_checkpoint: Path, tiny_f16_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_file, "PIECE_BYTES", 61)
    convert_model(tiny_checkpoint, tmp_path / "x.gguf", dtype="f16")
    assert (tmp_path / "x.gguf").read_bytes() == tiny_f16_gguf.read_bytes()


def types(tensors: Tensors) -> dict[str, np.dtype]:
    return {name: tensor.data.dtype for name, tensor in tensors.items()}


def require_halves(metadata: dict[str, Any], narrow: Tensors, wide: Tensors, belongs: Callable[[str], bool]) -> None:
    """Require class f16, with f16 for what belongs and what was f16 already, and the values rounded once."""
    assert metadata["moshi.mimi.weight_class"] == "f16"
    for name, tensor in narrow.items():
        half = belongs(name) or wide[name].data.dtype == np.float16
        assert tensor.data.dtype == (np.float16 if half else np.float32), name
        assert np.array_equal(tensor.data, wide[name].data.astype(tensor.data.dtype))


def test_class_f16(tiny_gguf: Path, tiny_f16_gguf: Path, read_gguf: Reader) -> None:
    _, wide = read_gguf(tiny_gguf)
    metadata, narrow = read_gguf(tiny_f16_gguf)
    convs_and_rvq = re.compile(r"\.conv\.conv\.weight$|\.quantizer\..*_proj\.")
    require_halves(metadata, narrow, wide, lambda name: convs_and_rvq.search(name) is not None)
    assert CodecModel.open(tiny_f16_gguf).info.weight_class == "f16"


def test_codebooks_of_halves(tiny_checkpoint: Path, tiny_f16_gguf: Path, tmp_path: Path, read_gguf: Reader) -> None:
    _, wide = read_gguf(tiny_f16_gguf)
    convert_model(tiny_checkpoint, tmp_path / "x.gguf", dtype="f16", codebooks="f16")
    metadata, narrow = read_gguf(tmp_path / "x.gguf")
    require_halves(metadata, narrow, wide, lambda name: name.endswith("._codebook.embedding"))
    convert_model(tmp_path / "x.gguf", tmp_path / "kept.gguf")
    assert types(read_gguf(tmp_path / "kept.gguf")[1]) == types(narrow)
    convert_model(tmp_path / "x.gguf", tmp_path / "widened.gguf", codebooks="f32")
    assert read_gguf(tmp_path / "widened.gguf")[1]["mimi.quantizer.rvq_first.vq.layers.0._codebook.embedding"].data.dtype == (
        np.float32
    )


def test_matrices_of_halves(tiny_checkpoint: Path, tiny_f16_gguf: Path, tmp_path: Path, read_gguf: Reader) -> None:
    matrix = re.compile(r"\.convtr\.weight$|_transformer\..*\.(in_projs\.0|out_projs\.0|linear1|linear2)\.weight$")
    _, wide = read_gguf(tiny_f16_gguf)
    convert_model(tiny_checkpoint, tmp_path / "x.gguf", dtype="f16", matrices="f16")
    metadata, narrow = read_gguf(tmp_path / "x.gguf")
    assert sum(bool(matrix.search(name)) for name in narrow) == 1 + 4 + 2 * 2 * 4
    require_halves(metadata, narrow, wide, lambda name: matrix.search(name) is not None)
    convert_model(tmp_path / "x.gguf", tmp_path / "kept.gguf")
    assert types(read_gguf(tmp_path / "kept.gguf")[1]) == types(narrow)
    convert_model(tmp_path / "x.gguf", tmp_path / "widened.gguf", matrices="f32")
    assert types(read_gguf(tmp_path / "widened.gguf")[1]) == types(wide)


def test_matrices_of_halves_become_blocks(wide_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(wide_checkpoint, tmp_path / "x.gguf", dtype="f16", matrices="f16")
    report = convert_model(tmp_path / "x.gguf", tmp_path / "blocks.gguf", quantize="q8_0")
    assert report.weight_class == CodecModel.open(tmp_path / "blocks.gguf").info.weight_class == "q8_0"
    convert_model(tmp_path / "blocks.gguf", tmp_path / "kept.gguf", dtype="f16", matrices="f16")
    names = ("upsample.convtr.convtr.convtr", "encoder_transformer.transformer.layers.0.linear1")
    tensors = read_gguf(tmp_path / "kept.gguf")[1]
    assert [tensors[f"mimi.{name}.weight"].tensor_type.name for name in names] == ["F16", "Q8_0"]


def test_an_existing_output_is_replaced_only_when_asked(tiny_checkpoint: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"precious")
    with pytest.raises(OutputExistsError):
        convert_model(tiny_checkpoint, path)
    assert path.read_bytes() == b"precious"
    convert_model(tiny_checkpoint, path, force=True)
    assert path.read_bytes() == tiny_gguf.read_bytes()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "q8_0"}, "dtype: found q8_0, expected f32 or f16"),
        ({"numerics": "exact"}, "numerics: found exact, expected kyutai or ggml"),
        ({"codebooks": "q8_0"}, "codebooks: found q8_0, expected f32 or f16"),
        ({"codebooks": "f16"}, 'codebooks: found f16, expected f32, or dtype "f16" besides'),
        ({"codebooks": "f16", "form": "raw"}, "codebooks: found f16, expected f32"),
        ({"matrices": "q8_0"}, "matrices: found q8_0, expected f32 or f16"),
        ({"matrices": "f16"}, 'matrices: found f16, expected f32, or dtype "f16" besides'),
        ({"matrices": "f16", "form": "raw"}, "matrices: found f16, expected f32"),
        ({"matrices": "f16", "dtype": "f16", "quantize": "q8_0"}, "matrices: found f16, expected f32, or no quantize"),
        ({"levels": 0}, "levels: found 0, expected 1 .. 32"),
        ({"levels": 33}, "levels: found 33, expected 1 .. 32"),
    ],
)
def test_settings_outside_their_values(settings: dict[str, Any], message: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=message):
        convert_model(tiny_checkpoint, tmp_path / "x.gguf", **settings)
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with b''"),
        (b"<!DOCTYPE html><html>", "begins with b'<!DOCTYPE'"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
        (b"PK\x03\x04" + bytes(60), "begins with b'PK"),
        (b"\xff" * 8 + b"{}", "header length"),
    ],
)
def test_what_is_no_checkpoint_at_all(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        convert_model(tmp_path / "x.bin", tmp_path / "x.gguf")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_paths_that_cannot_be_used(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelAccessError, match="No such file"):
        convert_model(tmp_path / "none.safetensors", tmp_path / "x.gguf")
    with pytest.raises(ModelAccessError, match="No such file"):
        convert_model(tiny_checkpoint, tmp_path / "no" / "x.gguf")


def test_a_value_past_f16_leaves_no_file(tiny_gguf: Path, tmp_path: Path, read_gguf: Reader) -> None:
    data = bytearray(tiny_gguf.read_bytes())
    _, tensors = read_gguf(tiny_gguf)
    offset = tensors["mimi.encoder.model.0.conv.conv.weight"].data_offset
    data[offset : offset + 4] = np.float32(70000).tobytes()
    (tmp_path / "big.gguf").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"encoder.model.0.conv.conv.weight': found 70000"):
        convert_model(tmp_path / "big.gguf", tmp_path / "x.gguf", dtype="f16")
    data[offset : offset + 4] = np.float32(np.inf).tobytes()
    (tmp_path / "big.gguf").write_bytes(data)
    with pytest.raises(ModelContractError, match=r"encoder.model.0.conv.conv.weight"):
        convert_model(tmp_path / "big.gguf", tmp_path / "x.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["big.gguf"]


def test_a_source_that_changes_meanwhile(tiny_checkpoint: Path, tmp_path: Path) -> None:
    source = tmp_path / "x.safetensors"
    source.write_bytes(tiny_checkpoint.read_bytes())

    def touch(done: int, total: int) -> None:
        if done == total:
            os.utime(source, ns=(0, 0))

    with pytest.raises(ModelAccessError, match="changed while it was read"):
        convert_model(source, tmp_path / "x.gguf", progress=touch)
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_progress_counts_to_its_total(tiny_checkpoint: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    convert_model(tiny_checkpoint, tmp_path / "x.gguf", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


MEASURED = """
import json, resource, sys
from codec_core.convert import convert_model
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
convert_model(sys.argv[1], sys.argv[2], dtype=sys.argv[3], force=True)
print(json.dumps(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)))
"""


@pytest.fixture(scope="module")
def full_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "full.safetensors"
    write_synthetic(path, "full")
    return path


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_memory_stays_far_below_the_size_of_the_file(dtype: str, full_checkpoint: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURED, full_checkpoint, tmp_path / "x.gguf", dtype]
    done = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) < 64 << 20
    assert full_checkpoint.stat().st_size > 380_000_000


def test_an_interrupted_conversion_leaves_nothing(full_checkpoint: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURED, full_checkpoint, tmp_path / "x.gguf", "f32"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 1 << 20 for path in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in output
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["x.safetensors", "symlink.gguf", "hard_link.gguf"])
def test_the_source_is_never_replaced(name: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    source = tmp_path / "x.safetensors"
    source.write_bytes(tiny_checkpoint.read_bytes())
    (tmp_path / "symlink.gguf").symlink_to(source)
    (tmp_path / "hard_link.gguf").hardlink_to(source)
    with pytest.raises(CheckpointError, match="found the source itself"):
        convert_model(source, tmp_path / name, force=True)
    assert (tmp_path / name).read_bytes() == tiny_checkpoint.read_bytes()
    assert len(list(tmp_path.iterdir())) == 3
