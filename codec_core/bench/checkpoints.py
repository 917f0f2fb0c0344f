"""The same weights in the form that each codec takes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core import _ext
from codec_core.bench.peers import OURS
from codec_core.bench.transformers_form import write_transformers_form
from codec_core.convert import convert_model
from codec_core.errors import SettingError
from codec_core.model import resolve_model_path
from codec_core.synth import write_synthetic

DEFAULT_MODEL: Final = "default"
_SOURCE_KEY: Final = "moshi.mimi.source_sha256"


@dataclass(frozen=True)
class SameWeights:
    """One set of weights, in files that last as long as the folder they were made in."""

    model: Path
    """For our engine."""
    kyutai: Path
    """Kyutai's checkpoint, which moshi and rustymimi read."""
    transformers: Path
    """A directory as the transformers library saves it."""

    @classmethod
    def of(cls, model: Path, kyutai: Path, folder: Path) -> SameWeights:
        """Add the form that is still missing, in ``folder``."""
        theirs = folder / "transformers"
        theirs.mkdir()
        write_transformers_form(kyutai, _ext.inspect_model(str(model))["geometry"], theirs)
        return cls(model, kyutai, theirs)

    def for_kind(self, kind: str) -> str:
        """Return what the codec of this kind reads."""
        return str({OURS: self.model, "transformers": self.transformers}.get(kind, self.kyutai))


def same_weights(model: str, checkpoint: Path | None, folder: Path) -> SameWeights:
    """Return files of the same weights; what is not there is made in ``folder``.

    Args:
        model: a model file or name. ``default``, which the peers cannot run, stands for whatever the checkpoint holds; a
            ``.safetensors`` is the checkpoint.
        checkpoint: Kyutai's ``.safetensors``; None: that of ``model``, or the full-size synthetic one.
        folder: an existing directory.

    Raises:
        SettingError: a model that was not converted from this checkpoint.
        CheckpointError, ModelFileError: a file is refused.

    """
    if model.endswith(".safetensors") and checkpoint is None:
        model, checkpoint = DEFAULT_MODEL, Path(model)
    if model == DEFAULT_MODEL:
        if checkpoint is None:
            checkpoint = folder / "full.safetensors"
            write_synthetic(checkpoint, "full")
        ours = folder / "ours.gguf"
        convert_model(checkpoint, ours)
        return SameWeights.of(ours, checkpoint, folder)
    if checkpoint is None:
        raise SettingError("peer-weights", "none", f"the checkpoint that {model} was converted from")
    ours = resolve_model_path(model)
    source = _ext.inspect_model(str(ours))["metadata"].get(_SOURCE_KEY)
    with checkpoint.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if source != found:
        raise SettingError("peer-weights", f"{checkpoint} of SHA-256 {found}", f"what {model} was converted from: {source}")
    return SameWeights.of(ours, checkpoint, folder)
