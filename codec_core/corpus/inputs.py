"""What there is to encode: files, folders, globs, manifests and WebDataset tars become one ordered list of sources."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core.errors import SettingError

AUDIO_SUFFIXES: Final = (
    ".aif",
    ".aifc",
    ".aiff",
    ".au",
    ".caf",
    ".flac",
    ".mp3",
    ".oga",
    ".ogg",
    ".opus",
    ".rf64",
    ".snd",
    ".sph",
    ".w64",
    ".wav",
)
"""What counts as audio in a folder or a tar; a file that is named outright may have any suffix."""
MANIFEST_SUFFIXES: Final = (".csv", ".jsonl")
TAR_SUFFIX: Final = ".tar"
_PACKED_TAR_SUFFIXES: Final = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_GLOB_LETTERS: Final = "*?["


@dataclass(frozen=True)
class Source:
    """One thing to encode: a file or a member of a tar, all channels mixed or one of them."""

    path: str
    """The audio file, or the tar."""
    member: str | None = None
    """Name within the tar."""
    offset_bytes: int = 0
    """Where the member's bytes begin in the tar."""
    size_bytes: int = 0
    """How many they are. Both are 0 for a file."""
    channel: int | None = None
    """The only channel to take, from 0; None: the mean of all."""
    fields: str | None = None
    """What else a manifest says about it, a JSON object."""

    @property
    def identity(self) -> tuple[str, str | None, int | None]:
        """What tells it from every other source of a corpus."""
        return self.path, self.member, self.channel

    def __str__(self) -> str:
        text = self.path if self.member is None else f"{self.path}:{self.member}"
        return text if self.channel is None else f"{text} channel {self.channel}"


Expand = Callable[[Path], Iterator[Source]]
"""Lists what a manifest or a tar holds."""


def list_sources(
    inputs: Sequence[str], expand_manifest: Expand, expand_tar: Expand, leave_out: Path | None = None
) -> list[Source]:
    """List the sources of all inputs, each once, in order: as given, and sorted by name within a folder or glob.

    Args:
        inputs: audio files; folders (searched in depth for :data:`AUDIO_SUFFIXES` and ``.tar``); globs (``**`` in depth);
            manifests (``.csv``, ``.jsonl``); WebDataset tars.
        expand_manifest: lists a manifest's sources.
        expand_tar: lists a tar's sources.
        leave_out: a folder, that of the output, whose files are never sources.

    Raises:
        SettingError: an input that names nothing, or a compressed tar.
        AudioFileError, CodesFileError: a manifest or tar that cannot be read.

    """
    expansions = {TAR_SUFFIX: expand_tar} | dict.fromkeys(MANIFEST_SUFFIXES, expand_manifest)
    found: dict[tuple[str, str | None, int | None], Source] = {}
    for text in inputs:
        before = len(found)
        matched = False
        for path in _paths(text):
            if leave_out is not None and path.resolve().is_relative_to(leave_out.resolve()):
                continue
            matched = True
            for source in expansions.get(path.suffix.lower(), _one_file)(path):
                found.setdefault(source.identity, source)
        if not matched and len(found) == before:
            raise SettingError("input", repr(text), "audio files, or a folder, glob, manifest or tar with some")
    return list(found.values())


def fingerprint(sources: Sequence[Source]) -> str:
    """Return the SHA-256 of what a list of sources names, in order."""
    digest = hashlib.sha256()
    for source in sources:
        parts = (source.path, source.member or "", "" if source.channel is None else str(source.channel), source.fields or "")
        digest.update(b"\0".join(os.fsencode(part) for part in parts) + b"\n")
    return digest.hexdigest()


def _one_file(path: Path) -> Iterator[Source]:
    yield Source(os.fspath(path))


def _paths(text: str) -> Iterator[Path]:
    """Yield the files an input stands for. A name that is neither a file nor a glob is one too: it will be reported missing."""
    path = Path(text)
    if not any(letter in text for letter in _GLOB_LETTERS) or os.path.lexists(path):
        yield from _in_depth(path)
        return
    for name in sorted(glob.glob(text, recursive=True)):  # noqa: PTH207 - pathlib takes no absolute patterns
        if Path(name).is_dir() and text.endswith("**"):
            continue
        yield from _in_depth(Path(name))


def _in_depth(path: Path) -> Iterator[Path]:
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if Path(name).suffix.lower() in (*AUDIO_SUFFIXES, TAR_SUFFIX) and not name.startswith("."):
                    yield Path(folder, name)
        return
    if path.name.lower().endswith(_PACKED_TAR_SUFFIXES):
        raise SettingError(f"input {path}", "a compressed tar, which cannot be read at any place", "the tar, uncompressed")
    yield path
