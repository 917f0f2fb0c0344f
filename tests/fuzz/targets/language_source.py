"""The converter's sources of language models: checkpoints, configurations, raw and enriched GGUF files, tokenizers, voices.

Input: one byte that chooses the kind, one with model and settings; then the JSON of a safetensors header whose payload is made
to fit, a ``config.json``, a GGUF file, a SentencePiece ``.model``, or the header or GGUF file of a voice prompt.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from safetensors.numpy import save

from codec_core.convert import convert_language_model, convert_voice_prompt
from codec_core.errors import CheckpointError, ModelFileError, SettingError
from codec_core.sentencepiece_model import build_model
from codec_core.text_tokenizer import TextTokenizer
from codec_core.voice_prompt import VoicePrompt
from tests.fuzz.hostile_words import PIECES, json_header, tokenizers, voices
from tests.fuzz.language_materials import CONFIGS, language_arrays, language_file
from tests.fuzz.materials import folder, require_typed
from tests.fuzz.targets.checkpoint import payload_bytes
from tests.lm_sources import Q, write_raw_tensors

COVERED: Final = (
    "codec_core/charsmap.py",
    "codec_core/convert/language_model.py",
    "codec_core/convert/lm_config.py",
    "codec_core/convert/lm_metadata.py",
    "codec_core/convert/lm_names.py",
    "codec_core/convert/lm_plan.py",
    "codec_core/convert/lm_source.py",
    "codec_core/convert/tokenizer_source.py",
    "codec_core/convert/voice.py",
    "codec_core/protobuf_wire.py",
    "codec_core/sentencepiece_model.py",
    "codec_core/tokenizer_keys.py",
    "codec_core/voice_prompt.py",
)
DICTIONARY: Final = (
    b'"dtype":"BF16"',
    b'"dtype":"I64"',
    b'"shape":[',
    b'"data_offsets":[',
    b'"n_q":',
    b'"dep_q":',
    b'"delays":[',
    b'"kv_repeat":',
    b'"hidden_scale":',
    b'"conditioners":{',
    b'"fuser":{"sum":[',
    b'"lm_gen_config":{',
    b'"stt_config":{',
    b'"model_type":"personaplex"',
    b'"depformer_weights_per_step_schedule":[',
    b'"type":"lut","lut":{"dim":',
    b"lm.transformer.layers.0.",
    b"self_attn.in_proj_weight",
    b"gating.linear_in.weight",
    b".lora_A.",
    b"_scb",
    b"moshi.lm.dep_q",
    b"moshi.lm.kv_repeat",
    b"tokenizer.ggml.tokens",
    b"tokenizer.ggml.token_type",
    b"tokenizer.ggml.precompiled_charsmap",
    b"tokenizer.sentencepiece.model_type",
    b"voice.embeddings",
    b"voice.cache",
    b"embeddings",
    b"\xc2\xb2",
    b"1e999",
    b"<0x41>",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
)
HEADER, CONFIG, RAW, ENRICHED, TOKENIZER, VOICE = range(6)
NAMES: Final = ("plain", "told", "grouped")
DTYPES: Final = (None, "f32", "f16", "bf16")


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    destination = folder() / "converted-language.gguf"
    destination.unlink(missing_ok=True)
    try:
        _convert(data[0] % 6, data[1], data[2:], destination)
    except (CheckpointError, ModelFileError, SettingError) as error:
        require_typed(error)
        assert not destination.exists()
        return
    again = folder() / "again-language.gguf"
    if data[0] % 6 == VOICE:
        assert VoicePrompt.open(destination).embeddings.size
        convert_voice_prompt(destination, again, force=True)
    else:
        convert_language_model(destination, again, force=True)
    assert again.stat().st_size > 100
    assert not [path for path in folder().iterdir() if "converted" in path.name and path != destination]


def _convert(kind: int, choice: int, content: bytes, destination: Path) -> None:
    name, dtype = NAMES[choice % 4 % 3], DTYPES[choice // 4 % 4]
    source = _source(kind, name, content)
    if kind == VOICE:
        convert_voice_prompt(source, destination)
    elif kind == TOKENIZER:
        (source.parent / "text.model").write_bytes(content)
        convert_language_model(source, destination, tokenizer=source.parent / "text.model")
        words = TextTokenizer.open(destination)
        words.decode(words.encode("a b, \u00e9\u3042"))
    else:
        kept = None if kind == ENRICHED and choice & 64 == 0 else "none"
        convert_language_model(source, destination, dtype=dtype, tokenizer=kept)


def _source(kind: int, name: str, content: bytes) -> Path:
    at = _sources(name)
    if kind == CONFIG:
        return _written(_sources(name, "other"), _checkpoint(name), content)
    if kind == TOKENIZER:
        return at / "model.safetensors"
    path = at / "source"
    path.write_bytes(content)
    if kind == HEADER or (kind == VOICE and content[:4] != b"GGUF"):
        size = payload_bytes(content)
        path.write_bytes(struct.pack("<Q", len(content)) + content + (b"\x00\x00\x00\x3f" * (size // 4 + 1))[:size])
    return path


def _written(at: Path, weights: bytes, config: bytes) -> Path:
    (at / "config.json").write_bytes(config)
    (at / "model.safetensors").write_bytes(weights)
    return at / "model.safetensors"


@functools.cache
def _sources(name: str, part: str = "sources") -> Path:
    """A folder with a good checkpoint and its configuration."""
    at = folder() / f"{name}-{part}"
    at.mkdir()
    _written(at, _checkpoint(name), json.dumps(CONFIGS[name]).encode())
    return at


@functools.cache
def _checkpoint(name: str) -> bytes:
    return save(language_arrays(name))


@functools.cache
def _raw(name: str) -> bytes:
    """As moshi.cpp has it: vectors flat, not one word of metadata."""
    tensors = {f"lm.{tensor}": (array.reshape(-1, array.shape[-1]), Q.F32) for tensor, array in language_arrays(name).items()}
    return write_raw_tensors(folder() / "raw.gguf", tensors).read_bytes()


def seeds() -> Iterator[bytes]:
    for choice, name in enumerate(NAMES):
        header = json_header(_checkpoint(name))
        yield from (bytes([HEADER, choice + settings]) + header for settings in (0, 4, 8, 12))
        yield from (bytes([HEADER, choice]) + header.replace(old, new) for old, new in REPLACED)
        yield from (bytes([CONFIG, choice]) + text for text in _configs(name))
        for kind, data in ((RAW, _raw(name)), (ENRICHED, language_file(name).read_bytes())):
            yield from (bytes([kind, choice + settings]) + data for settings in (0, 12))
            yield from (bytes([kind, choice]) + data[:size] for size in (24, 300, 2_000))
            yield from (bytes([kind, choice]) + data.replace(old, new) for old, new in SPOILED)
    yield bytes([HEADER, 0]) + b'{"lm.transformer.layers.' + b"9" * 5_000 + b'.norm1.alpha":' + ONE_NUMBER + b"}"
    yield bytes([HEADER, 0]) + '{"condition_provider.conditioners.\u00b2.embed.weight":'.encode() + ONE_NUMBER + b"}"
    yield from (bytes([TOKENIZER, 0]) + data for data in tokenizers())
    yield from _with_tokenizers()
    yield from (bytes([VOICE, 0]) + data for data in voices())


ONE_NUMBER: Final = b'{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}'
REPLACED: Final = (
    (b'"F32"', b'"BF16"'),
    (b'"F32"', b'"I8"'),
    (b'"F32"', b'"F64"'),
    (b"in_projs.0.weight", b"in_projs.0.weight_scb"),
    (b"out_norm.alpha", b"out_norm.lora_A.weight"),
    (b"out_norm.alpha", b"out_norm.beta"),
    (b"[1,1,8]", b"[8,1,1]"),
    (b"[8,8]", b"[64,1]"),
    (b"self_attn.in_projs.0.weight", b"self_attn.in_proj_weight"),
    (b"self_attn.out_projs.0.weight", b"self_attn.out_proj.weight"),
)
SPOILED: Final = (
    (b"moshi.lm.dep_q\x04\x00\x00\x00\x02\x00\x00\x00", b"moshi.lm.dep_q\x04\x00\x00\x00\xff\xff\xff\xff"),
    (b"moshi.lm.dep_q\x04\x00\x00\x00\x01\x00\x00\x00", b"moshi.lm.dep_q\x05\x00\x00\x00\xff\xff\xff\xff"),
    (b"moshi.lm.kv_repeat\x04\x00\x00\x00\x02", b"moshi.lm.kv_repeat\x04\x00\x00\x00\xff"),
    (b"moshi.lm.dim\x04", b"moshi.lm.dim\x06"),
    (b"moshi.component", b"moshi.componenT"),
    (b"lm.out_norm.alpha", b"xx.out_norm.alpha"),
    (b"lm.text_linear.weight", b"lm.text_linear.weighs"),
    (
        b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00moshi",
        b"general.architecture\x08" + bytes(11) + b"x",
    ),
)


CONFIG_CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"n_q": 3},
    {"n_q": (1 << 31) - 1, "delays": None},
    {"n_q": True},
    {"dep_q": 9},
    {"delays": [0]},
    {"delays": [-1, 0, 0]},
    {"kv_repeat": 3},
    {"max_period": 1e4},
    {"max_period": 1.5},
    {"hidden_scale": 0},
    {"hidden_scale": float("nan")},
    {"text_card_out": 5},
    {"num_layers": None},
    {"depformer_num_heads": None},
    {"depformer_dim_feedforward": [8, 8]},
    {"depformer_weights_per_step_schedule": [0] * 9},
    {"quantize": True},
    {"lora": True},
    {"layer_scale": 0.1},
    {"betas": [1, 2]},
    {"unknown": 1},
    {"model_type": "personaplex"},
    {"tokenizer_name": "../../../etc/passwd"},
    {"conditioners": {"a b": {}}},
    {"conditioners": {"a": {"type": "lut", "lut": {"tokenizer": "x"}}}},
    {"conditioners": {"a": {"type": "lut", "lut": {"huge": 1}}}},
    {"conditioners": {"a": {"type": "tensor"}}},
    {"fuser": {"prepend": ["a"]}},
    {"fuser": {"other": 1}},
    {"fuser": {"sum": [1]}},
    {"lm_gen_config": {"temp": 0.8, "top_k": 250, "use_sampling": True, "text_temp": 1}},
    {"lm_gen_config": {"temp": "x"}},
    {"lm_gen_config": {"top_k": -1}},
    {"lm_gen_config": {"other": 1}},
    {"stt_config": {"audio_delay_seconds": 0.5, "note": None}},
    {"tts_config": {"a b": 1}},
    {"model_id": {"sig": [1]}},
)


def _configs(name: str) -> Iterator[bytes]:
    good = CONFIGS[name]
    yield from (json.dumps(good | change).encode() for change in CONFIG_CHANGES)
    yield from (b"", b"[]", b"\xff", b"[" * 5_000, b"{}", b'{"dim":1,"dim":2}', b'{"dim":1e999}')
    # Nested so deeply that reading it succeeds and showing it might not.
    yield from (b'{"fuser":{"other":' + b"[" * depth + b"]" * depth + b"}}" for depth in (400, 800, 900, 950))


@functools.cache
def _converted_with_tokenizer() -> bytes:
    path = folder() / "with-words.gguf"
    (folder() / "words.model").write_bytes(build_model(PIECES))
    convert_language_model(_sources("plain") / "model.safetensors", path, tokenizer=folder() / "words.model", force=True)
    return path.read_bytes()


def _with_tokenizers() -> Iterator[bytes]:
    """Files that have their tokenizer in them, whose keys do not fit together."""
    whole = _converted_with_tokenizer()
    yield bytes([ENRICHED, 0]) + whole
    for old, new in (
        (
            b"tokenizer.ggml.model\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00llama",
            b"tokenizer.ggml.model\x08" + bytes(11) + b"x",
        ),
        (b"tokenizer.ggml.scores", b"tokenizer.ggml.scorex"),
        (b"tokenizer.ggml.token_type", b"tokenizer.ggml.token_typo"),
        (b"unigram", b"unigrax"),
        (b"<pad>", b"<unk>"),
        (b"<pad>", b"<p\xffd>"),
        (b"padding_token_id\x04\x00\x00\x00\x03", b"padding_token_id\x04\x00\x00\x00\xf3"),
    ):
        yield bytes([ENRICHED, 0]) + whole.replace(old, new, 1)
