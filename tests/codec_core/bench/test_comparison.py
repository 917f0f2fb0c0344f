"""The engine against itself, which has all that a peer has; and against real peers, where they are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core.bench.checkpoints import same_weights
from codec_core.bench.comparison import FEWEST_TURNS, compare
from codec_core.bench.peers import CALLS_A_TURN, OURS, PEERS, Contender
from codec_core.bench.streams import SteadyState
from codec_core.errors import UnavailableError


def no_progress(_done: int, _total: int) -> None:
    pass


def engine(path: Path) -> Contender:
    return Contender(OURS, sys.executable, str(path))


def test_the_engine_against_itself(steady: SteadyState, tiny_gguf: Path):
    reports: list[tuple[int, int]] = []
    found = compare(
        engine(tiny_gguf),
        [engine(tiny_gguf)],
        steady,
        batches=(1, 2),
        seconds=0,
        progress=lambda done, total: reports.append((done, total)),
    )
    assert found.notices == []
    rows = [(row.batch, row.direction) for row in found.results]
    assert rows == [(batch, direction) for batch in (1, 2) for direction in ("encode", "decode", "duplex") for _ in range(2)]
    for ours, theirs in zip(found.results[::2], found.results[1::2], strict=True):
        assert ours.our_share == 1
        assert theirs.our_share * theirs.cpu_ms_per_frame == pytest.approx(ours.cpu_ms_per_frame)
        assert ours.same_codes == theirs.same_codes == 1
        assert ours.calls == theirs.calls == FEWEST_TURNS * CALLS_A_TURN
    for first in range(0, len(found.results), 6):
        encode, decode, duplex = found.results[first : first + 6 : 2]
        assert duplex.cpu_ms_per_frame == pytest.approx(encode.cpu_ms_per_frame + decode.cpu_ms_per_frame)
    assert reports == sorted(reports)
    assert reports[-1] == (6, 6)


def test_codes_that_differ_show(steady: SteadyState, tiny_gguf: Path, tmp_path: Path):
    """A codec of other weights is no peer."""
    other = tmp_path / "other.gguf"
    data = bytearray(tiny_gguf.read_bytes())
    data[-50_000:-40_000] = data[-40_000:-30_000]
    other.write_bytes(data)
    found = compare(engine(tiny_gguf), [engine(other)], steady, batches=(1,), seconds=0, progress=no_progress)
    assert found.results[1].same_codes < 1


def test_who_cannot_run_is_named(steady: SteadyState, tiny_gguf: Path):
    peers = [Contender("moshi", "/bin/true", ""), Contender("moshi", sys.executable, "")]
    found = compare(engine(tiny_gguf), peers, steady, batches=(1, 2), seconds=0, progress=no_progress)
    assert {row.kind for row in found.results} == {OURS}
    assert found.notices[0] == "moshi: the process ended"


def test_a_peer_found_in_the_second_interpreter(steady: SteadyState, tiny_gguf: Path, tmp_path: Path):
    """An environment without packages of its own has the base interpreter's only."""
    script = tmp_path / "bare"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c \'import json; input(); print(json.dumps({{"missing": "x"}}))\'\n')
    script.chmod(0o755)
    peers = [Contender(OURS, str(script), ""), engine(tiny_gguf)]
    found = compare(engine(tiny_gguf), peers, steady, batches=(1,), seconds=0, progress=no_progress)
    assert (len(found.results), found.notices) == (6, [])
    found = compare(engine(tiny_gguf), peers[:1], steady, batches=(1,), seconds=0, progress=no_progress)
    assert (len(found.results), found.notices) == (3, [f"{OURS}: not installed in {script}"])


def test_ours_must_run(steady: SteadyState, tiny_gguf: Path):
    with pytest.raises(UnavailableError, match="ModelAccessError"):
        compare(engine(tiny_gguf.with_name("gone.gguf")), [], steady, batches=(1,), seconds=0, progress=no_progress)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PEERS)
def test_a_real_peer(kind: str, tmp_path: Path):
    if importlib.util.find_spec(kind) is None:
        pytest.skip(f"{kind} is not installed")
    weights = same_weights("default", None, tmp_path)
    state = SteadyState.reach(CodecModel.open(weights.model), 8, no_progress)
    peers = [Contender(kind, sys.executable, weights.for_kind(kind))]
    found = compare(engine(weights.model), peers, state, batches=(1,), seconds=0, progress=no_progress)
    assert found.notices == []
    assert found.results[1].same_codes > 0.99
