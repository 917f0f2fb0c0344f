"""Other implementations of Mimi, and ours, each at work in a process of its own (:mod:`.peer_process`)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, cast

import numpy as np

from codec_core.bench.streams import Codes
from codec_core.bench.timing import CallTimes
from codec_core.errors import UnavailableError

OURS: Final = "mimi"
PEERS: Final = ("moshi", "rustymimi", "transformers")
CALLS_A_TURN: Final = 5
_SCRIPT: Final = Path(__file__).with_name("peer_process.py")
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Contender:
    """A codec and where to find it."""

    kind: str
    """``mimi`` or one of :data:`PEERS`."""
    python: str
    """The interpreter that has it."""
    weights: str
    """Kyutai's checkpoint; a model file for ``mimi``; a directory of its own form for ``transformers``."""


class PeerMissingError(Exception):
    """The interpreter lacks the codec."""


class PeerProcess:
    """One codec at work; a context manager, which ends the process."""

    def __init__(self, contender: Contender) -> None:
        """Start the process.

        Raises:
            UnavailableError: no such interpreter.

        """
        self.contender = contender
        self.name = contender.kind
        self.codes: Codes = np.empty((0, 0), np.int32)
        """int32 [frames, levels]: what its first lane made of the signal."""
        environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user named the interpreter
                [contender.python, str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise UnavailableError(
                "interpreter", f"{contender.python}: {error.strerror}", "a Python that has the peers"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def open(self, levels: int, batch: int, folder: Path) -> None:
        """Have it load the weights and warm up on the signal in ``folder``.

        Raises:
            PeerMissingError: this interpreter does not have it.
            UnavailableError: it refused, or died.

        """
        request = {
            "do": "open",
            "kind": self.contender.kind,
            "weights": self.contender.weights,
            "levels": levels,
            "batch": batch,
        }
        answer = self._ask(request | {name: str(folder / f"{name}.npy") for name in ("pcm", "codes")})
        self.name, self.codes = answer["name"], np.array(answer["codes"], np.int32)

    def time(self, direction: str) -> CallTimes:
        """Have it make a few calls."""
        answer = self._ask({"do": "time", "direction": direction, "calls": CALLS_A_TURN})
        return CallTimes(tuple(answer["wall_ms"]), tuple(answer["cpu_ms"]))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        requests, answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        line = ""
        with contextlib.suppress(BrokenPipeError):
            requests.write(json.dumps(request) + "\n")
            requests.flush()
            line = answers.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "missing" in answer:
            raise PeerMissingError
        if "error" in answer:
            raise UnavailableError(self.contender.kind, " ".join(answer["error"].split()), "an answer")
        return answer
