"""Every input that once found a fault, and one of every hostile class, through each fuzz target: no fault comes back."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzz_targets import CORPUS, TARGETS, committed_inputs, load


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_is_a_fault(name: str):
    target = load(name)
    inputs = [path.read_bytes() for path in committed_inputs(name)] + list(target.seeds())
    assert len(inputs) > 30
    for data in inputs:
        target.one_input(data)


@pytest.mark.parametrize("name", TARGETS)
def test_damage_of_every_kind_is_no_fault(name: str, rng):
    """What fuzzing does first, in small: bytes changed, cut out and repeated."""
    target = load(name)
    seeds = [data for data in target.seeds() if 2 < len(data) < 20_000]
    for index in rng.integers(0, len(seeds), 60).tolist():
        data = bytearray(seeds[index])
        for place in rng.integers(0, len(data), int(rng.integers(1, 4))).tolist():
            data[place] = int(rng.integers(0, 256))
        cut = int(rng.integers(0, len(data)))
        for damaged in (bytes(data), bytes(data[:cut]), bytes(data[cut:] + data[:cut])):
            target.one_input(damaged)


def test_every_committed_input_belongs_to_a_target():
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert not [path for path in CORPUS.rglob("*") if path.is_file() and path.suffix != ".fuzz"]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_says_what_it_reads(name: str):
    target = load(name)
    assert target.__doc__
    assert "Input:" in target.__doc__
    assert target.COVERED
    assert all(isinstance(word, bytes) and word for word in target.DICTIONARY)
