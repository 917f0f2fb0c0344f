"""Language models from every form of source: the same tensors, the configuration as metadata, the tokenizer proven."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import sentencepiece

from codec_core import CodecModel, __version__
from codec_core.convert import convert_language_model, convert_model, source_file
from codec_core.errors import (
    CheckpointError,
    ModelAccessError,
    ModelContractError,
    OutputExistsError,
    SettingError,
)
from codec_core.gguf_file import GgufFile, check_language_model
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from codec_core.text_tokenizer import TextTokenizer
from tests.lm_sources import (
    is_kept_f32,
    raw_tensors,
    save_arrays,
    short_name,
    train_tokenizer,
    write_checkpoint,
    write_config,
    write_raw,
    write_raw_tensors,
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


def test_the_configuration_is_metadata(words: Path, tmp_path: Path, read_gguf: Reader) -> None:
    write_checkpoint(tmp_path / "model.safetensors", "a")
    report = convert_language_model(tmp_path / "model.safetensors", tmp_path / "x.gguf", tokenizer=words)
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    found = {key: value for key, value in metadata.items() if not key.startswith("tokenizer.")}
    assert found == {
        "general.architecture": "moshi",
        "general.name": tmp_path.name,
        "moshi.component": "lm",
        **{
            f"moshi.lm.{key}": LM_CONFIGS["a"][key]
            for key in ("card", "n_q", "dep_q", "text_card", "dim", "num_layers", "num_heads")
        },
        **{
            f"moshi.lm.{key}": LM_CONFIGS["a"][key]
            for key in ("context", "max_period", "gating", "norm", "positional_embedding")
        },
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
        "moshi.lm.config_sha256": hashlib.sha256((tmp_path / "config.json").read_bytes()).hexdigest(),
        "moshi.lm.source_sha256": hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest(),
        "moshi.lm.converter": f"mimi-server {__version__}",
    }
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


def damaged(model: str, **changes: Any) -> dict[str, np.ndarray]:
    """A model's arrays with some changed; None takes one away."""
    arrays = lm_arrays(model)
    for name, change in changes.items():
        key = name.replace("__", ".")
        array = arrays.pop(key, None)
        if change is not None:
            arrays[key] = change(array)
    return arrays


IN_PROJ = "transformer__layers__1__self_attn__in_proj_weight"
TENSORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {IN_PROJ: lambda a: a[:-1]},
        CheckpointError,
        r"in_proj_weight': shape: found \[383, 128\], expected 384 rows: 1 weight sets of 384",
    ),
    (
        {"depformer__layers__0__self_attn__out_proj__weight": lambda a: a[:64]},
        CheckpointError,
        r"out_proj.weight': shape: found \[64, 64\], expected 256 rows: 4 weight sets of 64",
    ),
    (
        {"emb__3__weight": lambda a: a[:-1]},
        ModelContractError,
        r"tensor 'lm.emb.3.weight' dims: found \(128, 64\), expected \(128, 65\)",
    ),
    ({"out_norm__alpha": None}, ModelContractError, "tensor 'lm.out_norm.alpha': found no such tensor"),
    (
        {"linears__4__weight": lambda _: np.zeros((64, 64))},
        ModelContractError,
        "tensor 'lm.linears.4.weight': found a tensor this model",
    ),
    ({"surprise": lambda _: np.zeros((2, 2))}, CheckpointError, "tensor 'surprise': found a name no rule knows"),
    (
        {"text_linear__weight_scb": lambda _: np.zeros(96)},
        CheckpointError,
        "the row scales of a checkpoint in int8, expected .*bf16",
    ),
    (
        {"transformer__layers__0__self_attn__in_proj__lora_A__weight": lambda _: np.zeros((8, 128))},
        CheckpointError,
        r"\(LoRA\), expected whole weights: merge them",
    ),
    (
        {"text_emb__weight": lambda a: np.where(a == a[5, 7], np.nan, a)},
        ModelContractError,
        "tensor 'lm.text_emb.weight': found NaN at",
    ),
    (
        {"transformer__layers__1__self_attn__in_projs__0__weight": lambda _: np.zeros((384, 128))},
        CheckpointError,
        "tensor 'lm.transformer.layers.1.self_attn.in_projs.0.weight': found a second one",
    ),
]


