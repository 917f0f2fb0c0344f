"""Snapshots of a language model's sessions: of another model, damaged, or saying what no session can."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from codec_core import LanguageModel, _ext
from codec_core.errors import SnapshotError

ROWS = np.linspace(-1, 1, 4 * 32, dtype=np.float32).reshape(4, 32)
Models = Callable[..., LanguageModel]


@pytest.fixture
def model(language_models: Models) -> LanguageModel:
    return language_models("a")


def test_snapshots_of_another_model_or_kind(language_models: Models, tiny_model):
    blob = language_models("a").session().snapshot()
    with pytest.raises(SnapshotError, match="snapshot model sha256"):
        language_models("b").restore(blob)
    with pytest.raises(SnapshotError, match="snapshot direction: found encoder, expected language"):
        language_models("a").restore(tiny_model.encoder().snapshot())
    with pytest.raises(SnapshotError, match="snapshot direction: found language, expected decoder"):
        tiny_model.restore_decoder(blob)
    with pytest.raises(SnapshotError, match="snapshot digest"):
        language_models("a").restore(blob[:80] + bytes([blob[80] ^ 1]) + blob[81:])


@pytest.mark.parametrize("name", ["a", "c"])
def test_engine_states_that_lie(language_models: Models, rng: np.random.Generator, name: str):
    """Cut short, longer, or with any byte changed: refused as a snapshot, or a state like any other."""
    model = language_models(name)
    session = model.session(conditions={"speaker_wavs": ROWS} if name == "c" else None)
    for _ in range(5):
        session.step([1, 2, 3, 4])
    state = session.native.save_state()
    native = model._native
    for size in [*range(200), len(state) - 1]:
        with pytest.raises(SnapshotError):
            _ext.LanguageSession.restore(native, state[:size])
    with pytest.raises(SnapshotError):
        _ext.LanguageSession.restore(native, state + b"\0")
    for _ in range(300):
        damaged = bytearray(state)
        place = int(rng.integers(0, 60)) if rng.random() < 0.5 else int(rng.integers(0, len(state)))
        damaged[place] ^= 1 << int(rng.integers(0, 8))
        try:
            restored = _ext.LanguageSession.restore(native, bytes(damaged))
        except SnapshotError:
            continue
        assert restored.position_steps < 2**24


def test_numbers_of_a_snapshot_that_cannot_be(model: LanguageModel):
    session = model.session()
    state = session.native.save_state()
    tokens = state.rindex(struct.pack("<2i", -2, -2))
    for place, value, field in (
        (0, b"\x02", "generator"),
        (9, struct.pack("<d", np.nan), "temperature"),
        (9, struct.pack("<d", -1.0), "temperature"),
        (9, struct.pack("<d", 1e-50), "temperature"),
        (25, struct.pack("<d", 1e-4), "temperature"),
        (41, struct.pack("<Q", 2**60), "generator state"),
        (41 + 8 + 4 * 624, struct.pack("<I", 625), "generator state"),
        (tokens, struct.pack("<i", 65), "tokens"),
        (tokens, struct.pack("<i", -3), "tokens"),
    ):
        lie = state[:place] + value + state[place + len(value) :]
        with pytest.raises(SnapshotError, match=f"snapshot {field}"):
            _ext.LanguageSession.restore(model._native, lie)


def test_a_snapshot_has_no_more_rows_of_a_condition_than_a_session(language_models: Models):
    """Keys and values of every layer are made of each row: many times what the snapshot itself takes."""
    model = language_models("c")
    state = model.session(conditions={"speaker_wavs": ROWS}).native.save_state()
    behind = 41 + 8 + 4 * 625
    (summed,) = struct.unpack_from("<Q", state, behind)
    at = behind + 8 + 4 * summed
    (crossed,) = struct.unpack_from("<Q", state, at)
    rows = (1 << 16) + 1
    lie = state[:at] + struct.pack("<Q", rows * 128) + bytes(4 * 128 * rows) + state[at + 8 + 4 * crossed :]
    with pytest.raises(SnapshotError, match="snapshot cross condition: found 65537 rows, expected at most 65536"):
        _ext.LanguageSession.restore(model._native, lie)
