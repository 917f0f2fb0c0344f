"""The converter's sources: checkpoints in safetensors, Kyutai's and those of transformers with their config, and GGUF files.

Input: one byte that chooses the source, one with the settings of the conversion; then the source file itself, the JSON of a
safetensors header whose payload is made to fit, a ``config.json``, or the ``geometry`` of a header's metadata.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from codec_core.convert import convert_model
from codec_core.errors import CheckpointError, ModelFileError, SettingError
from codec_core.safetensors_file import build_header
from tests.fuzz.materials import SMALL, WIDE, checkpoint, folder, model_file, require_typed, transformers_folder

COVERED: Final = (
    "codec_core/convert/checkpoint_tensors.py",
    "codec_core/convert/converter.py",
    "codec_core/convert/element_types.py",
    "codec_core/convert/gguf_*.py",
    "codec_core/convert/kyutai_checkpoint.py",
    "codec_core/convert/name_map.py",
    "codec_core/convert/planned_model.py",
    "codec_core/convert/progress.py",
    "codec_core/convert/quantise.py",
    "codec_core/convert/raw_form.py",
    "codec_core/convert/source_file.py",
    "codec_core/convert/transformers_*.py",
    "codec_core/safetensors_file.py",
)
DICTIONARY: Final = (
    b'"dtype":"F32"',
    b'"dtype":"BF16"',
    b'"dtype":"I64"',
    b'"shape":[',
    b'"data_offsets":[',
    b'"__metadata__":{"geometry":"',
    b'"transformer":{',
    b'"quantizer":{',
    b'"num_heads":',
    b'"context":',
    b'"n_q":',
    b'"num_attention_heads":',
    b'"hidden_size":',
    b'"head_dim":',
    b'"rope_parameters":{"rope_theta":',
    b'"rope_type":"default"',
    b'"num_quantizers":',
    b'"sliding_window":',
    b'"model_type":"mimi"',
    b".weight",
    b"encoder.model.0.conv.conv.",
    b"quantizer.rvq_rest.vq.layers.1._codebook.embedding_sum",
    b"cluster_usage",
    b"embedding_sum",
    b"self_attn.in_proj_weight",
    b"lm.",
    b"1e999",
    b"4294967296",
    b"-1",
    b"null",
    b"true",
    b"GGUF\x03\x00\x00\x00",
)
WHOLE, HEADER, CONFIG, GEOMETRY = range(4)
MOST_PAYLOAD_BYTES: Final = 1 << 18
DTYPES: Final = (None, "f32", "f16")


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    destination = folder() / "converted.gguf"
    destination.unlink(missing_ok=True)
    try:
        convert_model(_source(data[0] % 4, data[2:]), destination, **_settings(data[1]))
    except (CheckpointError, ModelFileError, SettingError) as error:
        require_typed(error)
        assert not destination.exists()
        return
    # What was converted is a model that converts to the same bytes again.
    again = folder() / "again.gguf"
    if _settings(data[1])["form"] == "enriched":
        convert_model(destination, again, force=True)
        assert again.stat().st_size > 1000
    assert not [path for path in folder().iterdir() if "converted" in path.name and path != destination]


def _settings(choice: int) -> dict[str, Any]:
    return {
        "dtype": DTYPES[choice % 3],
        "quantize": "q8_0" if choice & 4 else None,
        "form": "raw" if choice & 8 else "enriched",
        "levels": (choice >> 4) & 3 or None,
    }


def _source(kind: int, content: bytes) -> Path:
    if kind == CONFIG:
        (transformers_folder() / "config.json").write_bytes(content)
        return transformers_folder()
    path = folder() / "source"
    if kind == WHOLE:
        path.write_bytes(content)
    elif kind == HEADER:
        path.write_bytes(
            struct.pack("<Q", len(content)) + content + bytes.fromhex("0000003f") * (payload_bytes(content) // 4 + 1)
        )
        with path.open("r+b") as file:
            file.truncate(8 + len(content) + payload_bytes(content))
    else:
        path.write_bytes(_with_metadata(checkpoint(), {"geometry": content.decode("utf-8", "replace")}))
    return path


def payload_bytes(header: bytes) -> int:
    """Return where a header's last payload ends, if that is not too far."""
    try:
        ends = [entry["data_offsets"][1] for name, entry in json.loads(header).items() if name != "__metadata__"]
        end = max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return 0
    return end if isinstance(end, int) and 0 <= end <= MOST_PAYLOAD_BYTES else 0


@functools.cache
def _header_and_payload(path: Path) -> tuple[dict[str, Any], bytes]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _with_metadata(path: Path, metadata: dict[str, str]) -> bytes:
    fields, payload = _header_and_payload(path)
    text = json.dumps(fields | {"__metadata__": metadata}).encode()
    return struct.pack("<Q", len(text)) + text + payload


