"""Opens files that a test has spoiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codec_core import _ext
from codec_core.errors import CodecError, ModelContractError
from tests.lm_files import write_lm

from .spoiled_file import File


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[File], _ext.LanguageModel]:
    def open_file(file: File) -> _ext.LanguageModel:
        return _ext.LanguageModel.open(str(write_lm(tmp_path / "model.gguf", file.arrays, file.metadata)))

    return open_file


@pytest.fixture
def refused(opened: Callable[[File], _ext.LanguageModel]) -> Callable[[File], CodecError]:
    def refuse(file: File, cls: type[CodecError] = ModelContractError) -> CodecError:
        with pytest.raises(CodecError) as caught:
            opened(file)
        assert type(caught.value) is cls, caught.value
        return caught.value

    return refuse
