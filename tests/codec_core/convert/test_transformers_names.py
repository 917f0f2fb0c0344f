from __future__ import annotations

from pathlib import Path

import pytest
from safetensors import safe_open

from codec_core.convert.transformers_names import is_transformers_naming, kyutai_name
from codec_core.errors import CheckpointError

LAYER = "decoder_transformer.layers.7."
OURS = "decoder_transformer.transformer.layers.7."
BOOK = "quantizer.semantic_residual_vector_quantizer.layers.0.codebook."


@pytest.mark.parametrize(
    ("theirs", "kyutais"),
    [
        ("encoder.layers.1.block.3.conv.bias", "encoder.model.1.block.3.conv.conv.bias"),
        ("encoder.layers.3.conv.weight", "encoder.model.3.conv.conv.weight"),
        ("decoder.layers.0.conv.weight", "decoder.model.0.conv.conv.weight"),
        ("decoder.layers.2.conv.weight", "decoder.model.2.convtr.convtr.weight"),
        ("decoder.layers.11.conv.bias", "decoder.model.11.convtr.convtr.bias"),
        ("decoder.layers.12.block.1.conv.weight", "decoder.model.12.block.1.conv.conv.weight"),
        ("decoder.layers.14.conv.bias", "decoder.model.14.conv.conv.bias"),
        ("downsample.conv.weight", "downsample.conv.conv.conv.weight"),
        ("upsample.conv.weight", "upsample.convtr.convtr.convtr.weight"),
        (LAYER + "input_layernorm.weight", OURS + "norm1.weight"),
        (LAYER + "post_attention_layernorm.bias", OURS + "norm2.bias"),
        (LAYER + "mlp.fc1.weight", OURS + "linear1.weight"),
        (LAYER + "mlp.fc2.weight", OURS + "linear2.weight"),
        (LAYER + "self_attn_layer_scale.scale", OURS + "layer_scale_1.scale"),
        (LAYER + "mlp_layer_scale.scale", OURS + "layer_scale_2.scale"),
        (LAYER + "self_attn.o_proj.weight", OURS + "self_attn.out_proj.weight"),
        (LAYER + "self_attn.q_proj.weight", OURS + "self_attn.in_proj_weight"),
        (LAYER + "self_attn.k_proj.weight", None),
        (LAYER + "self_attn.v_proj.weight", None),
        ("quantizer.acoustic_residual_vector_quantizer.output_proj.weight", "quantizer.rvq_rest.output_proj.weight"),
        (BOOK + "embed_sum", "quantizer.rvq_first.vq.layers.0._codebook.embedding_sum"),
        (BOOK + "cluster_usage", None),
        (BOOK + "initialized", None),
    ],
)
def test_rules(theirs: str, kyutais: str | None) -> None:
    assert kyutai_name(theirs) == kyutais


@pytest.mark.parametrize("unknown", ["", "decoder.layers.x.conv.weight", LAYER + "self_attn.q_proj.bias", BOOK + "embed"])
def test_a_name_no_rule_knows_is_refused(unknown: str) -> None:
    with pytest.raises(CheckpointError, match="a name no rule knows"):
        kyutai_name(unknown)


def test_the_rules_undo_what_transformers_does_to_every_name(tiny_checkpoint: Path, tiny_transformers: Path) -> None:
    with safe_open(tiny_checkpoint, "numpy") as kyutais, safe_open(tiny_transformers / "model.safetensors", "numpy") as theirs:
        published = {name for name in kyutais.keys() if not name.endswith(("cluster_usage", "_initialized"))}  # noqa: SIM118
        translated = [name for name in map(kyutai_name, theirs.keys()) if name is not None]
        assert sorted(translated) == sorted(published)
        assert is_transformers_naming(theirs.keys())
        assert not is_transformers_naming(kyutais.keys())
