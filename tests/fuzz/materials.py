"""What the fuzz targets begin with: the smallest models that have every part, made once for each process."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Final

from codec_core import CodecModel, _ext
from codec_core.bench.transformers_form import write_transformers_form
from codec_core.convert import convert_model
from codec_core.errors import CodecError, InternalError
from codec_core.synth import write_synthetic
from codec_core.synth_tensors import SynthPreset

SMALL: Final = SynthPreset("small", 2, 4, 1, 2, 8, 4, 8, 4, levels=3, default_levels=2)
WIDE: Final = SynthPreset("wide", 2, 32, 1, 2, 32, 4, 8, 32, levels=2, default_levels=2)
"""Widths of whole blocks of 32, as the class q8_0 needs them."""
NUMERICS: Final = ("kyutai", "ggml", "ggml-causal")


@functools.cache
def folder() -> Path:
    """A folder of this process, in memory where the system has one there; gone when it ends."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="mimi-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@functools.cache
def checkpoint(preset: SynthPreset = SMALL) -> Path:
    """Kyutai's form."""
    path = folder() / f"{preset.name}.safetensors"
    write_synthetic(path, preset, force=True)
    return path


@functools.cache
def model_file(preset: SynthPreset = SMALL, dtype: str = "f32", quantize: str | None = None) -> Path:
    path = folder() / f"{preset.name}-{dtype}-{quantize}.gguf"
    convert_model(checkpoint(preset), path, dtype=dtype, quantize=quantize, force=True)
    return path


@functools.cache
def transformers_folder() -> Path:
    """The form of transformers: weights and config."""
    made = folder() / "transformers"
    made.mkdir()
    geometry = _ext.inspect_model(str(model_file()))["geometry"]
    write_transformers_form(checkpoint(), geometry, made)
    return made


@functools.cache
def model(numerics: str = "kyutai") -> CodecModel:
    return CodecModel.open(model_file(), numerics)


def require_typed(error: CodecError) -> None:
    """A refusal names what is wrong and blames what came, not ourselves."""
    if isinstance(error, InternalError) or not error.subject or not (error.found or error.expected):
        raise AssertionError(f"no refusal of an input: {type(error).__name__}: {error}") from error
