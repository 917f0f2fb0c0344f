from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from codec_core import hub
from codec_core.catalogue import CatalogueEntry
from codec_core.errors import ModelAccessError


def test_weights_that_change_after_they_were_checked(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMI_CACHE_DIR", str(tmp_path / "cache"))
    fetched = tmp_path / "tiny.safetensors"
    shutil.copyfile(tiny_checkpoint, fetched)
    entry = CatalogueEntry(
        name="tiny",
        description="a model for tests",
        repository="someone/tiny",
        revision="0" * 40,
        file=fetched.name,
        also=(),
        sha256=hashlib.sha256(fetched.read_bytes()).hexdigest(),
        sha256_verified=True,
        licence="Apache-2.0",
    )
    check = hub._require_sha256

    def check_then_change(entry: CatalogueEntry, path: Path, *, is_new: bool) -> None:
        check(entry, path, is_new=is_new)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)

    monkeypatch.setattr(hub, "_fetch", lambda *_, **__: (fetched, False))
    monkeypatch.setattr(hub, "_require_sha256", check_then_change)
    with pytest.raises(ModelAccessError, match="a file that changed while it was read"):
        hub.pull(entry)
    assert list((tmp_path / "cache" / "pulled").iterdir()) == []
