"""What opening a language model and beginning a stream cost: no byte of the file twice, and no memory before it is used."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codec_core.errors import ModelAccessError
from codec_core.language_model import LanguageModel
from codec_core.language_session import GREEDY
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import lm_metadata, write_lm

CONTEXT_STEPS = 40_000
"""Keys and values of 4 KiB a step: 160 MB."""
MIB = 1 << 20


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def bytes_read() -> int:
    """All that this process has read, from the cache or not."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.fixture
def own_path(language_model_path: Callable[..., Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(language_model_path("a"), tmp_path / "own.gguf"))


def test_opening_reads_the_file_once(own_path: Path):
    size, before = own_path.stat().st_size, bytes_read()
    model = LanguageModel.open(own_path)
    # Vectors and the header, too, but no second pass.
    assert size <= bytes_read() - before < 1.5 * size
    before = bytes_read()
    assert model.info.sha256 == model.info.sha256 == hashlib.sha256(own_path.read_bytes()).hexdigest()
    assert bytes_read() - before < 2.5 * size


def test_the_digest_is_that_of_the_file_that_was_opened(own_path: Path):
    expected = hashlib.sha256(own_path.read_bytes()).hexdigest()
    models = [LanguageModel.open(own_path) for _ in range(2)]
    other = own_path.with_name("other.gguf")
    other.write_bytes(b"another model")
    other.replace(own_path)
    assert models[0].info.sha256 == expected
    blob = models[0].session(GREEDY).snapshot()
    own_path.unlink()
    assert models[1].restore(blob).position_steps == 0


def test_a_file_written_to_has_no_digest(own_path: Path):
    model = LanguageModel.open(own_path)
    session = model.session(GREEDY)
    with own_path.open("ab") as file:
        file.write(b"more")
    for ask in (lambda: model.info.sha256, session.snapshot):
        with pytest.raises(ModelAccessError, match=r"own\.gguf: found a change since it was opened"):
            ask()
    assert session.step(range(8)) is None


def test_a_new_stream_has_no_memory_but_what_its_steps_write(tmp_path: Path):
    config = LM_CONFIGS["a"] | {"context": CONTEXT_STEPS}
    model = LanguageModel.open(write_lm(tmp_path / "long.gguf", lm_arrays("a"), lm_metadata(config)))
    assert model.info.state_bytes > 150 * MIB
    model.session(GREEDY).step(range(8))
    before = resident_bytes()
    sessions = [model.session(GREEDY) for _ in range(8)]
    for session in sessions:
        session.step(range(8))
    assert resident_bytes() - before < 16 * MIB
    session = sessions[0]
    for step in range(40):
        session.step(np.arange(8) + step)
    blob = session.snapshot()
    session.reset()
    assert session.snapshot() == model.session(GREEDY).snapshot()
    assert model.restore(blob).snapshot() == blob
    for step in range(41):
        session.step(np.arange(8) + max(step - 1, 0))
    assert session.snapshot() == blob
