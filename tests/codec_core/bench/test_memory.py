from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core.bench.memory import measure_memory
from codec_core.errors import UnavailableError


def test_memory_of_streams_and_of_loading(tiny_model: CodecModel):
    memory, loading = measure_memory(tiny_model, 4, 3)
    info = tiny_model.info
    assert memory.sessions == 3
    assert memory.weights_bytes == info.weights_bytes
    assert memory.session_bytes == info.encoder_state_bytes + info.decoder_state_bytes
    assert memory.in_use_bytes == memory.weights_bytes + 3 * memory.session_bytes + memory.overhead_bytes
    assert memory.bound_bytes == info.weights_bytes + 3 * 20_000_000 + 100_000_000
    assert memory.within_bound
    assert not replace(memory, in_use_bytes=memory.bound_bytes + 1).within_bound
    assert 1_000_000 < memory.before_bytes <= memory.in_use_bytes
    assert loading.file_bytes == Path(info.path).stat().st_size
    assert loading.warm_seconds > 0
    assert loading.cold_seconds > 0
    assert loading.peak_bytes >= 0


def test_a_process_that_fails_says_why(tiny_model: CodecModel):
    gone = CodecModel(tiny_model._native, replace(tiny_model.info, path="/nowhere/x.gguf"))
    with pytest.raises(UnavailableError, match=r"/nowhere/x\.gguf"):
        measure_memory(gone, 4, 1)
