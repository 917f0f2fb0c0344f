"""Sources of language models as other programs write them: checkpoints, configs, raw GGUF files, SentencePiece models."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from codec_core.synth_lm import LM_CONFIGS, lm_arrays

Q = gguf.GGMLQuantizationType
SYLLABLES = ("ka", "lo", "mé", "tü", "sañ", "ber", "qu", "ing", "が", "漢", "ßo", "x7")


def train_tokenizer(path: Path, pieces: int = 96, seed: int = 7, **settings: Any) -> Path:
    """Train a SentencePiece model of few pieces on made-up words; the special pieces are where Moshi's has them."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 5))) for _ in range(300)]
    sentences = [" ".join(rng.choice(words, 10)) for _ in range(400)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=pieces,
        pad_id=3,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    path.write_bytes(model.getvalue())
    return path


def write_config(folder: Path, model: str, **changes: Any) -> Path:
    """Write a config.json; a change to ... leaves the key out."""
    config = {key: value for key, value in (LM_CONFIGS[model] | changes).items() if value is not ...}
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def write_checkpoint(path: Path, model: str, *, split: bool = False, dtype: str = "f32") -> Path:
    """Write a synthetic model as Kyutai publishes it, its config beside it."""
    write_config(path.parent, model)
    return save_arrays(path, lm_arrays(model, split=split), dtype)


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], dtype: str = "f32") -> Path:
    if dtype == "bf16":
        return _save_bf16(path, arrays)
    save_file({name: array.astype({"f32": "f4", "f16": "f2"}[dtype]) for name, array in arrays.items()}, path)
    return path


def _save_bf16(path: Path, arrays: Mapping[str, np.ndarray]) -> Path:
    """numpy has no bfloat16: the header is written here."""
    fields, payloads, at = {}, b"", 0
    for name, array in arrays.items():
        data = gguf.quants.quantize(np.ascontiguousarray(array, np.float32), Q.BF16).tobytes()
        fields[name] = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        payloads, at = payloads + data, at + len(data)
    header = json.dumps(fields).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + payloads)
    return path


def short_name(name: str) -> str:
    """What moshi.cpp makes of a name of 64 bytes or more."""
    if len(name.encode()) < 64:
        return name
    crc = zlib.crc32(name.encode())
    return "".join("0123456789abcdef"[crc >> 8 * i & 15] for i in range(8))


def is_kept_f32(name: str) -> bool:
    return "condition_provider" in name or "norm" in name


def raw_tensors(model: str, dtype: str = "f32") -> dict[str, tuple[np.ndarray, Q]]:
    """A model's tensors as moshi.cpp stores them, by stored name: attention split, vectors flat and f32."""
    wanted = {"f32": Q.F32, "f16": Q.F16, "bf16": Q.BF16, "q8_0": Q.Q8_0, "q4_0": Q.Q4_0}[dtype]
    arrays = lm_arrays(model, split=True)
    if LM_CONFIGS[model].get("demux_second_stream"):
        arrays.pop("depformer_text_emb.low_rank.weight", None)
    tensors = {}
    for name, array in arrays.items():
        values = array.reshape(-1) if array.ndim == 3 else array
        kind = Q.F32 if is_kept_f32(name) or values.ndim == 1 else wanted
        data = np.ascontiguousarray(values, np.float32)
        tensors[short_name(f"lm.{name}")] = (data if kind == Q.F32 else gguf.quants.quantize(data, kind), kind)
    return tensors


def write_raw(path: Path, model: str, dtype: str = "f32") -> Path:
    """Write a model as moshi.cpp does: not one word of metadata. The config lies beside it."""
    write_config(path.parent, model)
    return write_raw_tensors(path, raw_tensors(model, dtype))


def write_raw_tensors(path: Path, tensors: Mapping[str, tuple[np.ndarray, Q]]) -> Path:
    writer = gguf.GGUFWriter(path, "moshi")
    for values in writer.kv_data:
        values.clear()
    for name in sorted(tensors):
        data, kind = tensors[name]
        if kind in {Q.F32, Q.I32}:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