def seeds() -> Iterator[bytes]:
    for choice in (0, 1, 2, 9, 10, 0x10, 0x20):
        yield bytes([WHOLE, choice]) + checkpoint().read_bytes()
    yield bytes([WHOLE, 2]) + model_file(dtype="f16").read_bytes()
    yield bytes([WHOLE, 0]) + model_file().read_bytes()
    yield bytes([WHOLE, 5]) + checkpoint(WIDE).read_bytes()
    yield bytes([WHOLE, 8]) + model_file(WIDE, "f16", "q8_0").read_bytes()
    yield bytes([WHOLE, 4]) + model_file(WIDE).read_bytes()
    yield from (
        bytes([WHOLE, 0]) + content for content in (b"", b"version https", b"<html></html>", b"PK\x03\x04", b"GGUF" + bytes(8))
    )
    yield from (bytes([WHOLE, 0]) + model_file().read_bytes()[:size] for size in (4, 24, 100, 5_000))
    yield from _headers()
    yield from _configs()
    yield from _geometries()


# Names no rule knows, types and shapes that no tensor has, a codebook without its usage.
REPLACED: Final = (
    (b"cluster_usage", b"cluster_usages"),
    (b'"F32"', b'"F64"'),
    (b"conv.bias", b"conv.gain"),
    (b"k_proj", b"x_proj"),
    (b'"shape": [4, 4]', b'"shape": [16]'),
    (b'"shape": [4]', b'"shape": [0]'),
    (b'"F32"', b'"BF16"'),
    (b"encoder", b"lm.encoder"),
)


def _headers() -> Iterator[bytes]:
    theirs, _ = _header_and_payload(transformers_folder() / "model.safetensors")
    for fields in (_header_and_payload(checkpoint())[0], theirs):
        text = json.dumps(fields).encode()
        yield bytes([HEADER, 0]) + text
        for old, new in REPLACED:
            yield bytes([HEADER, 1]) + text.replace(old, new, 1)
    half = {name: entry for name, entry in _header_and_payload(checkpoint())[0].items() if name != "__metadata__"}
    yield bytes([HEADER, 1]) + _retyped(half, "F16", lambda name: "conv.conv.weight" in name)
    yield bytes([HEADER, 2]) + _retyped(half, "BF16", lambda name: "transformer" in name)
    for entry in (
        {},
        {"dtype": "F32"},
        {"dtype": 5, "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 5]},
    ):
        yield bytes([HEADER, 0]) + json.dumps({"a": entry}).encode()
    yield from (
        bytes([HEADER, 0]) + text
        for text in (b"{}", b"[]", b"{" * 2000, b'{"a":1,"a":2}', b'{"__metadata__":{"a":1}}', b'{"x":NaN}')
    )


def _retyped(fields: dict[str, Any], dtype: str, chosen: Callable[[str], bool]) -> bytes:
    rows = [(name, dtype if chosen(name) else entry["dtype"], tuple(entry["shape"])) for name, entry in fields.items()]
    metadata = _header_and_payload(checkpoint())[0]["__metadata__"]
    return build_header(rows, metadata)[8:]


def _configs() -> Iterator[bytes]:
    good = json.loads((transformers_folder() / "config.json").read_text())
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"rope_parameters": {"rope_theta": 700.0, "rope_type": "default"}},
        {"rope_parameters": {"rope_type": "yarn"}},
        {"rope_parameters": 3},
        {"rope_theta": 1.5},
        {"model_type": "llama"},
        {"normalize": 0},
        {"num_attention_heads": 0},
        {"num_key_value_heads": 1},
        {"head_dim": 5},
        {"sliding_window": True},
        {"num_quantizers": 9},
        {"hidden_size": "4"},
        {"upsampling_ratios": [8, 6, 5, 5]},
        {"num_attention_heads": 3},
        {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 1},
    )
    yield from (bytes([CONFIG, 0]) + json.dumps(good | change).encode() for change in changes)
    yield from (bytes([CONFIG, 0]) + text for text in (b"", b"[]", b"\xff", b"[" * 5000, b"{}", b'{"rope_theta":1e999}'))


def _geometries() -> Iterator[bytes]:
    good = json.loads(_header_and_payload(checkpoint())[0]["__metadata__"]["geometry"])
    assert good["transformer"]["num_heads"] == SMALL.heads
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"model": ""},
        {"model": None},
        {"sample_rate": 16_000},
        {"frame_rate": None},
        {"transformer": []},
        {"quantizer": {"n_q": True}},
        {"transformer": {"num_heads": 1 << 40}},
        {"transformer": {"context": -1}},
        {"transformer": {"max_period": 1.5}},
    )
    yield from (bytes([GEOMETRY, 0]) + json.dumps(good | change).encode() for change in changes)
    yield from (bytes([GEOMETRY, 0]) + text for text in (b"", b"[]", b"{", b"[" * 5000, b"5"))
