"""Sources are handed out in order, evenly, and read ahead."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from codec_core.corpus.inputs import Source
from codec_core.corpus.schedule import Schedule


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as made:
        yield made


def schedule(pool: ThreadPoolExecutor, count: int, workers: int, ahead: int = 2) -> Schedule:
    sources = ((at, Source(f"none-{at}.wav")) for at in range(count))
    return Schedule(sources, count, workers=workers, frame_samples=1920, readers=pool, ahead=ahead)


def test_in_order_and_each_once(pool: ThreadPoolExecutor):
    made = schedule(pool, 7, 1)
    assert [made.take(0).index for _ in range(7)] == list(range(7))
    assert made.take(0) is None


def test_few_sources_are_shared_by_the_workers(pool: ThreadPoolExecutor):
    made = schedule(pool, 5, 2)
    assert [made.take(busy) is not None for busy in range(4)] == [True, True, True, False]
    assert [made.take(busy) is not None for busy in range(3)] == [True, True, False]


def test_a_worker_without_work_gets_some_while_there_is_any(pool: ThreadPoolExecutor):
    made = schedule(pool, 3, 8)
    assert made.take(1) is None
    assert made.take(0) is not None


def test_no_more_is_read_ahead_than_asked(pool: ThreadPoolExecutor):
    drawn = []

    def sources():
        for at in range(10):
            drawn.append(at)
            yield at, Source(f"none-{at}.wav")

    made = Schedule(sources(), 10, workers=1, frame_samples=1920, readers=pool, ahead=3)
    made.take(0)
    assert drawn == [0, 1, 2, 3]
