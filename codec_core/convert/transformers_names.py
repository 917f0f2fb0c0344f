"""Tensor names of the transformers library's Mimi to Kyutai's own, which :mod:`codec_core.convert.name_map` takes further."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

_LAYER: Final = r"(encoder|decoder)_transformer\.layers\.(\d+)\."
_OUR_LAYER: Final = r"\1_transformer.transformer.layers.\2."
_HALVES: Final = (("semantic", "first"), ("acoustic", "rest"))

EMBED_SUM: Final = "codebook.embed_sum"
CLUSTER_USAGE: Final = "codebook.cluster_usage"
QUERY: Final = "self_attn.q_proj.weight"
KEY: Final = "self_attn.k_proj.weight"
VALUE: Final = "self_attn.v_proj.weight"

_RULES: Final = (
    # The decoder's transposed convs and its other convs have one name here, and differ in their place in the list.
    (r"decoder\.layers\.(2|5|8|11)\.conv\.(weight|bias)", r"decoder.model.\1.convtr.convtr.\2"),
    (r"(encoder|decoder)\.layers\.(\d+\.(?:block\.\d+\.)?)conv\.(weight|bias)", r"\1.model.\2conv.conv.\3"),
    (r"downsample\.conv\.weight", "downsample.conv.conv.conv.weight"),
    (r"upsample\.conv\.weight", "upsample.convtr.convtr.convtr.weight"),
    (_LAYER + r"input_layernorm\.(weight|bias)", _OUR_LAYER + r"norm1.\3"),
    (_LAYER + r"post_attention_layernorm\.(weight|bias)", _OUR_LAYER + r"norm2.\3"),
    (_LAYER + r"mlp\.fc([12])\.weight", _OUR_LAYER + r"linear\3.weight"),
    (_LAYER + r"self_attn_layer_scale\.scale", _OUR_LAYER + "layer_scale_1.scale"),
    (_LAYER + r"mlp_layer_scale\.scale", _OUR_LAYER + "layer_scale_2.scale"),
    (_LAYER + r"self_attn\.o_proj\.weight", _OUR_LAYER + "self_attn.out_proj.weight"),
    # Query, key and value become one tensor, under the name of the first.
    (_LAYER + re.escape(QUERY), _OUR_LAYER + "self_attn.in_proj_weight"),
    *(
        rule
        for theirs, ours in _HALVES
        for rule in (
            (
                rf"quantizer\.{theirs}_residual_vector_quantizer\.(in|out)put_proj\.weight",
                rf"quantizer.rvq_{ours}.\1put_proj.weight",
            ),
            (
                rf"quantizer\.{theirs}_residual_vector_quantizer\.layers\.(\d+)\.codebook\.embed_sum",
                rf"quantizer.rvq_{ours}.vq.layers.\1._codebook.embedding_sum",
            ),
        )
    ),
)
_DROPPED: Final = (
    _LAYER + r"self_attn\.[kv]_proj\.weight",
    r"quantizer\.(semantic|acoustic)_residual_vector_quantizer\.layers\.\d+\.codebook\.(cluster_usage|initialized)",
)


def is_transformers_naming(names: Iterable[str]) -> bool:
    """Tell whether a checkpoint was written by the transformers library's Mimi."""
    marks = ("encoder.layers.", "decoder.layers.", "quantizer.semantic_residual_vector_quantizer.")
    return any(name.startswith(marks) for name in names)


def kyutai_name(name: str) -> str | None:
    """Translate a name of transformers to Kyutai's; None for a tensor that goes into another one, or nowhere.

    Raises:
        CheckpointError: no rule knows the name.

    """
    for pattern, replacement in _RULES:
        match = re.fullmatch(pattern, name)
        if match is not None:
            return match.expand(replacement)
    if any(re.fullmatch(pattern, name) for pattern in _DROPPED):
        return None
    raise CheckpointError(f"tensor {shown(name)}", "a name no rule knows", "the tensors of transformers' MimiModel")
