"""A refused batch, with an engine that counts its steps."""

from __future__ import annotations

import math
from concurrent.futures import Future

import numpy as np
import pytest

from codec_core.errors import InternalError, NumericOverflowError
from server.batch_runner import run_batch
from server.batch_schedule import RESET, Job


class Stream:
    levels = 8

    def reset(self) -> None:
        raise RuntimeError("no reset")


class CountingEngine:
    """Refuses a batch that has a negative row; what it is asked is written down."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def encode_batch(self, sessions, rows):
        self.sizes.append(len(sessions))
        if (rows < 0).any():
            raise NumericOverflowError(f"lane {int(np.argmax(rows[:, 0] < 0))}")
        return rows * 2

    def decode_batch(self, _sessions, rows):
        return rows[:-1]


def jobs(rows: np.ndarray, step: str = "encode_batch") -> list[Job]:
    return [Job(step, Stream(), row, Future(), 0.0) for row in rows]


@pytest.mark.parametrize("size", [1, 2, 3, 16, 64])
@pytest.mark.parametrize("guilty_count", [0, 1, 2])
def test_halving_finds_the_guilty_and_nobody_else(size, guilty_count, rng):
    rows = np.arange(1.0, size + 1)[:, None]
    guilty = set(rng.choice(size, min(guilty_count, size), replace=False).tolist())
    rows[list(guilty)] = -1
    engine = CountingEngine()
    outcome = run_batch(engine, jobs(rows))
    for index, result in enumerate(outcome.results):
        if index in guilty:
            assert isinstance(result, NumericOverflowError)
        else:
            assert result == 2 * rows[index]
    assert len(engine.sizes) <= 1 + len(guilty) * 2 * math.ceil(math.log2(max(size, 2)))
    assert (outcome.refused_steps == 0) == (not guilty)


def test_every_one_guilty_still_ends():
    outcome = run_batch(CountingEngine(), jobs(np.full((64, 1), -1.0)))
    assert all(isinstance(result, NumericOverflowError) for result in outcome.results)
    assert outcome.refused_steps == 127


def test_an_engine_that_loses_rows_is_found_out():
    outcome = run_batch(CountingEngine(), jobs(np.ones((3, 1)), "decode_batch"))
    assert all(isinstance(result, InternalError) for result in outcome.results)


def test_what_is_no_error_still_reaches_the_waiter():
    class Leaving(CountingEngine):
        def encode_batch(self, _sessions, _rows):
            raise SystemExit

    (result,) = run_batch(Leaving(), jobs(np.ones((1, 1)))).results
    assert isinstance(result, InternalError)
    assert "SystemExit" in str(result)


def test_a_reset_that_fails_is_an_answer_too():
    results = run_batch(CountingEngine(), jobs(np.ones((2, 1)), RESET)).results
    assert [type(result) for result in results] == [RuntimeError, RuntimeError]
