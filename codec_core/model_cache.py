"""Models converted on first use, kept for the next one.

A checkpoint given where a model file is expected is converted once, into the cache, and opened from there. An entry is named
after the SHA-256 of its source and the version of the converter, so a checkpoint that changed is converted again, and so is
every one after an upgrade. Entries appear whole or not at all, and stay: of processes that convert the same source at the same
time the first to finish wins, so that none has the file replaced under its hands while it reads.

The cache is in ``MIMI_CACHE_DIR``, else ``XDG_CACHE_HOME/mimi``, else ``~/.cache/mimi``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from codec_core.atomic_file import atomic_output
from codec_core.errors import ModelAccessError, OutputExistsError

Progress = Callable[[int, int], None]
"""``progress(done, total)``, in bytes."""
Watcher = Callable[[str], AbstractContextManager[Progress]]
"""Told what is being done, gives a context in which progress is reported."""

_FORMAT: Final = 1
"""Raised when the same release of the converter comes to write other bytes."""
_STALE_AFTER_S: Final = 24 * 3600
_PARTIAL_SUFFIX: Final = ".partial"
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` told of conversions while the context lasts; without one they are silent."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def cache_directory() -> Path:
    """Return where the cache is, whether it exists or not."""
    chosen = os.environ.get("MIMI_CACHE_DIR")
    if chosen:
        return Path(chosen)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(shared) if Path(shared).is_absolute() else _home() / ".cache") / "mimi"


def _home() -> Path:
    """Return the home directory; of a user who has none, what containers take for it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def writable_folder(name: str) -> Path:
    """Return a folder of the cache, made if it was not there.

    Raises:
        ModelAccessError: it cannot be made.

    """
    folder = cache_directory() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as cause:
        raise _refusal(folder, cause.strerror or str(cause)) from cause
    return folder


def pulled_path(name: str) -> Path:
    """Return where the model that ``mimi pull`` fetched under a name is, whether it exists or not."""
    return cache_directory() / "pulled" / f"{name}.gguf"


def resolve(path: Path) -> Path:
    """Return the model file to open for ``path``: itself, or what it converts to if it is a checkpoint.

    Args:
        path: a model file; or a checkpoint in safetensors; or a directory of the transformers library. What is neither of
            the last two is returned as it is, readable or not: the engine says best what is wrong with it.

    Raises:
        ModelAccessError: the source cannot be read, or the cache not be written.
        CheckpointError, ModelContractError: the checkpoint is damaged, or is no Mimi model.

    """
    if not _is_checkpoint(path):
        return path
    # Loading a model file needs none of this.
    from codec_core.convert.converter import weights_file  # noqa: PLC0415

    source = weights_file(path)
    sha256 = _sha256(source)
    folder, stem = source.absolute().parent.name[:48], source.stem[:80]
    config = source.with_name("config.json")
    config_sha256 = _sha256(config) if config.is_file() else ""
    entry = cache_directory() / "converted" / f"{folder}-{stem}-{_key(sha256, config_sha256)}.gguf"
    if not entry.is_file():
        writable_folder(entry.parent.name)
        try:
            convert_into(source, entry, sha256, config_sha256, replace=False)
        except OutputExistsError:
            if not entry.is_file():
                raise
    return entry


def convert_into(
    source: Path,
    entry: Path,
    sha256: str,
    config_sha256: str | None = None,
    *,
    name: str | None = None,
    replace: bool = True,
) -> None:
    """Convert a checkpoint to an entry of the cache, whose folder exists.

    Args:
        source: the weights.
        entry: the file to write; it appears only if what was converted is what is named below.
        sha256: the SHA-256 the weights have.
        config_sha256: that of the config beside them, empty where there is none; None: whatever is there is taken.
        name: ``general.name`` of the entry; None: as the source says.
        replace: whether an entry that is there, or comes to be there meanwhile, is replaced.

    Raises:
        ModelAccessError: weights or config are others by now.
        OutputExistsError: there is an entry, and it is not to be replaced.
        CodecError: as :func:`codec_core.convert.convert_model`; an entry that cannot be written names ``MIMI_CACHE_DIR``.

    """
    from codec_core.convert import convert_model  # noqa: PLC0415

    _sweep(entry.parent)
    watcher = _watcher.get() or _unwatched
    written = entry
    try:
        with (
            watcher(f"converting {source}, once, to {entry}") as progress,
            atomic_output(entry, replace=replace, error=ModelAccessError) as written,
        ):
            report = convert_model(source, written, name=name, force=True, progress=progress)
            is_same_config = config_sha256 is None or report.config_sha256 in {None, config_sha256}
            if report.source_sha256 != sha256 or not is_same_config:
                raise ModelAccessError(str(source), "a file that changed while it was read", "a file at rest")
    except ModelAccessError as error:
        if error.subject in {str(entry), str(written)}:
            raise _refusal(entry, error.found) from error
        raise


def _refusal(path: Path, reason: str) -> ModelAccessError:
    expected = "a cache that can be written; MIMI_CACHE_DIR names another place, mimi convert needs none"
    return ModelAccessError(str(path), reason, expected)


@contextlib.contextmanager
def _unwatched(_: str) -> Iterator[Progress]:
    yield lambda _done, _total: None


def _is_checkpoint(path: Path) -> bool:
    """Tell a checkpoint by what it holds. What cannot be looked into is left to whoever opens it."""
    with contextlib.suppress(OSError, ValueError):
        if path.is_dir():
            return any(path.glob("*.safetensors*")) or (path / "config.json").exists()
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(9)
            return head[8:9] == b"{" and not head.startswith(b"GGUF")
    return False


def _key(sha256: str, config_sha256: str) -> str:
    """Hash all that decides what a conversion gives: the weights, the config that may lie beside them, and the converter."""
    from codec_core import __version__  # noqa: PLC0415 - the package imports this module

    parts = (__version__, str(_FORMAT), sha256, config_sha256)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as cause:
        raise ModelAccessError(str(path), cause.strerror or str(cause), "a file that can be read") from cause


def _sweep(folder: Path) -> None:
    """Remove what conversions that were killed have left. A younger file may be one that is being written."""
    for path in folder.glob(f".*{_PARTIAL_SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_AFTER_S:
                path.unlink()
