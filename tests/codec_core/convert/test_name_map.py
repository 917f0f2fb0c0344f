from __future__ import annotations

from pathlib import Path

import gguf
import pytest
from safetensors import safe_open

from codec_core.convert.name_map import is_conv_bias, is_half_precision, our_name, require_codec
from codec_core.errors import CheckpointError

LAYER = "encoder_transformer.transformer.layers.7."
BOOK = "quantizer.rvq_rest.vq.layers.30._codebook."


@pytest.mark.parametrize(
    ("published", "ours"),
    [
        ("encoder.model.1.block.3.conv.conv.bias", "mimi.encoder.model.1.block.3.conv.conv.bias"),
        ("decoder.model.2.convtr.convtr.weight", "mimi.decoder.model.2.convtr.convtr.weight"),
        (LAYER + "self_attn.in_proj_weight", f"mimi.{LAYER}self_attn.in_projs.0.weight"),
        (LAYER + "self_attn.out_proj.weight", f"mimi.{LAYER}self_attn.out_projs.0.weight"),
        (LAYER + "self_attn.in_projs.0.weight", f"mimi.{LAYER}self_attn.in_projs.0.weight"),
        (LAYER + "layer_scale_1.scale", f"mimi.{LAYER}layer_scale_1.scale"),
        ("downsample.conv.conv.conv.weight", "mimi.downsample.conv.conv.conv.weight"),
        ("upsample.convtr.convtr.convtr.weight", "mimi.upsample.convtr.convtr.convtr.weight"),
        ("quantizer.rvq_first.input_proj.weight", "mimi.quantizer.rvq_first.input_proj.weight"),
        (BOOK + "embedding_sum", f"mimi.{BOOK}embedding"),
        (BOOK + "cluster_usage", None),
        (BOOK + "_initialized", None),
    ],
)
def test_rules(published: str, ours: str | None) -> None:
    assert our_name(published) == ours


@pytest.mark.parametrize(
    "unknown",
    [
        "",
        "encoder.model.0.conv.conv.weight_g",
        "encoder.model.x.conv.conv.weight",
        LAYER + "gating.linear_in.weight",
        BOOK + "embedding",
    ],
)
def test_a_name_no_rule_knows_is_refused(unknown: str) -> None:
    with pytest.raises(CheckpointError, match="a name no rule knows"):
        our_name(unknown)


@pytest.mark.parametrize("name", ["text_emb.weight", "depformer.layers.0.norm1.alpha", "lm.out_norm.alpha"])
def test_a_language_model_is_named(name: str) -> None:
    with pytest.raises(CheckpointError, match=r"a Moshi language model.*expected a Mimi codec"):
        require_codec(["encoder.model.0.conv.conv.weight", name])


def test_every_published_name_leads_to_one_tensor_of_the_file(tiny_checkpoint: Path, tiny_gguf: Path) -> None:
    with safe_open(tiny_checkpoint, "numpy") as file:
        ours = [our_name(name) for name in file.keys()]  # noqa: SIM118 - not a dictionary
    kept = [name for name in ours if name is not None]
    assert sorted(kept) == sorted(tensor.name for tensor in gguf.GGUFReader(tiny_gguf).tensors)


def test_what_class_f16_narrows(tiny_gguf: Path) -> None:
    names = [tensor.name for tensor in gguf.GGUFReader(tiny_gguf).tensors]
    halves = {name for name in names if is_half_precision(name)}
    convs = {name for name in names if name.endswith("conv.conv.weight") and "convtr" not in name}
    projections = {name for name in names if "quantizer" in name and "_proj." in name}
    assert halves == convs | projections
    assert len(convs) == 14 + 10 + 1  # encoder, decoder, downsample
    assert len(projections) == 4
    assert sum(is_conv_bias(name) for name in names) == 28
