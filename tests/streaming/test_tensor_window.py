"""Under a RAM budget a model gives the same bits; what goes wrong with its file is told, and moves no session."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel, _ext
from codec_core.convert import convert_model
from codec_core.errors import ModelAccessError, SettingError, UnavailableError
from codec_core.synth import write_synthetic
from codec_core.window import WindowPlan, plan_window

FRAMES = 12
SLOT_COUNTS = range(1, 9)
MEMORY_FOLDER = Path("/dev/shm")


@pytest.fixture(scope="module")
def deep_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 layers on each side, whose ring wraps after eight frames."""
    folder = tmp_path_factory.mktemp("deep")
    write_synthetic(folder / "deep.safetensors", "deep")
    convert_model(folder / "deep.safetensors", folder / "deep.gguf")
    return folder / "deep.gguf"


@pytest.fixture(scope="module")
def plan(deep_path: Path) -> WindowPlan:
    """Without a limit: the least budget, and the least that holds everything."""
    return plan_window(deep_path, 1 << 40)


@pytest.fixture
def frames(pcm: np.ndarray) -> np.ndarray:
    return pcm[: FRAMES * 1920].reshape(FRAMES, 1920)


def round_trip(model: CodecModel, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and sound of one stream, encoded and decoded frame by frame in turn."""
    encoder, decoder = model.encoder(8), model.decoder(8)
    codes, sound = [], []
    for frame in frames:
        codes.append(encoder.encode(frame))
        sound.append(decoder.decode(codes[-1]))
    return np.array(codes), np.array(sound)


@pytest.fixture(scope="module")
def expected(deep_path: Path) -> Callable[[str, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """expected(numerics, frames): what the resident model gives."""
    models: dict[str, CodecModel] = {}

    def of(numerics: str, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if numerics not in models:
            models[numerics] = CodecModel.open(deep_path, numerics)
        return round_trip(models[numerics], frames)

    return of


@pytest.fixture(params=["kyutai", "ggml"])
def numerics(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.8, 1.0])
def test_any_budget_gives_the_same_bits(deep_path, plan: WindowPlan, frames, expected, *, numerics: str, share: float):
    budget = plan.minimum_bytes + int(share * (plan.full_bytes - 1 - plan.minimum_bytes))
    model = CodecModel.open(deep_path, numerics, ram_budget_bytes=budget)
    codes, sound = round_trip(model, frames)
    assert np.array_equal(codes, expected(numerics, frames)[0])
    assert np.array_equal(sound, expected(numerics, frames)[1])
    stats = model.window_stats
    assert stats is not None
    assert stats.streamed_bytes > 0
    assert stats.failed_loads == 0
    assert model.info.weights_bytes <= budget


@pytest.mark.parametrize("slots", SLOT_COUNTS)
def test_any_number_of_slots_gives_the_same_bits(deep_path, plan: WindowPlan, frames, expected, *, numerics: str, slots: int):
    budget = plan.minimum_bytes + 8 * plan.slot_bytes
    native = _ext.CodecModel.open(os.fspath(deep_path), numerics, "", 1, budget, slots)
    assert native.window_plan["slots"] == slots
    encoder = _ext.EncoderSession(native, 8)
    codes = [_ext.encode_batch([encoder], frame[np.newaxis])[0] for frame in frames]
    assert np.array_equal(np.array(codes), expected(numerics, frames)[0])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_quantised_weights_pass_through_as_they_are_stored(deep_path: Path, frames, share: float):
    path = deep_path.with_name("quantised.gguf")
    convert_model(deep_path, path, quantize="q8_0", force=True)
    whole = plan_window(path, 1 << 40)
    budget = whole.minimum_bytes + int(share * (whole.full_bytes - 1 - whole.minimum_bytes))
    expected = round_trip(CodecModel.open(path), frames)
    model = CodecModel.open(path, ram_budget_bytes=budget)
    found = round_trip(model, frames)
    assert model.window_stats is not None
    assert model.info.weight_class == "q8_0"
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_visits_a_layer_once(deep_path, plan: WindowPlan, pcm: np.ndarray, expected, threads: int):
    model = CodecModel.open(deep_path, threads=threads, ram_budget_bytes=plan.minimum_bytes + 4 * plan.slot_bytes)
    streams = np.stack([pcm[i * 500 : i * 500 + FRAMES * 1920].reshape(FRAMES, 1920) for i in range(5)])
    sessions = [model.encoder(8) for _ in range(5)]
    found = np.array([model.encode_batch(sessions, streams[:, f]) for f in range(FRAMES)])
    for lane in range(5):
        assert np.array_equal(found[:, lane], expected("kyutai", streams[lane])[0])
    stats = model.window_stats
    assert stats is not None
    read_ahead = stats.slots * stats.slot_bytes
    assert stats.bytes_read <= FRAMES * stats.encode_read_bytes + read_ahead


def test_encoding_and_decoding_at_once(deep_path, plan: WindowPlan, frames, expected):
    for slots in (1, 2, 5):
        budget = plan.minimum_bytes + (slots - 1) * plan.slot_bytes
        model = CodecModel.open(deep_path, ram_budget_bytes=budget)
        codes, sound = expected("kyutai", frames)
        with ThreadPoolExecutor(4) as pool:
            encoders = [pool.submit(model.encoder(8).push, frames.reshape(-1)) for _ in range(2)]
            decoders = [pool.submit(model.decoder(8).push, codes.T) for _ in range(2)]
            for done in encoders:
                assert np.array_equal(done.result(timeout=60).T, codes)
            for done in decoders:
                assert np.array_equal(done.result(timeout=60), sound.reshape(-1))


def test_reading_ahead_learns_that_directions_alternate(deep_path, plan: WindowPlan, frames):
    model = CodecModel.open(deep_path, ram_budget_bytes=plan.minimum_bytes + 10 * plan.slot_bytes)
    round_trip(model, frames)
    stats = model.window_stats
    assert stats is not None
    wasted = stats.bytes_read - FRAMES * (stats.encode_read_bytes + stats.decode_read_bytes)
    # Until it is learnt, at the start, the beginning of the wrong cycle is read; and once more beyond the end.
    assert wasted <= 3 * stats.slots * stats.slot_bytes


def test_everything_fits(deep_path, plan: WindowPlan):
    model = CodecModel.open(deep_path, ram_budget_bytes=plan.full_bytes)
    assert model.window_stats is None
    assert model.info.weights_bytes == plan.full_bytes == CodecModel.open(deep_path).info.weights_bytes


def test_less_than_the_minimum_is_refused_by_name(deep_path, plan: WindowPlan):
    with pytest.raises(SettingError, match=rf"ram_budget_bytes: found \d+ bytes, expected at least {plan.minimum_bytes} bytes"):
        CodecModel.open(deep_path, ram_budget_bytes=plan.minimum_bytes - 1)
    for nonsense in (0, -5, True, 1.5):
        with pytest.raises(SettingError, match="ram_budget_bytes"):
            CodecModel.open(deep_path, ram_budget_bytes=nonsense)


def test_the_environment_sets_the_budget(deep_path, plan: WindowPlan, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIMI_RAM_BUDGET", str(plan.minimum_bytes))
    stats = CodecModel.open(deep_path).window_stats
    assert stats is not None
    assert stats.slots == 1
    assert CodecModel.open(deep_path, ram_budget_bytes=plan.full_bytes).window_stats is None
    monkeypatch.setenv("MIMI_RAM_BUDGET", "much")
    with pytest.raises(SettingError, match="MIMI_RAM_BUDGET"):
        CodecModel.open(deep_path)


@pytest.fixture
def own_path(deep_path: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copy(deep_path, tmp_path / "own.gguf"))


def test_a_truncated_file_is_told_and_moves_no_session(own_path: Path, plan: WindowPlan, frames):
    model = CodecModel.open(own_path, ram_budget_bytes=plan.minimum_bytes + 2 * plan.slot_bytes)
    encoder = model.encoder(8)
    encoder.encode(frames[0])
    before = encoder.snapshot()
    status, content = own_path.stat(), own_path.read_bytes()
    os.truncate(own_path, len(content) // 2)
    for _ in range(2):
        with pytest.raises(ModelAccessError, match="own"):
            encoder.encode(frames[1])
        assert encoder.snapshot() == before
    own_path.write_bytes(content)
    os.utime(own_path, ns=(status.st_atime_ns, status.st_mtime_ns))
    undisturbed = CodecModel.open(own_path).restore_encoder(before)
    for frame in frames[1:]:
        assert np.array_equal(encoder.encode(frame), undisturbed.encode(frame))
    stats = model.window_stats
    assert stats is not None
    assert stats.failed_loads > 0


def test_a_file_written_over_is_refused(own_path: Path, plan: WindowPlan, frames):
    model = CodecModel.open(own_path, ram_budget_bytes=plan.minimum_bytes)
    sessions = [model.encoder(8) for _ in range(3)]
    before = [session.snapshot() for session in sessions]
    own_path.write_bytes(own_path.read_bytes()[::-1])
    with pytest.raises(ModelAccessError, match="modified while in use"):
        model.encode_batch(sessions, frames[:3])
    assert [session.snapshot() for session in sessions] == before


def test_a_file_that_another_took_the_place_of_goes_on_as_it_was(own_path: Path, plan: WindowPlan, frames, expected):
    model = CodecModel.open(own_path, ram_budget_bytes=plan.minimum_bytes)
    other = own_path.with_name("other.gguf")
    other.write_bytes(b"another model")
    other.replace(own_path)
    assert np.array_equal(round_trip(model, frames)[0], expected("kyutai", frames)[0])


@pytest.mark.skipif(not MEMORY_FOLDER.is_dir(), reason="no file system in memory here")
def test_a_file_system_that_may_have_no_direct_reads(deep_path, plan: WindowPlan, frames, expected):
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        path = shutil.copy(deep_path, Path(folder) / "deep.gguf")
        model = CodecModel.open(path, ram_budget_bytes=plan.minimum_bytes + 3 * plan.slot_bytes)
        codes, sound = round_trip(model, frames)
    assert np.array_equal(codes, expected("kyutai", frames)[0])
    assert np.array_equal(sound, expected("kyutai", frames)[1])


def test_models_are_closed_while_they_read_ahead(deep_path, plan: WindowPlan, frames):
    for i in range(10):
        model = CodecModel.open(deep_path, ram_budget_bytes=plan.minimum_bytes + i * plan.slot_bytes)
        model.encoder(8).encode(frames[0])
        del model


def test_a_fork_is_refused_and_ends(deep_path, plan: WindowPlan, frames):
    model = CodecModel.open(deep_path, ram_budget_bytes=plan.minimum_bytes)
    session = model.encoder(8)
    with warnings.catch_warnings():
        # Newer Pythons warn of what is tried here: a fork of a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            session.encode(frames[0])
        except UnavailableError:
            del session, model
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.encode(frames[0]).shape == (8,)
