"""Voice prompts: converted from raw GGUF and safetensors, opened, and refused where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from safetensors.numpy import save_file

from codec_core import __version__
from codec_core.convert import convert_voice_prompt
from codec_core.errors import CheckpointError, ModelContractError, OutputExistsError
from codec_core.gguf_file import GgufFile
from codec_core.voice_prompt import VoicePrompt
from tests.lm_sources import write_raw_tensors

Q = gguf.GGMLQuantizationType
STEPS, DIM, CHANNELS, SLOTS = 7, 48, 17, 4


@pytest.fixture
def voice(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Input sums [steps, 1, 1, dim] and a ring [channels, slots]."""
    cache = rng.integers(-2, 2049, (CHANNELS, SLOTS)).astype(np.int32)
    return rng.standard_normal((STEPS, 1, 1, DIM)).astype(np.float32), cache


def write_raw_voice(path: Path, embeddings: np.ndarray, cache: np.ndarray) -> Path:
    kind = {4: Q.F32, 2: Q.F16}[embeddings.dtype.itemsize]
    return write_raw_tensors(path, {"voice.embeddings": (embeddings, kind), "voice.cache": (cache, Q.I32)})


@pytest.mark.parametrize("form", ["raw", "i32", "i64"])
def test_every_form_gives_the_same_prompt(form: str, voice: Any, tmp_path: Path) -> None:
    embeddings, cache = voice
    if form == "raw":
        source = write_raw_voice(tmp_path / "NATF0.gguf", embeddings, cache)
    else:
        source = tmp_path / "NATF0.safetensors"
        save_file({"embeddings": embeddings, "cache": cache[None].astype(form.replace("i", "int"))}, source)
    report = convert_voice_prompt(source, tmp_path / "voice.gguf")
    assert (report.component, report.name, report.dim, report.steps) == ("voice", "NATF0", DIM, STEPS)
    assert (report.channels, report.slots) == (CHANNELS, SLOTS)
    prompt = VoicePrompt.open(tmp_path / "voice.gguf")
    assert prompt.name == "NATF0"
    assert np.array_equal(prompt.embeddings, embeddings.reshape(STEPS, DIM))
    assert np.array_equal(prompt.cache, cache)
    file = GgufFile(tmp_path / "voice.gguf")
    assert file.metadata == {
        "general.architecture": "moshi",
        "general.name": "NATF0",
        "moshi.component": "voice",
        "moshi.voice.dim": DIM,
        "moshi.voice.steps": STEPS,
        "moshi.voice.channels": CHANNELS,
        "moshi.voice.slots": SLOTS,
        "moshi.voice.source_sha256": report.source_sha256,
        "moshi.voice.converter": f"mimi-server {__version__}",
    }
    assert {name: tensor.dims for name, tensor in file.tensors.items()} == {
        "voice.embeddings": (DIM, 1, 1, STEPS),
        "voice.cache": (SLOTS, CHANNELS),
    }


def test_half_precision_and_once_more(voice: Any, tmp_path: Path) -> None:
    embeddings, cache = voice
    write_raw_voice(tmp_path / "x.gguf", embeddings.astype(np.float16), cache)
    convert_voice_prompt(tmp_path / "x.gguf", tmp_path / "y.gguf", name="Ann")
    report = convert_voice_prompt(tmp_path / "y.gguf", tmp_path / "z.gguf")
    assert (report.name, report.source_kind) == ("Ann", "GGUF with metadata")
    wanted = embeddings.astype(np.float16).astype(np.float32).reshape(STEPS, DIM)
    assert np.array_equal(VoicePrompt.open(tmp_path / "z.gguf").embeddings, wanted)
    with pytest.raises(OutputExistsError):
        convert_voice_prompt(tmp_path / "x.gguf", tmp_path / "y.gguf")


def test_a_raw_prompt_is_not_opened(voice: Any, tmp_path: Path) -> None:
    path = write_raw_voice(tmp_path / "x.gguf", *voice)
    with pytest.raises(ModelContractError, match=r"a voice prompt without metadata, expected .*`mimi convert .*x.gguf -o"):
        VoicePrompt.open(path)


def test_another_file_is_no_prompt(tiny_gguf: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelContractError, match=r"'moshi\.component': found 'mimi', expected 'voice'"):
        VoicePrompt.open(tiny_gguf)
    with pytest.raises(ModelContractError, match="a tensor a voice prompt has no use for"):
        convert_voice_prompt(tiny_gguf, tmp_path / "x.gguf")


