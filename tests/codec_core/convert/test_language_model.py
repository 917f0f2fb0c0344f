"""Language models from every form of source: the same tensors, the configuration as metadata, the tokenizer proven."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import sentencepiece

from codec_core import __version__
from codec_core.convert import convert_language_model, source_file
from codec_core.errors import (
    CheckpointError,
    ModelAccessError,
    OutputExistsError,
    SettingError,
)
from codec_core.gguf_file import GgufFile
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from codec_core.text_tokenizer import TextTokenizer
from tests.lm_sources import (
    is_kept_f32,
    raw_tensors,
    short_name,
    train_tokenizer,
    write_checkpoint,
    write_config,
    write_raw,
)

MODELS = sorted(LM_CONFIGS)
Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer for the text tokens. Without a normaliser: the public gguf package takes minutes to read its table."""
    path = tmp_path_factory.mktemp("words") / "words.model"
    return train_tokenizer(path, normalization_rule_name="identity")


def payloads(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    data, file = path.read_bytes(), GgufFile(path)
    return {
        name: (tensor.type, tensor.dims, data[tensor.offset_bytes : tensor.offset_bytes + tensor.size_bytes])
        for name, tensor in file.tensors.items()
    }


@pytest.mark.parametrize("model", MODELS)
def test_every_form_gives_the_same_tensors(model: str, words: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "fused.safetensors", model)
    write_checkpoint(tmp_path / "split.safetensors", model, split=True)
    write_raw(tmp_path / "raw.gguf", model)
    found = {}
    for source in ("fused.safetensors", "split.safetensors", "raw.gguf"):
        report = convert_language_model(tmp_path / source, tmp_path / f"{source}.out", tokenizer=words)
        assert (report.component, report.types.keys(), report.unchanged_tensors) == ("lm", {"f32"}, report.tensors)
        found[source] = payloads(tmp_path / f"{source}.out")
    expected = {}
    for name, (data, _) in raw_tensors(model).items():
        expected[name] = (tuple(reversed(data.shape)), data.tobytes())
    first = found["fused.safetensors"]
    assert {short_name(name): tensor[1:] for name, tensor in first.items()} == expected
    assert all(other == first and list(other) == list(first) for other in found.values())


@pytest.mark.parametrize("dtype", ["f16", "bf16", "keep"])
def test_types_change_only_when_asked(dtype: str, tmp_path: Path) -> None:
    for stored in ("f32", "f16", "bf16"):
        write_checkpoint(tmp_path / "x.safetensors", "b", dtype=stored)
        report = convert_language_model(
            tmp_path / "x.safetensors", tmp_path / "x.gguf", dtype=dtype, tokenizer="none", force=True
        )
        written = stored if dtype == "keep" else dtype
        arrays = lm_arrays("b", split=True)
        for name, (kind, _, data) in payloads(tmp_path / "x.gguf").items():
            kept = is_kept_f32(name)
            assert kind == ("f32" if kept else written)
            rounded = _rounded(arrays[name.removeprefix("lm.")], stored)
            assert data == _stored(rounded, "f32" if kept else written), name
        assert set(report.types) == {"f32", written}
        if written == stored:
            vectors = sum(is_kept_f32(name) for name in arrays)
            assert report.tensors - report.unchanged_tensors == (0 if stored == "f32" else vectors)


def _stored(values: np.ndarray, kind: str) -> bytes:
    if kind == "bf16":
        return gguf.quants.quantize(np.ascontiguousarray(values), gguf.GGMLQuantizationType.BF16).tobytes()
    return values.astype({"f32": "<f4", "f16": "<f2"}[kind]).tobytes()


def _rounded(values: np.ndarray, kind: str) -> np.ndarray:
    stored = np.frombuffer(_stored(values, kind), np.uint8)
    if kind == "bf16":
        return gguf.quants.dequantize(stored, gguf.GGMLQuantizationType.BF16).reshape(values.shape)
    return stored.view({"f32": "<f4", "f16": "<f2"}[kind]).astype(np.float32).reshape(values.shape)


STATED = {
    "general.architecture": "moshi",
    "moshi.component": "lm",
    **{
        f"moshi.lm.{key}": LM_CONFIGS["a"][key]
        for key in ("card", "n_q", "dep_q", "text_card", "dim", "num_layers", "num_heads")
    },
    **{f"moshi.lm.{key}": LM_CONFIGS["a"][key] for key in ("context", "max_period", "gating", "norm", "positional_embedding")},
    "moshi.lm.text_card_out": 96,
    "moshi.lm.kv_repeat": 1,
    "moshi.lm.dim_feedforward": 528,
    "moshi.lm.causal": True,
    "moshi.lm.existing_text_padding_id": 3,
    "moshi.lm.existing_text_end_padding_id": 0,
    "moshi.lm.cross_attention": False,
    "moshi.lm.demux_second_stream": False,
    "moshi.lm.model_type": "moshi",
    "moshi.lm.extra_heads.num_heads": 0,
    "moshi.lm.extra_heads.dim": 6,
    "moshi.lm.delays": [0, 0, 1, 1, 1, 0, 1, 1, 1],
    **{f"moshi.lm.depformer.{key}": value for key, value in {"dim": 64, "num_heads": 4, "num_layers": 2}.items()},
    **{f"moshi.lm.depformer.{key}": value for key, value in {"kv_repeat": 1, "dim_feedforward": 288, "context": 4}.items()},
    "moshi.lm.depformer.max_period": 10000,
    "moshi.lm.depformer.gating": "silu",
    "moshi.lm.depformer.pos_emb": "none",
    "moshi.lm.depformer.multi_linear": True,
    "moshi.lm.depformer.weights_per_step": True,
    "moshi.lm.depformer.weights_per_step_schedule": [0, 1, 2, 3],
}
"""What the file of model ``a`` says of itself, but for names and digests."""


DIGESTED = {"moshi.lm.config_sha256": "config.json", "moshi.lm.source_sha256": "model.safetensors"}


def test_the_configuration_is_metadata(words: Path, tmp_path: Path, read_gguf: Reader) -> None:
    write_checkpoint(tmp_path / "model.safetensors", "a")
    report = convert_language_model(tmp_path / "model.safetensors", tmp_path / "x.gguf", tokenizer=words)
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    found = {key: value for key, value in metadata.items() if not key.startswith("tokenizer.")}
    digests = {key: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for key, name in DIGESTED.items()}
    names = {"general.name": tmp_path.name, "moshi.lm.converter": f"mimi-server {__version__}"}
    assert found == {**STATED, **digests, **names}
    assert (report.source_sha256, report.config_sha256) == (found["moshi.lm.source_sha256"], found["moshi.lm.config_sha256"])
    assert report.tokenizer_sha256 == hashlib.sha256(words.read_bytes()).hexdigest()


def test_the_tokenizer_is_embedded(words: Path, tmp_path: Path, read_gguf: Reader) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(words))
    write_checkpoint(tmp_path / "x.safetensors", "s")
    report = convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=words)
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    pieces = range(theirs.piece_size())
    assert report.tokenizer_pieces == len(pieces) <= 96
    assert metadata["tokenizer.ggml.model"] == "llama"
    assert metadata["tokenizer.ggml.tokens"] == [theirs.id_to_piece(place) for place in pieces]
    assert metadata["tokenizer.ggml.scores"] == [theirs.get_score(place) for place in pieces]
    assert metadata["tokenizer.ggml.token_type"][:5] == [2, 3, 3, 3, 1]
    ids = [metadata[f"tokenizer.ggml.{role}_token_id"] for role in ("unknown", "bos", "eos", "padding")]
    assert (ids, metadata["tokenizer.ggml.add_bos_token"], metadata["tokenizer.ggml.add_eos_token"]) == (
        [0, 1, 2, 3],
        False,
        False,
    )
    assert metadata["tokenizer.sentencepiece.sha256"] == report.tokenizer_sha256
    tokenizer = TextTokenizer.from_file(GgufFile(tmp_path / "x.gguf"))
    assert tokenizer is not None
    assert tokenizer.encode("kalo mé  が") == list(theirs.encode("kalo mé  が"))


