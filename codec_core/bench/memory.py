"""Memory and loading time, each in a process of its own that has done nothing else."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.bench.fresh_process import ask, peak_resident_bytes, resident_bytes
from codec_core.bench.streams import test_signal
from codec_core.model import CodecModel

SESSION_BOUND_BYTES: Final = 20_000_000
"""What a duplex stream may take."""
OVERHEAD_BOUND_BYTES: Final = 100_000_000
"""What the process may take besides weights and streams."""
_FRAMES: Final = 2


@dataclass(frozen=True)
class Memory:
    """Memory of a process that serves one model, in RAM (RSS)."""

    sessions: int
    """Duplex streams that it holds, and has stepped in one batch."""
    before_bytes: int
    """Python and the package, before the model is opened."""
    weights_bytes: int
    """The packed copy."""
    session_bytes: int
    """State of one duplex stream."""
    loaded_bytes: int
    """With the model, without streams."""
    in_use_bytes: int
    """With all streams."""
    bound_bytes: int
    """One copy of the weights, 20 MB for each stream, and 100 MB."""

    @property
    def overhead_bytes(self) -> int:
        """What is neither weights nor state of streams."""
        return self.in_use_bytes - self.weights_bytes - self.sessions * self.session_bytes

    @property
    def within_bound(self) -> bool:
        """Tell whether the bound holds."""
        return self.in_use_bytes <= self.bound_bytes


@dataclass(frozen=True)
class Loading:
    """What opening the model costs: reading, checking, packing and hashing the file."""

    file_bytes: int
    cold_seconds: float
    """After the system was asked to drop the file from its cache; it need not obey."""
    warm_seconds: float
    """With the file in the system's cache."""
    peak_bytes: int
    """The most that loading had in RAM, without what the process had before."""


def measure_memory(model: CodecModel, levels: int, sessions: int) -> tuple[Memory, Loading]:
    """Open the file of ``model`` in two fresh processes, and serve ``sessions`` duplex streams in the second.

    Raises:
        UnavailableError: a process died.

    """
    request = {
        "path": model.info.path,
        "numerics": model.info.numerics,
        "threads": model.info.threads,
        "levels": levels,
    }
    cold = ask(__name__, request | {"sessions": 0, "cold": True}, model.info.isa)
    warm = ask(__name__, request | {"sessions": sessions, "cold": False}, model.info.isa)
    bound_bytes = warm["weights_bytes"] + sessions * SESSION_BOUND_BYTES + OVERHEAD_BOUND_BYTES
    facts = ("before_bytes", "weights_bytes", "session_bytes", "loaded_bytes", "in_use_bytes")
    memory = Memory(sessions=sessions, bound_bytes=bound_bytes, **{name: warm[name] for name in facts})
    file_bytes = Path(model.info.path).stat().st_size
    return memory, Loading(file_bytes, cold["load_seconds"], warm["load_seconds"], warm["peak_bytes"] - warm["before_bytes"])


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Load, serve, and say how that went; what the process does that :func:`.ask` starts."""
    if request["cold"]:
        _drop_from_cache(Path(request["path"]))
    before = resident_bytes()
    begin = time.perf_counter()
    model = CodecModel.open(request["path"], request["numerics"], request["threads"])
    load_seconds = time.perf_counter() - begin
    peak, loaded = peak_resident_bytes(), resident_bytes()
    sessions, levels = request["sessions"], request["levels"]
    encoders = [model.encoder(levels) for _ in range(sessions)]
    decoders = [model.decoder(levels) for _ in range(sessions)]
    if sessions:
        for frame in test_signal(_FRAMES, model.info.frame_samples):
            model.decode_batch(decoders, model.encode_batch(encoders, [frame] * sessions))
    return {
        "before_bytes": before,
        "load_seconds": load_seconds,
        "peak_bytes": peak,
        "loaded_bytes": loaded,
        "in_use_bytes": resident_bytes(),
        "weights_bytes": model.info.weights_bytes,
        "session_bytes": model.info.encoder_state_bytes + model.info.decoder_state_bytes,
    }


def _drop_from_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    print(json.dumps(_answer(json.loads(sys.argv[1]))))
