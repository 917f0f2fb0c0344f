"""Hostile tokenizers, and voice prompts, of the target ``language_source``."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from safetensors.numpy import save

from codec_core.sentencepiece_model import SPACE, SentencePieceModel, build_model
from tests.fuzz.language_materials import language_file
from tests.fuzz.materials import folder
from tests.lm_sources import Q, write_raw_tensors


def json_header(data: bytes) -> bytes:
    """The JSON of a safetensors file."""
    (size,) = struct.unpack_from("<Q", data)
    return data[8 : 8 + size].rstrip()


PIECES: Final = SentencePieceModel(
    ["<unk>", "<s>", "</s>", "<pad>", f"{SPACE}a", "b"],
    [0.0, 0.0, 0.0, 0.0, -1.5, -2.0],
    [2, 3, 3, 3, 1, 1],
    special_ids={"unknown": 0, "bos": 1, "eos": 2, "padding": 3},
)
CHARSMAP: Final = struct.pack("<I", 1024) + b"\x00" * 1023 + b"\x80" + b"a\x00"


PIECES_CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {"model_type": "bpe"},
    {"model_type": "word"},
    {"model_type": "char"},
    {"unknown_surface": "?"},
    {"add_dummy_prefix": False},
    {"remove_extra_whitespaces": False},
    {"charsmap": CHARSMAP},
    {"charsmap": CHARSMAP[:-1]},
    {"charsmap": struct.pack("<I", 4096) + bytes(1024)},
    {"charsmap": struct.pack("<I", 1024) + b"\xff" * 1024 + b"a\x00"},
    {"charsmap": struct.pack("<I", 1024) + b"\xff\xff\xff\x7f" * 256 + b"a\x00"},
    {"charsmap": b"abc"},
    {"byte_fallback": True},
    {"types": [2, 3, 3, 3, 4, 5]},
    {"types": [2, 3, 3, 3, 6, 1]},
    {"types": [2, 2, 3, 3, 1, 1]},
    {"types": [1, 3, 3, 3, 1, 1]},
    {"scores": [0.0, 0.0, 0.0, 0.0, float("nan"), -2.0]},
    {"scores": [0.0, 0.0, 0.0, 0.0, 3e38, -3e38]},
    {"pieces": ["<unk>", "<s>", "</s>", "<pad>", "b", "b"]},
    {"pieces": ["<unk>", "<s>", "</s>", "<pad>", "", "b"]},
    {"pieces": ["<unk>", "<s>", "</s>", "<pad>", "<0x41>", "b"], "types": [2, 3, 3, 3, 6, 1]},
    {"special_ids": {}},
    {"special_ids": {"unknown": 4}},
)


def tokenizers() -> Iterator[bytes]:
    whole = build_model(PIECES)
    yield whole
    for change in PIECES_CHANGES:
        yield build_model(SentencePieceModel(**(vars(PIECES) | change)))
    yield from (whole[:size] for size in (0, 1, 5, 30, len(whole) - 1))
    yield from (whole + tail for tail in (b"\x00", b"\x0f", b"\x12\x02\x18\x09", b"\x2a\x03\x12\x01a", b"\x12\x03\xc0\x01\x01"))
    yield whole + b"\x12\x02\x18\x01" * 3
    yield b"\x0a" + b"\xff" * 9 + b"\x01"
    yield b"\x08\x01"


def voices() -> Iterator[bytes]:
    rows, ring = np.ones((3, 1, 1, 4), np.float32), np.zeros((1, 3, 5), np.int64)
    good = json_header(save({"embeddings": rows, "cache": ring}))
    yield good
    yield json_header(save({"embeddings": rows.astype(np.float16), "cache": ring.astype(np.int32)}))
    for old, new in (
        (b'"embeddings"', b'"embedding"'),
        (b'"cache"', b'"caches"'),
        (b'"I64"', b'"F64"'),
        (b'"F32"', b'"I32"'),
        (b"[3,1,1,4]", b"[1,3,1,4]"),
        (b"[3,1,1,4]", b"[12]"),
        (b"[1,3,5]", b"[15]"),
        (b"[1,3,5]", b"[0]"),
        (b"[1,3,5]", b"[15,1,1]"),
    ):
        yield good.replace(old, new)
    small = {"voice.embeddings": (np.ones((3, 4), np.float32), Q.F32), "voice.cache": (np.zeros((3, 5), np.int32), Q.I32)}
    raw = write_raw_tensors(folder() / "voice.gguf", small).read_bytes()
    yield raw
    yield from (raw[:size] for size in (24, 100, len(raw) - 1))
    yield raw[:-4] + b"\xf0\xff\xff\xff"
    yield raw.replace(b"voice.cache", b"voice.cachx")
    yield language_file("plain").read_bytes()
