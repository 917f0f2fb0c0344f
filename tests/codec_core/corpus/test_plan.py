"""How the machine is shared out among few sources and many."""

from __future__ import annotations

import os

import pytest

from codec_core.corpus.plan import share_out


@pytest.mark.parametrize(
    ("sources", "threads", "shares"),
    [(100, 1, (1, 1)), (100, 8, (8, 1)), (1, 8, (1, 8)), (3, 8, (3, 2)), (8, 8, (8, 1)), (0, 4, (1, 4))],
)
def test_workers_and_their_threads(sources: int, threads: int, shares: tuple[int, int]):
    assert share_out(sources, threads) == shares


def test_all_cores_unless_told():
    assert share_out(10_000) == (len(os.sched_getaffinity(0)), 1)
