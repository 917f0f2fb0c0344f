"""What made codes, as every format that has a place for it keeps it."""

from __future__ import annotations

from importlib.metadata import version

from codec_core.model import CodecModel


def provenance(model: CodecModel) -> dict[str, str]:
    """Return name and SHA-256 of the model, its weight class and numerics, and the name and version of this program."""
    info = model.info
    return {
        "model": info.name,
        "model_sha256": info.sha256,
        "weight_class": info.weight_class,
        "numerics": info.numerics,
        "encoder": f"mimi-server {version('mimi-server')}",
    }
