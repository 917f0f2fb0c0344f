"""Lanes: independent, refilled, and harmed only by their own source."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.audio_file import AudioReader
from codec_core.cli.encode import encode_file
from codec_core.corpus.inputs import Source
from codec_core.corpus.lanes import LaneWorker, Outcome, code_dtype
from codec_core.corpus.schedule import Schedule

from .audio_files import write_bad


def encoded(model: CodecModel, paths: list[Path], lanes: int) -> tuple[list[Outcome], list[int]]:
    outcomes: list[Outcome] = []
    steps: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        sources = enumerate(Source(str(path)) for path in paths)
        schedule = Schedule(sources, len(paths), workers=1, frame_samples=1920, readers=pool, ahead=2)
        stop = threading.Event()
        LaneWorker(model, 8, lanes, schedule, deliver=outcomes.append, stepped=steps.append, stop=stop).run()
    return sorted(outcomes, key=lambda outcome: outcome.index), steps


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_codes_are_those_of_each_file_alone(tiny_model: CodecModel, few_files: Path, lanes: int):
    paths = sorted(path for path in few_files.iterdir() if "bad" not in path.name)
    outcomes, steps = encoded(tiny_model, paths, lanes)
    for path, outcome in zip(paths, outcomes, strict=True):
        with AudioReader(path) as reader:
            expected, _ = encode_file(tiny_model, reader, 8, lambda _done, _all: None)
        assert np.array_equal(np.frombuffer(outcome.codes, "<i2").reshape(-1, 8).T, expected), path
    frames = sum(len(outcome.codes) // 16 for outcome in outcomes)
    assert sum(steps) == frames
    assert max(steps) <= lanes


def test_a_source_that_overflows_the_network_leaves_its_neighbours_alone(tiny_model: CodecModel, few_files: Path):
    write_bad(few_files / "3-bad.wav", "too loud", 1)
    paths = sorted(few_files.iterdir())
    outcomes, _ = encoded(tiny_model, paths, 16)
    failed = [path.name for path, outcome in zip(paths, outcomes, strict=True) if outcome.error is not None]
    assert failed == ["3-bad.wav"]
    alone, _ = encoded(tiny_model, [path for path in paths if path.name != "3-bad.wav"], 1)
    assert [outcome.codes for outcome in outcomes if outcome.error is None] == [outcome.codes for outcome in alone]


def test_stopping_ends_after_the_present_step(tiny_model: CodecModel, few_files: Path):
    stop = threading.Event()
    stop.set()
    with ThreadPoolExecutor(1) as pool:
        sources = enumerate([Source(str(few_files / "0.wav"))])
        schedule = Schedule(sources, 1, workers=1, frame_samples=1920, readers=pool, ahead=1)
        LaneWorker(tiny_model, 8, 1, schedule, deliver=pytest.fail, stepped=pytest.fail, stop=stop).run()


def test_element_type_of_codes():
    assert [code_dtype(entries).name for entries in (2048, 1 << 15, (1 << 15) + 1)] == ["int16", "int16", "uint16"]
