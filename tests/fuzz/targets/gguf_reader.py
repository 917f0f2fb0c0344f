"""A model file, through reader, geometry, contract and values: as ``fuzz_gguf_reader.cc``, which libFuzzer runs.

Input: the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from codec_core import _ext
from codec_core.errors import ModelAccessError, ModelContractError, ModelFormatError, UnavailableError
from tests.ext.model.test_geometry import SETTINGS, SHAPES
from tests.ext.weights.gguf_bytes import (
    BF16,
    F16,
    F32,
    Q4_0,
    Q8_0,
    GgufFile,
    ModelWriter,
    Tensor,
    array,
    metadata,
    string,
    text,
    tiny_model,
    u32,
)
from tests.ext.weights.refusal import Case
from tests.ext.weights.test_gguf_header import KEYS, PREAMBLE, TENSORS
from tests.fuzz.materials import folder, model_file, require_typed

COVERED: Final = (
    "ext/base/error.cc",
    "ext/base/half_float.h",
    "ext/model/contract.cc",
    "ext/model/geometry.cc",
    "ext/model/tensor_names.cc",
    "ext/weights/file_identity.cc",
    "ext/weights/foreign_format.cc",
    "ext/weights/gguf_format.cc",
    "ext/weights/gguf_header.cc",
    "ext/weights/gguf_reader.cc",
    "ext/weights/header_cursor.cc",
    "ext/weights/quoted_text.cc",
    "ext/weights/tensor_layout.cc",
    "ext/weights/tensor_values.cc",
)
DICTIONARY: Final = (
    b"GGUF\x03\x00\x00\x00",
    b"GGUF\x00\x00\x00\x03",
    b"FUGG",
    b"general.architecture",
    b"general.name",
    b"general.alignment",
    b"split.count",
    b"moshi",
    b"moshi.component",
    b"moshi.mimi.sample_rate",
    b"moshi.mimi.frame_rate",
    b"moshi.mimi.n_q",
    b"moshi.mimi.card",
    b"moshi.mimi.transformer.context",
    b"moshi.mimi.numerics",
    b"moshi.mimi.weight_class",
    b"kyutai",
    b"ggml",
    b"f16",
    b"q8_0",
    b"mimi.",
    b"encoder.model.",
    b"decoder_transformer.transformer.layers.",
    b"quantizer.rvq_rest.vq.layers.",
    b"._codebook.embedding",
    b".conv.conv.weight",
    b".convtr.convtr.weight",
    b"self_attn.in_projs.0.weight",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"\x08\x00\x00\x00",
    b"\x09\x00\x00\x00",
)


def one_input(data: bytes) -> None:
    path = folder() / "read.gguf"
    path.write_bytes(data)
    try:
        _ext.inspect_model(str(path))
    except (ModelAccessError, ModelFormatError, ModelContractError, UnavailableError) as error:
        require_typed(error)


def smallest(*, half: bool = False, dim: int = 4, codebook: tuple[int, int] = (4, 2)) -> GgufFile:
    """A whole model of two base filters and three levels: 40 KB, most of which is weights."""
    writer = ModelWriter(half, seed=1)
    writer.seanet(2, dim)
    writer.transformer("encoder", 1, dim, 2 * dim)
    writer.transformer("decoder", 1, dim, 2 * dim)
    writer.add("downsample.conv.conv.conv.weight", (4, dim, dim), half)
    writer.add("upsample.convtr.convtr.convtr.weight", (4, 1, dim))
    writer.rvq("rvq_first", 1, dim, codebook)
    writer.rvq("rvq_rest", 2, dim, codebook)
    keys = [key for key in metadata(1, dim, codebook) if key.name != "moshi.mimi.n_q"]
    return GgufFile([*keys, u32("moshi.mimi.n_q", 3)], writer.tensors)


def quantised() -> GgufFile:
    """Every projection q8_0."""
    file = smallest(dim=32, codebook=(32, 2))
    for tensor in file.tensors:
        if any(part in str(tensor.name) for part in ("_projs.", "linear1.", "linear2.", "put_proj.")):
            tensor.dims = tuple(dim for dim in tensor.dims if dim != 1)
            tensor.data = bytes(len(tensor.data) // 4 // 32 * 34)
            tensor.type = Q8_0
    return file


def halves() -> GgufFile:
    """Everything that may be f16 is."""
    file = smallest(half=True)
    for tensor in file.tensors:
        if tensor.type == F32 and any(
            part in str(tensor.name) for part in ("convtr.weight", "_projs.", "linear1.", "linear2.", "_codebook.")
        ):
            tensor.data = np.frombuffer(tensor.data, "<f4").astype("<f2").tobytes()
            tensor.type = F16
    return file


def seeds() -> Iterator[bytes]:
    for file in (smallest(), smallest(half=True), halves(), quantised(), replace(smallest(), keys=[])):
        yield file.to_bytes()
    yield model_file().read_bytes()
    yield from (_changed(case.change, smallest()) for case in (*PREAMBLE, *KEYS, *TENSORS))
    # These name sizes of the larger one.
    yield from (_changed(case.change, tiny_model()) for case in (*SETTINGS, *SHAPES) if isinstance(case, Case))
    yield from (_changed(change, smallest()) for change in CONTRACT)
    yield from (_changed(change, quantised()) for change in QUANTISED)
    yield from (_changed(change, halves()) for change in HALVES)
    for name, found in (("lm.text_emb.weight", 8), ("voice.embeddings", 8), ("blk.0.attn_q.weight", 8)):
        yield GgufFile(tensors=[Tensor(name, (found,), F32, bytes(4 * found))]).to_bytes()
    yield GgufFile().to_bytes()
    content = smallest().to_bytes()
    yield from (content[:size] for size in range(0, 2_000, 97))
    yield from (content[:-size] for size in (1, 31, 33, 10_000))
    yield from FOREIGN


FOREIGN: Final = (
    b"",
    b"<!DOCTYPE html><html>",
    b"\xef\xbb\xbf \n<HTML>",
    b"version https://git-lfs.github.com/spec/v1\n",
    b"PK\x03\x04" + bytes(60),
    b"\x80\x02}q\x00.",
    b"\x1f\x8b\x08" + bytes(20),
    b"FUGG" + bytes(20),
    b"tjgg" + bytes(20),
    b"\xff\x00 \x7f",
    b" \n\t ",
    b"\x08\x00\x00\x00\x00\x00\x00\x00{      }",
)
FIRST: Final = "mimi.encoder.model.0.conv.conv.weight"
BIAS: Final = "mimi.encoder.model.0.conv.conv.bias"
LAYER: Final = "mimi.encoder_transformer.transformer.layers.0"


def _changed(change: Callable[[GgufFile], object], file: GgufFile) -> bytes:
    change(file)
    return file.to_bytes()


def _put(name: str, **fields: object) -> Callable[[GgufFile], None]:
    def change(file: GgufFile) -> None:
        for field, value in fields.items():
            setattr(file.tensor(name), field, value)

    return change


def _key(key: object) -> Callable[[GgufFile], None]:
    return lambda file: file.set_key(key)  # type: ignore[arg-type]


def _value(name: str, value: float) -> Callable[[GgufFile], None]:
    def change(file: GgufFile) -> None:
        tensor = file.tensor(name)
        values = np.frombuffer(tensor.data, "<f4").copy()
        values[-1] = value
        tensor.data = values.tobytes()

    return change


def _mangled(file: GgufFile) -> None:
    """Names of 64 characters and more as moshi.cpp shortens them, two of them alike."""
    for tensor in file.tensors:
        tensor.name = _ext.mangled_name(str(tensor.name))
    file.keys = []


CONTRACT: Final[tuple[Callable[[GgufFile], object], ...]] = (
    _put(BIAS, offset=1),
    _put(BIAS, offset=1 << 63),
    _put(BIAS, offset=0),
    _put(BIAS, offset=64),
    _put(BIAS, offset=(1 << 64) - 32),
    _put(BIAS, dims=(1, 9), data=bytes(36)),
    _put(FIRST, type=F16),
    _put(FIRST, type=BF16, data=bytes(28)),
    _put(FIRST, type=Q4_0),
    _put(f"{LAYER}.linear1.weight", type=F16, data=bytes(64)),
    _put(f"{LAYER}.norm1.weight", dims=(2, 2)),
    _value(f"{LAYER}.norm1.weight", np.nan),
    _value(f"{LAYER}.layer_scale_1.scale", np.inf),
    _value(FIRST, -np.inf),
    _key(text("general.architecture", "llama")),
    _key(text("moshi.component", "lm")),
    _key(u32("split.count", 3)),
    _key(text("moshi.mimi.numerics", "fast")),
    _key(text("moshi.mimi.numerics", "ggml")),
    _key(text("moshi.mimi.weight_class", "f16")),
    _key(text("moshi.mimi.card", "8")),
    _key(u32("general.alignment", 8)),
    _key(array("tokens", 8, 2, string("a") + string("b"))),
    _key(array("scores", 6, 2, bytes(8))),
    lambda file: file.drop_tensor(BIAS),
    lambda file: file.drop_tensor(FIRST),
    lambda file: file.tensors.append(Tensor("mimi.extra", (4,), F32, bytes(16))),
    lambda file: setattr(file, "trailing", bytes(5)),
    _mangled,
)
HALVES: Final[tuple[Callable[[GgufFile], object], ...]] = (
    _put("mimi.upsample.convtr.convtr.convtr.weight", type=F32, data=bytes(4 * 4 * 4)),
    _put("mimi.upsample.convtr.convtr.convtr.weight", data=b"\x00\x7e" * 16),
    _put(f"{LAYER}.linear1.weight", type=F32, data=bytes(4 * 32)),
    _put(f"{LAYER}.self_attn.in_projs.0.weight", type=BF16),
    _put(FIRST, type=F32, data=bytes(4 * 14)),
)
QUANTISED: Final[tuple[Callable[[GgufFile], object], ...]] = (
    _put(f"{LAYER}.linear2.weight", data=b"\x00\x7e" + bytes(34 * 64 - 2)),
    _put(f"{LAYER}.linear2.weight", data=b"\x00\x7c" + bytes(34 * 64 - 2)),
    _put(f"{LAYER}.linear1.weight", type=F32, data=bytes(4 * 32 * 64)),
    _put(f"{LAYER}.linear1.weight", dims=(16, 128)),
)
