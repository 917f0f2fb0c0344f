"""A voice prompt of PersonaPlex: what its language model is to have heard of a voice before a conversation begins.

``embeddings`` are input sums of the temporal transformer, a row for each step of the prompt, replayed in place of token
embeddings; ``cache`` is the ring of tokens as it stood after them, put back afterwards.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import ModelContractError
from codec_core.gguf_file import GgufFile, GgufTensor, moshi_component

EMBEDDINGS: Final = "voice.embeddings"
CACHE: Final = "voice.cache"
COMPONENT: Final = "voice"
TOKEN_FLOOR: Final = -2
"""The least a token of the ring can be: "no value yet"."""
_DIM_CAP: Final = 32_768
_STEPS_CAP: Final = 65_536
_CHANNELS_CAP: Final = 65
_SLOTS_CAP: Final = 1024
_REMEDY: Final = "a file with metadata: `mimi convert {path} -o VOICE.gguf` makes one"


@dataclass(frozen=True)
class VoicePrompt:
    """A prompt as it was read. Its arrays are the caller's."""

    name: str
    embeddings: npt.NDArray[np.float32]
    """[steps, dim], finite."""
    cache: npt.NDArray[np.int32]
    """[channels, slots] of tokens, -2 where there is none yet."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> VoicePrompt:
        """Read and check a file.

        Raises:
            ModelAccessError, ModelFormatError: it cannot be read.
            ModelContractError: it is no voice prompt, or a raw one; naming tensor or key, found and expected.

        """
        file = GgufFile(path)
        component = moshi_component(file)
        if component == "" and EMBEDDINGS in file.tensors:
            raise ModelContractError("file", "a voice prompt without metadata", _REMEDY.format(path=file.path))
        if component != COMPONENT:
            found = f"{component!a}" if component else "no such key"
            raise ModelContractError("key 'moshi.component'", found, f"'{COMPONENT}', a voice prompt")
        shape = check_voice(file)
        embeddings = file.rows(EMBEDDINGS).reshape(shape.steps, shape.dim)
        return cls(file.text("general.name") or "", embeddings, read_cache(file, shape))


@dataclass(frozen=True)
class VoiceShape:
    """Sizes of a voice prompt."""

    dim: int
    steps: int
    channels: int
    slots: int


def check_voice(file: GgufFile) -> VoiceShape:
    """Check that a file holds the two tensors of a voice prompt and nothing else, with fitting shapes and types.

    Raises:
        ModelContractError: naming the tensor, found and expected.

    """
    for name in file.tensors:
        if name not in {EMBEDDINGS, CACHE}:
            raise ModelContractError(
                f"tensor {name[:80]!a}", "a tensor a voice prompt has no use for", f"{EMBEDDINGS}, {CACHE}"
            )
    embeddings = _tensor(file, EMBEDDINGS, ("f32", "f16", "bf16"))
    cache = _tensor(file, CACHE, ("i32",))
    dim, *ones, steps = embeddings.dims if len(embeddings.dims) > 1 else (*embeddings.dims, 1)
    if any(size != 1 for size in ones):
        raise _dims(embeddings, "(dim, 1, 1, steps)")
    if not (1 <= dim <= _DIM_CAP and 1 <= steps <= _STEPS_CAP):
        raise _dims(embeddings, f"a dim of at most {_DIM_CAP} and at most {_STEPS_CAP} steps")
    slots, channels, *ones = cache.dims if len(cache.dims) > 1 else (*cache.dims, 1)
    if any(size != 1 for size in ones):
        raise _dims(cache, "(slots, channels)")
    if not (1 <= slots <= _SLOTS_CAP and 2 <= channels <= _CHANNELS_CAP):
        raise _dims(cache, f"at most {_SLOTS_CAP} slots of 2 to {_CHANNELS_CAP} channels")
    shape = VoiceShape(dim, steps, channels, slots)
    for key, size in (("dim", dim), ("steps", steps), ("channels", channels), ("slots", slots)):
        stated = file.count(f"moshi.voice.{key}")
        if stated not in (None, size):
            raise ModelContractError(f"key 'moshi.voice.{key}'", f"{stated}", f"{size}, as the tensors have it")
    return shape


def read_cache(file: GgufFile, shape: VoiceShape) -> npt.NDArray[np.int32]:
    """Return the ring of a checked file, [channels, slots].

    Raises:
        ModelContractError: a token below -2.

    """
    cache = file.integers(CACHE).reshape(shape.channels, shape.slots)
    check_tokens(cache)
    return cache


def check_tokens(cache: npt.NDArray[Any]) -> None:
    """Refuse tokens that no ring can hold.

    Raises:
        ModelContractError: naming the token and its place.

    """
    for channel, slot in np.argwhere((cache < TOKEN_FLOOR) | (cache >= 1 << 31)):
        found = f"{cache[channel, slot]} in slot {slot} of channel {channel}"
        raise ModelContractError(f"tensor '{CACHE}'", found, f"tokens of {TOKEN_FLOOR} or more that 32 bits hold")


def _tensor(file: GgufFile, name: str, types: tuple[str, ...]) -> GgufTensor:
    tensor = file.tensors.get(name)
    if tensor is None:
        raise ModelContractError(f"tensor '{name}'", "no such tensor", f"the tensors of a voice prompt: {EMBEDDINGS}, {CACHE}")
    if tensor.type not in types:
        raise ModelContractError(f"tensor '{name}' type", tensor.type, " or ".join(types))
    return tensor


def _dims(tensor: GgufTensor, expected: str) -> ModelContractError:
    return ModelContractError(f"tensor '{tensor.name}' dims", f"{tensor.dims}", expected)