def test_the_file_the_config_names_is_taken(words: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "s")
    with pytest.raises(CheckpointError, match=r"tokenizer_spm_32k_3.model: found no such file.*--tokenizer none"):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf")
    write_config(tmp_path, "s", tokenizer_name="mine.model")
    (tmp_path / "mine.model").write_bytes(words.read_bytes())
    assert convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf").tokenizer_pieces > 0
    assert convert_language_model(tmp_path / "x.safetensors", tmp_path / "y.gguf", tokenizer="none").tokenizer_pieces == 0
    assert not any(key.startswith("tokenizer.") for key in GgufFile(tmp_path / "y.gguf").metadata)


def test_a_file_with_metadata_keeps_what_it_says(words: Path, tmp_path: Path, read_gguf: Reader) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "c")
    convert_language_model(tmp_path / "x.safetensors", tmp_path / "first.gguf", tokenizer=words, name="speaker")
    report = convert_language_model(tmp_path / "first.gguf", tmp_path / "again.gguf")
    before, after = (read_gguf(tmp_path / name)[0] for name in ("first.gguf", "again.gguf"))
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == {"moshi.lm.source_sha256"}
    assert payloads(tmp_path / "again.gguf") == payloads(tmp_path / "first.gguf")
    assert (report.source_kind, report.name, report.unchanged_tensors) == ("GGUF with metadata", "speaker", report.tensors)
    narrow = convert_language_model(tmp_path / "first.gguf", tmp_path / "narrow.gguf", dtype="bf16", tokenizer="none")
    assert set(narrow.types) == {"f32", "bf16"}
    with pytest.raises(SettingError, match=r"config: found .*expected none: the file has its configuration in it"):
        convert_language_model(tmp_path / "first.gguf", tmp_path / "x.gguf", config=tmp_path / "config.json")


def test_the_same_source_gives_the_same_bytes(words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "b")
    convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", dtype="bf16", tokenizer=words)
    with pytest.raises(OutputExistsError):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=words)
    monkeypatch.setattr(source_file, "PIECE_BYTES", 4099)
    convert_language_model(tmp_path / "x.safetensors", tmp_path / "y.gguf", dtype="bf16", tokenizer=words)
    assert (tmp_path / "x.gguf").read_bytes() == (tmp_path / "y.gguf").read_bytes()


def test_a_source_that_changes_meanwhile(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "x.safetensors", "s")

    def touch(done: int, total: int) -> None:
        if done == total:
            os.utime(source, ns=(0, 0))

    with pytest.raises(ModelAccessError, match="changed while it was read"):
        convert_language_model(source, tmp_path / "x.gguf", tokenizer="none", progress=touch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "x.safetensors"]
