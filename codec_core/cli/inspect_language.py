"""What ``mimi inspect`` shows of a language model and of a voice prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codec_core.gguf_file import GgufFile, check_language_model
from codec_core.text_tokenizer import TextTokenizer
from codec_core.voice_prompt import VoicePrompt

Facts = Iterable[tuple[str, str]]


def inspect_language_model(path: str) -> dict[str, Any]:
    """Check a language model's file completely, and return what it holds.

    Raises:
        ModelAccessError, ModelFormatError, ModelContractError.

    """
    file = GgufFile(path)
    geometry = check_language_model(file)
    tokenizer = TextTokenizer.from_file(file)
    return _common(file, "lm") | {
        "geometry": geometry,
        "tokenizer": None if tokenizer is None else tokenizer_facts(tokenizer),
    }


def inspect_voice_prompt(path: str) -> dict[str, Any]:
    """Check a voice prompt's file completely, and return what it holds.

    Raises:
        ModelAccessError, ModelFormatError, ModelContractError.

    """
    file = GgufFile(path)
    voice = VoicePrompt.open(path)
    (steps, dim), (channels, slots) = voice.embeddings.shape, voice.cache.shape
    return _common(file, "voice") | {"geometry": {"dim": dim, "steps": steps, "channels": channels, "slots": slots}}


def tokenizer_facts(tokenizer: TextTokenizer) -> dict[str, Any]:
    """Return what can be said of a tokenizer in a few words."""
    model = tokenizer.model
    return {
        "pieces": len(tokenizer),
        "model_type": model.model_type if tokenizer.algorithm_known else None,
        "byte_fallback": model.byte_fallback,
        "add_dummy_prefix": model.add_dummy_prefix,
        "remove_extra_whitespaces": model.remove_extra_whitespaces,
        "charsmap_bytes": len(model.charsmap),
        "special_ids": model.special_ids,
    }


def facts_of(found: dict[str, Any]) -> Facts:
    """Return labels and texts of what either of the two functions found."""
    geometry = found["geometry"]
    if found["component"] == "voice":
        yield "prompt", f"{geometry['steps']} steps of {geometry['dim']}"
        yield "token ring", f"{geometry['channels']} channels, {geometry['slots']} slots"
        return
    user, own = geometry["user_levels"], geometry["own_levels"]
    yield "audio", f"{geometry['audio_channels']} codebooks of {geometry['codebook_entries']}: {own} its own, {user} the user's"
    yield "text", f"{geometry['text_entries']} tokens, padding {geometry['text_padding_id']}"
    yield "delays", f"{' '.join(map(str, geometry['delays_steps']))} steps, text first"
    yield "temporal transformer", _transformer(geometry["temporal"])
    if geometry["depformer_levels"]:
        sets = len(set(geometry["weight_sets"]))
        yield (
            "depformer",
            f"{_transformer(geometry['depformer'])}; {geometry['depformer_levels']} codebooks, {sets} weight sets",
        )
    if geometry["extra_heads"]:
        yield "extra heads", f"{geometry['extra_heads']} of {geometry['extra_head_dim']}"
    for conditioner in geometry["conditioners"]:
        kind = f"one of {conditioner['labels']} labels" if conditioner["labels"] else f"rows of {conditioner['width']}"
        yield f"condition {conditioner['name']}", kind
    yield "text tokenizer", _tokenizer(found["tokenizer"])


def _common(file: GgufFile, component: str) -> dict[str, Any]:
    tensors = [
        {"name": tensor.name, "type": tensor.type, "shape": tuple(reversed(tensor.dims)), "bytes": tensor.size_bytes}
        for tensor in file.tensors.values()
    ]
    name = file.text("general.name") or ""
    return {
        "component": component,
        "name": name,
        "tensors": tensors,
        "metadata": file.metadata,
        "file_bytes": file.size_bytes,
    }


def _transformer(geometry: dict[str, Any]) -> str:
    heads = f"{geometry['heads']} heads of {geometry['dim'] // max(1, geometry['heads'])}"
    keys = f" ({geometry['key_heads']} of keys)" if geometry["key_heads"] != geometry["heads"] else ""
    reach = f", context {geometry['context_steps']} steps" if geometry["context_steps"] else ""
    return f"{geometry['layers']} layers, {heads}{keys}, width {geometry['dim']}, gating {geometry['gating_width']}{reach}"


def _tokenizer(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return "none"
    kind = facts["model_type"] or "unknown algorithm (ids to text only)"
    return f"{facts['pieces']} pieces, {kind}{', byte fallback' if facts['byte_fallback'] else ''}"
