"""The public names, pinned: whoever adds, renames or drops one meets this list."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from importlib.metadata import entry_points

import pytest

import codec_core

PUBLIC_NAMES = {
    "codec_core": {
        "CodecError",
        "CodecModel",
        "DecoderSession",
        "EncoderSession",
        "Given",
        "LanguageModel",
        "LanguageModelInfo",
        "LanguageSession",
        "ModelInfo",
        "Prompt",
        "Sampling",
        "__version__",
    },
    "codec_core.client": {
        "BlockingStream",
        "EndedError",
        "Flushed",
        "Frame",
        "LineOptions",
        "Notice",
        "Ready",
        "RemoteError",
        "Stream",
        "StreamSettings",
        "StreamStats",
    },
    "codec_core.clip": {"decode_clip", "encode_clip"},
    "codec_core.codes_file": {
        "CodesDocument",
        "format_of",
        "parse_codes",
        "read_codes",
        "serialize_codes",
        "write_codes",
    },
    "codec_core.data": {"Corpus", "open"},
    "codec_core.convert": {
        "ConversionReport",
        "LanguageModelReport",
        "VoiceReport",
        "convert_language_model",
        "convert_model",
        "convert_voice_prompt",
    },
    "codec_core.text_tokenizer": {"TextStream", "TextTokenizer"},
    "codec_core.voice_prompt": {"VoicePrompt"},
}
PUBLIC_MEMBERS = {
    "CodecModel": {
        "codebook",
        "decode_batch",
        "decode_latents",
        "decoder",
        "encode_batch",
        "encoder",
        "info",
        "open",
        "restore_decoder",
        "restore_encoder",
        "window_stats",
    },
    "EncoderSession": {
        "close",
        "entered",
        "direction",
        "encode",
        "flush",
        "info",
        "latents",
        "levels",
        "native",
        "pending_samples",
        "position_frames",
        "push",
        "reset",
        "restore_parts",
        "snapshot",
        "state_bytes",
    },
    "DecoderSession": {
        "close",
        "entered",
        "decode",
        "direction",
        "info",
        "levels",
        "native",
        "position_frames",
        "push",
        "reset",
        "restore_parts",
        "snapshot",
        "state_bytes",
    },
}
LANGUAGE_MODEL_MEMBERS = {
    "LanguageModel": {"info", "open", "prompt_batch", "restore", "session", "step_batch", "window_stats"},
    "LanguageSession": {
        "close",
        "entered",
        "extra_heads",
        "info",
        "levels",
        "native",
        "position_steps",
        "prompt",
        "reset",
        "snapshot",
        "state_bytes",
        "step",
    },
}
MODEL_FACTS = (
    "name",
    "path",
    "sha256",
    "weight_class",
    "numerics",
    "sample_rate_hz",
    "frame_samples",
    "frame_rate_hz",
    "levels",
    "default_levels",
    "codebook_entries",
    "context_steps",
    "isa",
    "threads",
    "weights_bytes",
    "encoder_state_bytes",
    "decoder_state_bytes",
)
PARAMETERS = {
    codec_core.CodecModel.open: ("path_or_name", "numerics", "threads", "ram_budget_bytes"),
    codec_core.CodecModel.encoder: ("self", "levels"),
    codec_core.CodecModel.decoder: ("self", "levels"),
    codec_core.CodecModel.encode_batch: ("self", "sessions", "pcm"),
    codec_core.CodecModel.decode_batch: ("self", "sessions", "codes"),
    codec_core.CodecModel.restore_encoder: ("self", "blob"),
    codec_core.CodecModel.restore_decoder: ("self", "blob"),
    codec_core.EncoderSession.encode: ("self", "pcm", "observer"),
    codec_core.EncoderSession.push: ("self", "chunk"),
    codec_core.EncoderSession.latents: ("self", "chunk", "final"),
    codec_core.CodecModel.decode_latents: ("self", "codes"),
    codec_core.CodecModel.codebook: ("self", "level"),
    codec_core.DecoderSession.decode: ("self", "codes", "observer"),
    codec_core.DecoderSession.push: ("self", "codes"),
    codec_core.LanguageModel.open: ("path", "threads", "ram_budget_bytes"),
    codec_core.LanguageModel.session: ("self", "sampling", "conditions"),
    codec_core.LanguageModel.step_batch: ("self", "sessions", "user_codes", "given", "observer"),
    codec_core.LanguageModel.prompt_batch: ("self", "sessions", "prompts"),
    codec_core.LanguageModel.restore: ("self", "blob"),
    codec_core.LanguageSession.prompt: ("self", "prompt"),
    codec_core.LanguageSession.step: ("self", "user_codes", "given", "observer"),
    codec_core.Sampling: ("text_temperature", "text_top_k", "temperature", "top_k", "seed", "generator"),
    codec_core.Given: ("text", "codes", "kept", "noise"),
    codec_core.Prompt: ("text", "codes", "user_codes", "embeddings"),
}
LANGUAGE_MODEL_FACTS = (
    "name",
    "path",
    "digest",
    "weight_class",
    "numerics",
    "audio_channels",
    "own_levels",
    "user_levels",
    "codebook_entries",
    "text_entries",
    "text_padding_id",
    "delays_steps",
    "max_delay_steps",
    "context_steps",
    "extra_heads",
    "conditioners",
    "isa",
    "threads",
    "weights_bytes",
    "temporal_bytes",
    "depformer_bytes",
    "state_bytes",
)
COMMANDS = {
    "bench",
    "compare",
    "convert",
    "decode",
    "encode",
    "inspect",
    "lm",
    "pull",
    "serve",
    "stream",
    "synth",
    "talk",
    "tokenize",
    "verify",
}


@pytest.mark.parametrize("module", PUBLIC_NAMES)
def test_public_names(module: str):
    loaded = importlib.import_module(module)
    assert {name for name in PUBLIC_NAMES[module] if hasattr(loaded, name)} == PUBLIC_NAMES[module]


def test_the_package_exports_exactly_its_public_names():
    assert set(codec_core.__all__) == PUBLIC_NAMES["codec_core"]


@pytest.mark.parametrize("name", PUBLIC_MEMBERS)
def test_public_members(name: str, tiny_model: codec_core.CodecModel):
    instance = {
        "CodecModel": lambda: tiny_model,
        "EncoderSession": tiny_model.encoder,
        "DecoderSession": tiny_model.decoder,
    }[name]()
    assert {member for member in dir(instance) if not member.startswith("_")} == PUBLIC_MEMBERS[name]


@pytest.mark.parametrize("name", LANGUAGE_MODEL_MEMBERS)
def test_public_members_of_the_language_model(name: str, language_models: Callable[..., codec_core.LanguageModel]):
    model = language_models("a")
    instance = model if name == "LanguageModel" else model.session()
    assert {member for member in dir(instance) if not member.startswith("_")} == LANGUAGE_MODEL_MEMBERS[name]


def test_facts_of_a_language_model():
    assert tuple(codec_core.LanguageModelInfo.__dataclass_fields__) == LANGUAGE_MODEL_FACTS


def test_facts_of_a_model():
    assert tuple(codec_core.ModelInfo.__dataclass_fields__) == MODEL_FACTS


@pytest.mark.parametrize("call", PARAMETERS, ids=lambda call: call.__qualname__)
def test_parameters(call):
    parameters = tuple(inspect.signature(call).parameters)
    assert parameters == tuple(name for name in PARAMETERS[call] if not (name == "self" and inspect.ismethod(call)))


def test_commands():
    ours = importlib.import_module("codec_core.cli.main")
    plugged_in = {entry.name for entry in entry_points(group=ours.PLUGIN_GROUP)}
    assert set(ours.BUILT_IN) | plugged_in == COMMANDS


def test_the_command_is_installed():
    assert [entry.value for entry in entry_points(group="console_scripts") if entry.name == "mimi"] == [
        "codec_core.cli.main:run"
    ]
