"""What a language model's source holds, in the terms of the file to be written.

A source is a checkpoint or a raw GGUF, with its configuration beside it; or a GGUF that has its configuration in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from codec_core.convert.gguf_source import kept_texts
from codec_core.convert.gguf_writer import Metadata
from codec_core.convert.lm_config import LmConfig
from codec_core.convert.lm_metadata import PREFIX as KEY_PREFIX
from codec_core.convert.lm_metadata import config_metadata, weight_schedule
from codec_core.convert.lm_names import long_names, restored_name
from codec_core.convert.lm_source import AttentionRows, checkpoint_tensors, gguf_tensors, plan_lm_tensors
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError, ModelContractError
from codec_core.gguf_file import GgufFile
from codec_core.safetensors_file import SafetensorsHeader

_NEVER_USED: Final = frozenset({"depformer_text_emb.low_rank.weight"})
"""With two muxed text streams, out1 and out2 do its work."""
_LEVELS_CAP: Final = 64
"""More codebooks than any model has."""
_REWRITTEN: Final = frozenset({f"{KEY_PREFIX}source_sha256", f"{KEY_PREFIX}converter"})


@dataclass(frozen=True)
class LmPlan:
    """A whole source."""

    kind: str
    """What the source was, for the report."""
    tensors: list[PlannedTensor]
    metadata: Metadata
    """``moshi.lm.*``."""
    text_card: int
    tokenizer: Metadata = field(default_factory=list)
    """``tokenizer.*`` of the source itself."""
    tokenizer_name: str | None = None
    """The file the configuration names."""
    config_sha256: str | None = None
    name: str | None = None
    kept_texts: dict[str, str] = field(default_factory=dict)
    """``general.*`` strings of the source that are carried over."""


def plan_checkpoint(file: SourceFile, header: SafetensorsHeader, config: LmConfig, dtype: str) -> LmPlan:
    """Plan the conversion of Kyutai's checkpoint.

    Raises:
        CheckpointError: tensors or configuration are not those of a Moshi language model; names the tensor or key.

    """
    metadata = config_metadata(config)
    tensors = plan_lm_tensors(file, checkpoint_tensors(header), _rows(config), dtype, without=_without(config))
    return _with_config("Kyutai checkpoint", tensors, metadata, config)


def plan_raw(file: SourceFile, opened: GgufFile, config: LmConfig, dtype: str) -> LmPlan:
    """Plan the conversion of a GGUF file of moshi.cpp, which has no metadata and shortens long names.

    Raises:
        CheckpointError: as above, and a shortened name that could be of no tensor or of several.

    """
    metadata = config_metadata(config)
    candidates = long_names(config["conditioners"])
    names = {stored: restored_name(stored, candidates) for stored in opened.tensors}
    tensors = plan_lm_tensors(file, gguf_tensors(opened, names), _rows(config), dtype, without=_without(config))
    return _with_config("raw GGUF", tensors, metadata, config)


def plan_enriched(file: SourceFile, opened: GgufFile, dtype: str) -> LmPlan:
    """Plan the conversion of a GGUF file with metadata, which is kept.

    Raises:
        CheckpointError: tensors that are not those of a Moshi language model.
        ModelFormatError: a key of another type.
        ModelContractError: more codebooks than any model has.

    """
    sizes = {
        key: opened.count(KEY_PREFIX + key) for key in ("dim", "kv_repeat", "depformer.dim", "depformer.kv_repeat", "dep_q")
    }
    own = opened.count(f"{KEY_PREFIX}inference.dep_q")
    schedule = opened.numbers(f"{KEY_PREFIX}depformer.weights_per_step_schedule")
    levels = sizes["dep_q"] or 0
    if levels > _LEVELS_CAP:
        raise ModelContractError(f"key '{KEY_PREFIX}dep_q'", f"{levels}", f"0 to {_LEVELS_CAP}")
    sets = range(levels) if schedule is None else schedule.tolist()
    per_step = opened.flag(f"{KEY_PREFIX}depformer.weights_per_step") is not False
    kv_repeat = sizes["kv_repeat"] or 1
    rows = attention_rows(
        (sizes["dim"] or 0, kv_repeat),
        (sizes["depformer.dim"] or 0, sizes["depformer.kv_repeat"] or kv_repeat),
        list(sets) if per_step else [],
        own,
    )
    names = {name: name for name in opened.tensors}
    return LmPlan(
        kind="GGUF with metadata",
        tensors=plan_lm_tensors(file, gguf_tensors(opened, names), rows, dtype, without=frozenset()),
        metadata=_pairs(opened, lambda key: key.startswith(KEY_PREFIX) and key not in _REWRITTEN),
        text_card=opened.count(f"{KEY_PREFIX}text_card") or 0,
        tokenizer=_pairs(opened, lambda key: key.startswith("tokenizer.")),
        name=opened.text("general.name"),
        kept_texts=kept_texts(opened.metadata),
    )


def attention_rows(
    temporal: tuple[int, int], depformer: tuple[int, int], schedule: list[int], own_levels: int | None
) -> AttentionRows:
    """Return how fused attention is cut.

    Args:
        temporal: width, and query heads to a key head.
        depformer: likewise.
        schedule: the weight set of each of the depformer's codebooks; empty: one for all.
        own_levels: codebooks that are the model's own; None: all. A file may lack the sets of the others.

    """
    each = {"transformer": temporal, "cross": (temporal[0], 1), "depformer": depformer}
    sets = {max(part, default=0) + 1 for part in (schedule, schedule[:own_levels])}
    return AttentionRows(
        inputs={part: dim + 2 * (dim // repeat) for part, (dim, repeat) in each.items()},
        outputs={part: dim for part, (dim, _) in each.items()},
        sets={"transformer": [1], "cross": [1], "depformer": sorted(sets, reverse=True)},
    )


def _rows(config: LmConfig) -> AttentionRows:
    for part in ("", "depformer_"):
        if config[f"{part}dim"] % config[f"{part}kv_repeat"]:
            found = f"{config[f'{part}kv_repeat']}"
            raise CheckpointError(f"config.json: {part}kv_repeat", found, f"a divisor of {part}dim, {config[f'{part}dim']}")
    own = config["n_q"] // 2 if config["model_type"] == "personaplex" else None
    schedule = weight_schedule(config) if config["depformer_weights_per_step"] else []
    temporal, depformer = ((config[f"{part}dim"], config[f"{part}kv_repeat"]) for part in ("", "depformer_"))
    return attention_rows(temporal, depformer, schedule, own)


def _without(config: LmConfig) -> frozenset[str]:
    return _NEVER_USED if config["demux_second_stream"] else frozenset()


def _with_config(kind: str, tensors: list[PlannedTensor], metadata: Metadata, config: LmConfig) -> LmPlan:
    return LmPlan(
        kind=kind,
        tensors=tensors,
        metadata=metadata,
        text_card=config["text_card"],
        tokenizer_name=config["tokenizer_name"],
        config_sha256=config.sha256,
    )


def _pairs(opened: GgufFile, is_wanted: Callable[[str], bool]) -> list[tuple[str, Any]]:
    return [(key, opened.value(key)) for key in opened.metadata if is_wanted(key)]
