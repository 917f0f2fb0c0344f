"""One side of a comparison: a process that steps one codec, ours or a peer's, and says how long each call took.

It is run as a file, by whatever interpreter has the codec, so it imports nothing of ours except as that codec. Every line of
standard input is a request in JSON, every line of standard output an answer::

    {"do": "open", "kind", "weights", "levels", "batch", "pcm", "codes"}  -> {"name", "codes"}
    {"do": "time", "direction": "encode" or "decode", "calls"}            -> {"wall_ms": [...], "cpu_ms": [...]}

``pcm`` and ``codes`` name ``.npy`` files, float32 [frames, frame_samples] and int32 [frames, levels], that every side is fed.
Opening brings all lanes through all of these frames and answers the codes that the first lane came to. ``{"missing": ...}``
says that this interpreter lacks the codec, ``{"error": ...}`` what else went wrong.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import time
from typing import Any

import numpy as np

WARM_UP_CHUNK_FRAMES = 10
"""Frames a call of the warm-up: the state that they leave is that of single ones."""


class Side:
    """A codec with ``batch`` streams of each direction; lanes are fed different frames of the same signal."""

    distributions: tuple[str, ...] = ()
    """The packages to name, with their versions."""
    most_lanes: int | None = None
    full_work_from_the_start = False
    """Whether attention always runs over the whole context, filled or not, so that a few frames warm it up."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.weights: str = request["weights"]
        self.levels: int = request["levels"]
        self.batch: int = request["batch"]
        self.pcm, self.codes = np.load(request["pcm"]), np.load(request["codes"])
        if self.most_lanes is not None and self.batch > self.most_lanes:
            raise ValueError(f"at most {self.most_lanes} streams in a batch")
        self._open()

    @property
    def name(self) -> str:
        """What was measured."""
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in self.distributions)

    def warm_up(self) -> Any:
        """Bring every lane through the frames; return int [frames, levels] of the first lane."""
        frames = WARM_UP_CHUNK_FRAMES if self.full_work_from_the_start else len(self.pcm)
        heard = []
        for first in range(0, frames, WARM_UP_CHUNK_FRAMES):
            part = slice(first, first + WARM_UP_CHUNK_FRAMES)
            heard.append(self._encode(np.stack([self.pcm[part].reshape(-1)] * self.batch)))
            self._decode(np.stack([self.codes[part].T] * self.batch))
        return np.concatenate([codes[0].T for codes in heard])

    def time(self, direction: str, calls: int) -> dict[str, list[float]]:
        """Step all lanes ``calls`` times and say how long each step took."""
        wall_ms, cpu_ms = [], []
        for i in range(calls):
            lanes = (np.arange(self.batch) + i) % len(self.pcm)
            step, frames = (
                (self._encode, self.pcm[lanes]) if direction == "encode" else (self._decode, self.codes[lanes, :, None])
            )
            wall, cpu = time.perf_counter(), time.process_time()
            step(frames)
            cpu_ms.append((time.process_time() - cpu) * 1000)
            wall_ms.append((time.perf_counter() - wall) * 1000)
        return {"wall_ms": wall_ms, "cpu_ms": cpu_ms}

    def _open(self) -> None:
        """Load the weights and begin ``batch`` streams."""
        raise NotImplementedError

    def _encode(self, pcm: Any) -> Any:
        """float32 [batch, samples], whole frames -> int [batch, levels, frames]."""
        raise NotImplementedError

    def _decode(self, codes: Any) -> Any:
        """int32 [batch, levels, frames] -> sound."""
        raise NotImplementedError


