"""Tensor names of Kyutai's checkpoint to ours. The only place where they are translated; other forms are first taken to these.

Ours are ``mimi.`` + the published name, with the attention projections numbered and the codebooks divided out, which is how
GGUF files of Mimi have always been written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

_LAYER: Final = r"(encoder|decoder)_transformer\.transformer\.layers\.\d+\."
_CODEBOOK: Final = r"quantizer\.rvq_(first|rest)\.vq\.layers\.\d+\._codebook\."
EMBEDDING_SUM: Final = "embedding_sum"
CLUSTER_USAGE: Final = "cluster_usage"


@dataclass(frozen=True)
class NameRule:
    """A published name that matches ``pattern`` becomes ``mimi.`` + itself, ``replace[0]`` in it turned to ``replace[1]``."""

    pattern: str
    source: str
    """Where the name is given in Kyutai's published code (package ``moshi``)."""
    replace: tuple[str, str] = ("", "")
    dropped: bool = False
    """The tensor goes into another one, or nowhere."""


KYUTAI_RULES: Final = (
    NameRule(r"(encoder|decoder)\.model\.\d+\.(block\.\d+\.)?conv\.conv\.(weight|bias)", "modules/seanet.py, modules/conv.py"),
    NameRule(r"decoder\.model\.\d+\.convtr\.convtr\.(weight|bias)", "modules/seanet.py, modules/conv.py"),
    NameRule(_LAYER + r"(norm[12]\.(weight|bias)|linear[12]\.weight|layer_scale_[12]\.scale)", "modules/transformer.py"),
    NameRule(
        _LAYER + r"self_attn\.in_proj_weight",
        "modules/transformer.py, the load hook of StreamingMultiheadAttention",
        ("in_proj_weight", "in_projs.0.weight"),
    ),
    NameRule(
        _LAYER + r"self_attn\.out_proj\.weight",
        "modules/transformer.py, the load hook of StreamingMultiheadAttention",
        ("out_proj.weight", "out_projs.0.weight"),
    ),
    NameRule(_LAYER + r"self_attn\.(in|out)_projs\.0\.weight", "modules/transformer.py, StreamingMultiheadAttention"),
    NameRule(r"downsample\.conv\.conv\.conv\.weight", "modules/resample.py, ConvDownsample1d"),
    NameRule(r"upsample\.convtr\.convtr\.convtr\.weight", "modules/resample.py, ConvTrUpsample1d"),
    NameRule(r"quantizer\.rvq_(first|rest)\.(in|out)put_proj\.weight", "quantization/vq.py, ResidualVectorQuantizer"),
    NameRule(_CODEBOOK + EMBEDDING_SUM, "quantization/core_vq.py, EuclideanCodebook", (EMBEDDING_SUM, "embedding")),
    NameRule(_CODEBOOK + CLUSTER_USAGE, "quantization/core_vq.py, EuclideanCodebook", dropped=True),
    NameRule(_CODEBOOK + "_initialized", "quantization/core_vq.py, EuclideanCodebook", dropped=True),
)


def our_name(published: str) -> str | None:
    """Translate a name of Kyutai's checkpoint; None for a tensor that has no place of its own in our files.

    Raises:
        CheckpointError: no rule knows the name.

    """
    for rule in KYUTAI_RULES:
        if re.fullmatch(rule.pattern, published):
            return None if rule.dropped else "mimi." + published.replace(*rule.replace)
    raise CheckpointError(f"tensor {shown(published)}", "a name no rule knows", "the tensors of a Kyutai Mimi checkpoint")


def require_codec(names: Iterable[str]) -> None:
    """Refuse a checkpoint of the language model that is published beside the codec.

    Raises:
        CheckpointError: naming the tensor that tells.

    """
    for name in names:
        if name.startswith(("text_emb.", "depformer", "lm.")):
            raise CheckpointError(
                "tensor names",
                f"a Moshi language model ({shown(name)})",
                "a Mimi codec checkpoint; convert_language_model, or `mimi convert`, takes this one",
            )


def is_half_precision(name: str) -> bool:
    """Tell whether class f16 stores a tensor (by our name) as f16: the non-transposed convs and the RVQ's 1x1 projections."""
    return re.fullmatch(r".*\.conv\.conv\.weight|mimi\.quantizer\.\w+\.(in|out)put_proj\.weight", name) is not None


def is_wide_matrix(name: str) -> bool:
    """Tell whether class f16 stores a tensor (by our name) as f32 unless asked: transposed convs, transformers' projections."""
    return name.endswith(".convtr.convtr.weight") or (is_projection(name) and "_transformer." in name)


def is_projection(name: str) -> bool:
    """Tell whether class q8_0 stores a tensor (by our name) as q8_0: the projections of transformers and RVQ."""
    return (
        re.fullmatch(
            r"mimi\.\w+_transformer\..*\.(self_attn\.(in|out)_projs\.0|linear[12])\.weight"
            r"|mimi\.quantizer\.\w+\.(in|out)put_proj\.weight",
            name,
        )
        is not None
    )


def is_conv_bias(name: str) -> bool:
    """Tell whether a tensor (by our name) is the bias of a conv, which GGUF files of Mimi store as a row per channel."""
    return name.endswith((".conv.conv.bias", ".convtr.convtr.bias"))
