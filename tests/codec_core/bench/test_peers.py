from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from codec_core.bench.peers import CALLS_A_TURN, OURS, PEERS, Contender, PeerMissingError, PeerProcess
from codec_core.bench.streams import SteadyState
from codec_core.errors import UnavailableError


@pytest.fixture
def folder(steady: SteadyState, tmp_path: Path) -> Path:
    np.save(tmp_path / "pcm.npy", steady.pcm)
    np.save(tmp_path / "codes.npy", steady.codes)
    return tmp_path


@pytest.mark.parametrize("batch", [1, 3])
def test_our_engine_as_a_process(steady: SteadyState, folder: Path, tiny_gguf: Path, batch: int):
    with PeerProcess(Contender(OURS, sys.executable, str(tiny_gguf))) as process:
        process.open(steady.levels, batch, folder)
        assert np.array_equal(process.codes, steady.codes)
        assert process.name.startswith("mimi-server ")
        for direction in ("encode", "decode", "encode"):
            times = process.time(direction)
            assert len(times.wall_ms) == len(times.cpu_ms) == CALLS_A_TURN
            assert min(times.wall_ms) > 0


@pytest.mark.parametrize("kind", PEERS)
def test_a_codec_that_is_not_installed(kind: str, folder: Path, tiny_checkpoint: Path):
    if importlib.util.find_spec(kind) is not None:
        pytest.skip(f"{kind} is installed")
    with PeerProcess(Contender(kind, sys.executable, str(tiny_checkpoint))) as process, pytest.raises(PeerMissingError):
        process.open(4, 1, folder)


def test_what_a_codec_refuses_is_told(folder: Path, tiny_checkpoint: Path):
    with PeerProcess(Contender(OURS, sys.executable, str(tiny_checkpoint.with_name("gone.gguf")))) as process:
        with pytest.raises(UnavailableError, match=r"ModelAccessError: .*gone\.gguf"):
            process.open(4, 1, folder)
        with pytest.raises(UnavailableError, match="IndexError"):
            process.time("encode")


def test_a_process_that_ends_is_told(folder: Path):
    with PeerProcess(Contender("moshi", "/bin/true", "")) as process, pytest.raises(UnavailableError, match="ended"):
        process.open(4, 1, folder)


def test_an_interpreter_that_is_not_there():
    with pytest.raises(UnavailableError, match="/nowhere/python"):
        PeerProcess(Contender("moshi", "/nowhere/python", ""))