class Mimi(Side):
    """Our own engine, on one thread."""

    distributions = ("mimi-server",)

    def _open(self) -> None:
        self.model = importlib.import_module("codec_core").CodecModel.open(self.weights, threads=1)
        self.encoders = [self.model.encoder(self.levels)]
        self.decoders = [self.model.decoder(self.levels)]

    def warm_up(self) -> Any:
        """Warm up one stream of each direction, and continue it in every lane."""
        lanes, self.batch = self.batch, 1
        heard = super().warm_up()
        self.batch = lanes
        encoder, decoder = self.encoders[0].snapshot(), self.decoders[0].snapshot()
        self.encoders = [self.model.restore_encoder(encoder) for _ in range(lanes)]
        self.decoders = [self.model.restore_decoder(decoder) for _ in range(lanes)]
        return heard

    @property
    def name(self) -> str:
        """What was measured, and how it was opened."""
        info = self.model.info
        return f"{super().name}, {info.weight_class}, {info.numerics}, {info.isa}"

    def _encode(self, pcm: Any) -> Any:
        frames = np.split(pcm, pcm.shape[1] // self.pcm.shape[1], axis=1)
        return np.stack([self.model.encode_batch(self.encoders, frame) for frame in frames], axis=2)

    def _decode(self, codes: Any) -> Any:
        return [self.model.decode_batch(self.decoders, codes[:, :, i]) for i in range(codes.shape[2])]


class Rustymimi(Side):
    """Kyutai's Rust implementation; it has no batches."""

    distributions = ("rustymimi",)
    most_lanes = 1

    def _open(self) -> None:
        tokenizer = importlib.import_module("rustymimi").Tokenizer
        self.tokenizer = tokenizer(self.weights, num_codebooks=self.levels)

    def _encode(self, pcm: Any) -> Any:
        return self.tokenizer.encode_step(pcm[:, None])

    def _decode(self, codes: Any) -> Any:
        return self.tokenizer.decode_step(np.ascontiguousarray(codes, dtype=np.uint32))


class TorchSide(Side):
    """What runs on PyTorch: one thread, no gradients."""

    def _open(self) -> None:
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.torch.set_grad_enabled(False)
        self._load()

    def _load(self) -> None:
        """Load the weights and begin the streams."""
        raise NotImplementedError

    def _tensor(self, array: Any) -> Any:
        """Return an array as PyTorch takes it."""
        return self.torch.from_numpy(np.ascontiguousarray(array))


class Moshi(TorchSide):
    """Kyutai's PyTorch implementation, streaming."""

    distributions = ("moshi", "torch")
    full_work_from_the_start = True

    def _load(self) -> None:
        loaders = importlib.import_module("moshi.models.loaders")
        self.model = loaders.get_mimi(self.weights, device="cpu", num_codebooks=self.levels)
        self.model.streaming_forever(self.batch)

    def _encode(self, pcm: Any) -> Any:
        return self.model.encode(self._tensor(pcm[:, None])).numpy()

    def _decode(self, codes: Any) -> Any:
        return self.model.decode(self._tensor(codes.astype(np.int64)))


class Transformers(TorchSide):
    """The transformers library's Mimi, with its caches for streams; its decoder has none for its convs."""

    distributions = ("transformers", "torch")

    def _load(self) -> None:
        model = importlib.import_module("transformers").MimiModel
        self.model = model.from_pretrained(self.weights, use_cache=True).eval()
        takes = inspect.signature(self.model.encode).parameters
        self.cache = "cache" if "encoder_cache" in takes else "past_key_values"
        self.encoder_state: dict[str, Any] = {}
        self.decoder_state: dict[str, Any] = {}

    def _encode(self, pcm: Any) -> Any:
        streaming = self.encoder_state | {"use_streaming": True}
        result = self.model.encode(self._tensor(pcm[:, None]), num_quantizers=self.levels, return_dict=True, **streaming)
        name = f"encoder_{self.cache}"
        self.encoder_state = {name: result[name], "padding_cache": result["padding_cache"]}
        return result.audio_codes.numpy()

    def _decode(self, codes: Any) -> Any:
        result = self.model.decode(self._tensor(codes.astype(np.int64)), return_dict=True, **self.decoder_state)
        name = f"decoder_{self.cache}"
        self.decoder_state = {name: result[name]}
        return result.audio_values


KINDS = {"mimi": Mimi, "moshi": Moshi, "rustymimi": Rustymimi, "transformers": Transformers}


def answer(request: dict[str, Any], opened: list[Side]) -> dict[str, Any]:
    """Do what is asked; ``opened`` holds the side once it is open."""
    try:
        if request["do"] == "open":
            opened.append(KINDS[request["kind"]](request))
            return {"codes": opened[0].warm_up().tolist(), "name": opened[0].name}
        return dict(opened[0].time(request["direction"], request["calls"]))
    except ModuleNotFoundError as error:
        return {"missing": str(error.name)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer until standard input ends. What libraries print goes to standard error."""
    # The modules beside this file are not for libraries to find.
    with contextlib.suppress(ValueError):
        sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    opened: list[Side] = []
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line), opened)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