def changed(voice: Any, change: str) -> dict[str, tuple[np.ndarray, Q]]:
    embeddings, cache = voice
    tensors = {"voice.embeddings": (embeddings, Q.F32), "voice.cache": (cache, Q.I32)}
    match change:
        case "none":
            del tensors["voice.embeddings"]
        case "more":
            tensors["voice.more"] = (cache, Q.I32)
        case "type":
            tensors["voice.cache"] = (cache.astype(np.float32), Q.F32)
        case "blocks":
            tensors["voice.embeddings"] = (gguf.quants.quantize(embeddings[..., :32].copy(), Q.Q8_0), Q.Q8_0)
        case "shape":
            tensors["voice.embeddings"] = (embeddings.reshape(STEPS, 1, 2, DIM // 2), Q.F32)
        case "ring":
            tensors["voice.cache"] = (cache.reshape(1, CHANNELS * SLOTS), Q.I32)
        case "token":
            tensors["voice.cache"] = (np.where(cache == cache[3, 1], -3, cache).astype(np.int32), Q.I32)
        case "nan":
            tensors["voice.embeddings"] = (np.full_like(embeddings, np.nan), Q.F32)
    return tensors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("none", "tensor 'voice.embeddings': found no such tensor"),
        ("more", "tensor 'voice.more': found a tensor a voice prompt has no use for"),
        ("type", "tensor 'voice.cache' type: found f32, expected i32"),
        ("blocks", "tensor 'voice.embeddings' type: found q8_0, expected f32 or f16 or bf16"),
        ("shape", r"tensor 'voice.embeddings' dims: found \(24, 2, 1, 7\), expected \(dim, 1, 1, steps\)"),
        ("ring", r"tensor 'voice.cache' dims: found \(68,.*, expected at most 1024 slots of 2 to 65 channels"),
        ("token", r"tensor 'voice.cache': found -3 in slot \d+ of channel \d+, expected tokens of -2 or more"),
        ("nan", "tensor 'voice.embeddings': found NaN at index 0"),
    ],
)
def test_tensors_that_do_not_fit(change: str, message: str, voice: Any, tmp_path: Path) -> None:
    write_raw_tensors(tmp_path / "x.gguf", changed(voice, change))
    with pytest.raises(ModelContractError, match=message):
        convert_voice_prompt(tmp_path / "x.gguf", tmp_path / "y.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["x.gguf"]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embeddings": ((7, 1, 1, 48), "f4")}, "tensor 'cache': found no such tensor"),
        ({"embeddings": ((7, 2, 1, 48), "f4"), "cache": ((1, 17, 4), "i4")}, r"'embeddings': shape: found \[7, 2, 1, 48\]"),
        (
            {"embeddings": ((7, 1, 1, 48), "f8"), "cache": ((1, 17, 4), "i4")},
            "'embeddings': found F64, expected F32 or F16 or BF16",
        ),
        ({"embeddings": ((7, 1, 1, 48), "f4"), "cache": ((2, 17, 4), "i4")}, r"'cache': shape: found \[2, 17, 4\]"),
        ({"embeddings": ((7, 1, 1, 48), "f4"), "cache": ((68,), "i4")}, r"'cache': shape: found \[68\]"),
        ({"embeddings": ((7, 1, 1, 48), "f4"), "cache": ((1, 17, 4), "i2")}, "'cache': found I16, expected I32 or I64"),
        ({"embeddings": ((7, 1, 1, 48), "f4"), "cache": ((1, 17, 4), "i4"), "x": ((1,), "f4")}, "tensor 'x': found a tensor"),
    ],
)
def test_checkpoints_that_do_not_fit(tensors: dict[str, Any], message: str, tmp_path: Path) -> None:
    save_file({name: np.zeros(shape, kind) for name, (shape, kind) in tensors.items()}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=message):
        convert_voice_prompt(tmp_path / "x.safetensors", tmp_path / "y.gguf")


def test_a_token_past_32_bits(voice: Any, tmp_path: Path) -> None:
    cache = voice[1][None].astype(np.int64)
    cache[0, 5, 2] = 1 << 31
    save_file({"embeddings": voice[0], "cache": cache}, tmp_path / "x.safetensors")
    with pytest.raises(ModelContractError, match=f"found {1 << 31} in slot 2 of channel 5"):
        convert_voice_prompt(tmp_path / "x.safetensors", tmp_path / "y.gguf")


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(CheckpointError, match="safetensors"):
        convert_voice_prompt(tmp_path / "x.pt", tmp_path / "y.gguf")


def test_metadata_that_contradicts_the_tensors(voice: Any, tmp_path: Path) -> None:
    convert_voice_prompt(write_raw_voice(tmp_path / "x.gguf", *voice), tmp_path / "y.gguf")
    key = b"moshi.voice.steps\x04\x00\x00\x00"
    data = (tmp_path / "y.gguf").read_bytes()
    (tmp_path / "z.gguf").write_bytes(data.replace(key + b"\x07", key + b"\x08"))
    with pytest.raises(ModelContractError, match=r"'moshi\.voice\.steps': found 8, expected 7, as the tensors have it"):
        VoicePrompt.open(tmp_path / "z.gguf")
