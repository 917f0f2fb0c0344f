"""Fetches published weights from the Hugging Face hub and converts them into the cache.

The files themselves are kept where the hub's own tools keep them (``HF_HOME``), so weights that are there already are not
fetched again, and other tools find them. ``HF_ENDPOINT`` names a mirror, ``HF_HUB_OFFLINE=1`` keeps off the network. Needs the
package ``huggingface_hub``, which the extra ``hub`` of this distribution installs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from codec_core import __version__, _ext
from codec_core.catalogue import CatalogueEntry
from codec_core.errors import CheckpointError, CodecError, ModelAccessError, UnavailableError
from codec_core.model_cache import convert_into, pulled_path, writable_folder


def pull(entry: CatalogueEntry, *, offline: bool = False) -> Path:
    """Fetch, check and convert a model; does only what has not been done before.

    Args:
        entry: what to fetch.
        offline: take nothing from the network, as with ``HF_HUB_OFFLINE=1``.

    Returns:
        The model file; from now on ``CodecModel.open(entry.name)`` opens it.

    Raises:
        UnavailableError: no ``huggingface_hub``; or a file that cannot be had, from the hub or, offline, from the cache.
        CheckpointError: a file with another SHA-256 than the catalogue's. If it was fetched just now it is removed.
        ModelAccessError: a cache that cannot be written, or weights that changed after they were checked.

    """
    destination = pulled_path(entry.name)
    if _is_up_to_date(destination, entry):
        return destination
    writable_folder(destination.parent.name)
    source, is_new = _fetch(entry, entry.file, offline=offline)
    _require_sha256(entry, source, is_new=is_new)
    for other in entry.also:
        _fetch(entry, other, offline=offline)
    convert_into(source, destination, entry.sha256, name=entry.name)
    return destination


def _is_up_to_date(path: Path, entry: CatalogueEntry) -> bool:
    """Tell whether the model was pulled before, from the same weights, and can be opened."""
    with contextlib.suppress(CodecError):
        metadata = _ext.inspect_model(os.fspath(path))["metadata"]
        found = (metadata.get("moshi.mimi.source_sha256"), metadata.get("moshi.mimi.converter"))
        return found == (entry.sha256, f"mimi-server {__version__}")
    return False


def _fetch(entry: CatalogueEntry, file: str, *, offline: bool) -> tuple[Path, bool]:
    """Return a file of the entry's repository, and whether it was not there before."""
    hub = _hub()
    subject = f"{entry.repository}: {file}"
    place: dict[str, Any] = {"repo_id": entry.repository, "filename": file, "revision": entry.revision}
    was_there = isinstance(hub.try_to_load_from_cache(**place), str)
    if not sys.stderr.isatty():
        hub.utils.disable_progress_bars()
    try:
        return Path(hub.hf_hub_download(**place, local_files_only=offline)), not was_there
    except hub.errors.LocalEntryNotFoundError as cause:
        keeps_off = offline or hub.constants.HF_HUB_OFFLINE
        found = "not in the hub's cache" if keeps_off else f"nothing at {hub.constants.ENDPOINT}: {_reason(cause)}"
        raise UnavailableError(subject, found, "a file fetched before, or a way to the hub") from cause
    except hub.errors.HfHubHTTPError as cause:
        raise UnavailableError(subject, _reason(cause), f"a file at {hub.constants.ENDPOINT}") from cause
    except OSError as cause:
        if cause.filename is not None or cause.errno is not None:
            raise ModelAccessError(subject, f"{cause.strerror}", f"room in {hub.constants.HF_HUB_CACHE}") from cause
        raise UnavailableError(subject, _reason(cause), "a complete file from the hub") from cause
    except Exception as cause:
        raise UnavailableError(subject, f"{type(cause).__name__}: {_reason(cause)}", "a complete file from the hub") from cause


def _hub() -> Any:
    try:
        import huggingface_hub  # noqa: PLC0415 - an extra, which nothing else needs
        import huggingface_hub.constants  # noqa: PLC0415
        import huggingface_hub.errors  # noqa: PLC0415
        import huggingface_hub.utils  # noqa: PLC0415
    except ImportError as cause:
        expected = "the package that fetches weights: pip install huggingface_hub"
        raise UnavailableError("huggingface_hub", "not installed", expected) from cause
    return huggingface_hub


def _reason(cause: BaseException) -> str:
    """Return the first line of what the deepest cause says."""
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0][:200]


def _require_sha256(entry: CatalogueEntry, path: Path, *, is_new: bool) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == entry.sha256:
        return
    if is_new:
        _remove(path)
    doubt = "" if entry.sha256_verified else " (as the catalogue states it, unverified)"
    kept = "" if is_new else f" in {path}"
    raise CheckpointError(f"{entry.repository}: {entry.file}: sha256", found + kept, entry.sha256 + doubt)


def _remove(path: Path) -> None:
    """Remove a file of the hub's cache: the links to it, and the file itself."""
    while path.is_symlink():
        target = path.parent / path.readlink()
        path.unlink()
        path = target
    path.unlink(missing_ok=True)
