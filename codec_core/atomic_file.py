"""Output files that appear whole or not at all.

A file is written under a temporary name beside its destination, forced to disk, and only then renamed. Whatever goes wrong
before, Ctrl-C included, the temporary file is removed and the destination is as it was.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from codec_core.errors import CodecError, OutputExistsError


@contextlib.contextmanager
def atomic_output(destination: str | os.PathLike[str], *, replace: bool, error: type[CodecError]) -> Iterator[Path]:
    """Yield a fresh, empty file to write; on a clean exit it becomes ``destination``.

    Args:
        destination: where the file shall be. Its directory must exist.
        replace: whether an existing ``destination`` may be replaced.
        error: class of the error where the file system refuses: no such directory, no permission, no room; or where
            ``destination`` is a directory, a device or a pipe, which are never replaced.

    Raises:
        OutputExistsError: ``destination`` exists and ``replace`` is false. Checked at once, and at the end without a race.

    """
    final = Path(destination)
    if not replace and os.path.lexists(final):
        raise _exists(final)
    _require_replaceable(final, error)
    stem = os.fsencode(final.name)[:128].decode(errors="ignore")
    temporary = final.with_name(f".{stem}.{secrets.token_hex(6)}.partial")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as cause:
        raise error(str(final), f"{cause.strerror}", "a path in a directory that can be written") from cause
    try:
        yield temporary
        _sync(temporary)
        _publish(temporary, final, replace=replace)
    except OSError as cause:
        raise error(str(final), f"{cause.strerror}", "a file that can be written") from cause
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def require_other_file(source: str | os.PathLike[str], destination: str | os.PathLike[str], *, error: type[CodecError]) -> None:
    """Refuse to write over what is read, under whatever name: the same path, a link to it, or another hard link.

    Args:
        source: what is read.
        destination: what is to be written. Neither need exist.
        error: class of the error.

    Raises:
        CodecError: of class ``error``; both names are one file.

    """
    is_same = False
    with contextlib.suppress(OSError, ValueError):
        is_same = Path(source).samefile(destination)
    if is_same:
        raise error(os.fspath(destination), "the source itself", "another file to write")


def _require_replaceable(final: Path, error: type[CodecError]) -> None:
    """Refuse a directory, and a device or pipe, which a rename would put a file in the place of."""
    try:
        is_file = stat.S_ISREG(final.stat().st_mode)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else str(cause)
        raise error(str(final), f"{reason}", "a path in a directory that can be written") from cause
    if not is_file:
        raise error(str(final), "no regular file", "a file, or a name that is free")


def _exists(final: Path) -> OutputExistsError:
    return OutputExistsError(str(final), "a file of that name", "a name that is free")


def _publish(temporary: Path, final: Path, *, replace: bool) -> None:
    try:
        if replace:
            temporary.replace(final)
        else:
            _rename_to_new(temporary, final)
    except FileExistsError as cause:
        raise _exists(final) from cause
    _sync(final.parent)


def _rename_to_new(temporary: Path, final: Path) -> None:
    """Rename where nothing is in the way. A hard link fails if the name is taken, which a rename does not."""
    try:
        os.link(temporary, final)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the check and the rename are then two steps.
        if os.path.lexists(final):
            raise FileExistsError(final) from None
        temporary.rename(final)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