@pytest.mark.parametrize(("changes", "error", "message"), TENSORS, ids=[next(iter(case[0])) for case in TENSORS])
def test_tensors_that_do_not_fit(changes: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    write_config(tmp_path, "a")
    save_arrays(tmp_path / "x.safetensors", damaged("a", **changes))
    with pytest.raises(error, match=message):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer="none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "x.safetensors"]


CONFIGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dim": 64}, CheckpointError, r"shape: found \[384, 128\], expected 192 rows"),
    ({"card": 63}, ModelContractError, r"tensor 'lm.emb.0.weight' dims: found \(128, 65\), expected \(128, 64\)"),
    ({"num_layers": 5}, ModelContractError, "lm.transformer.layers.4"),
    ({"n_q": 9, "delays": [0] * 10}, ModelContractError, "lm.emb.8.weight"),
    ({"norm": ...}, ModelContractError, "'moshi.lm.norm': found 'layer_norm', expected 'rms_norm_f32'"),
    ({"positional_embedding": ...}, ModelContractError, "'moshi.lm.positional_embedding': found 'sin'"),
    ({"gating": ..., "depformer_gating": "silu"}, ModelContractError, "'moshi.lm.gating': found 'none', expected 'silu'"),
    ({"depformer_pos_emb": ...}, ModelContractError, "'moshi.lm.depformer.pos_emb': found 'sin'"),
    ({"num_heads": 3}, ModelContractError, "moshi.lm.num_heads"),
]


@pytest.mark.parametrize(("changes", "error", "message"), CONFIGS, ids=[next(iter(case[0])) for case in CONFIGS])
def test_a_config_of_another_model(changes: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "a")
    write_config(tmp_path, "a", **changes)
    with pytest.raises(error, match=message):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer="none")


def test_more_pieces_than_the_model_has_tokens(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "a")
    train_tokenizer(tmp_path / "x.model", 120)
    with pytest.raises(CheckpointError, match=r"x.model: found 120 pieces, expected at most 96, the model's text_card"):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=tmp_path / "x.model")


def test_shortened_names(tmp_path: Path) -> None:
    write_raw(tmp_path / "x.gguf", "c")
    tensors = raw_tensors("c")
    (short,) = [name for name in tensors if not name.startswith("lm.")]
    convert_language_model(tmp_path / "x.gguf", tmp_path / "out.gguf", tokenizer="none")
    assert "lm.condition_provider.conditioners.speaker_wavs.output_proj.weight" in GgufFile(tmp_path / "out.gguf").tensors
    write_raw_tensors(tmp_path / "x.gguf", {("00000000" if name == short else name): value for name, value in tensors.items()})
    with pytest.raises(CheckpointError, match="tensor '00000000': found the short form of no name"):
        convert_language_model(tmp_path / "x.gguf", tmp_path / "x2.gguf", tokenizer="none")


def test_what_else_is_refused(tmp_path: Path, tiny_gguf: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "x.safetensors", "a")
    with pytest.raises(SettingError, match="dtype: found q8_0, expected f32 or f16 or bf16 or keep"):
        convert_language_model(checkpoint, tmp_path / "x.gguf", dtype="q8_0")
    with pytest.raises(CheckpointError, match=r"a Moshi language model.*mimi convert"):
        convert_model(checkpoint, tmp_path / "x.gguf")
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config.json: found no such file, expected .*--config moshi-7b"):
        convert_language_model(checkpoint, tmp_path / "x.gguf")
    with pytest.raises(CheckpointError, match=r"expected 24576 rows: 8 weight sets of 3072"):
        convert_language_model(checkpoint, tmp_path / "x.gguf", config="moshi-7b", tokenizer="none")
    with pytest.raises(CheckpointError, match=r"a name without 'lm\.'"):
        convert_language_model(tiny_gguf, tmp_path / "x.gguf", tokenizer="none")
    raw = write_raw(tmp_path / "raw.gguf", "a")
    for opened in (lambda: CodecModel.open(raw), lambda: check_language_model(GgufFile(raw))):
        with pytest.raises(ModelContractError, match="mimi convert"):
            opened()
    assert json.loads((tmp_path / "config.json").read_text())["card"] == 64
