"""The catalogue of published weights that ``mimi pull`` knows: a small TOML file in the package.

``MIMI_CATALOGUE`` names another file of the same form, to be used instead: a mirror's, or an organisation's own models.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.errors import SettingError

_PACKAGED: Final = Path(__file__).parent / "catalogue.toml"
_FORMS: Final = {
    "description": r".{1,200}",
    "repository": r"[\w.-]+/[\w.-]+",
    "revision": r"[\w.-]+",
    "file": r"[\w.-]+\.safetensors",
    "sha256": r"[0-9a-f]{64}",
    "licence": r".{1,80}",
}
"""What each text of an entry must look like, whole."""
_NAME: Final = r"[a-z0-9][a-z0-9-]{0,62}"


@dataclass(frozen=True)
class CatalogueEntry:
    """One model that can be fetched."""

    name: str
    description: str
    repository: str
    """``owner/name`` on the hub."""
    revision: str
    file: str
    """The weights, a safetensors file in the root of the repository."""
    also: tuple[str, ...]
    """Other files the conversion needs beside it. The revision pins them, the hash does not."""
    sha256: str
    sha256_verified: bool
    """Whether the authors of the catalogue have hashed the file themselves."""
    licence: str


def catalogue_path() -> Path:
    """Return the catalogue in force: the one ``MIMI_CATALOGUE`` names, else the packaged one."""
    return Path(os.environ.get("MIMI_CATALOGUE") or _PACKAGED)


def read_catalogue() -> dict[str, CatalogueEntry]:
    """Return the entries by name, in the order of the file.

    Raises:
        SettingError: there is no such file, or it is not a catalogue; names the field.

    """
    path = catalogue_path()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise SettingError(f"catalogue {path}", str(cause), "a TOML file, as MIMI_CATALOGUE names it") from cause
    return {name: _entry(f"catalogue {path}: {name}", name, table) for name, table in tables.items()}


def _entry(subject: str, name: str, table: Any) -> CatalogueEntry:
    if not re.fullmatch(_NAME, name) or not isinstance(table, dict):
        raise SettingError(subject, "", "a table whose name is of a-z, 0-9 and -")
    also = table.get("also", [])
    if not isinstance(also, list) or not all(isinstance(file, str) and re.fullmatch(r"[\w-][\w.-]*", file) for file in also):
        raise SettingError(f"{subject}: also", repr(also)[:80], "a list of file names")
    verified = table.get("sha256_verified")
    if not isinstance(verified, bool):
        raise SettingError(f"{subject}: sha256_verified", repr(verified)[:80], "true or false")
    unknown = table.keys() - _FORMS.keys() - {"also", "sha256_verified"}
    if unknown:
        raise SettingError(f"{subject}: {min(unknown)}", "a key that is not known", ", ".join(_FORMS))
    texts = {key: _text(subject, table, key) for key in _FORMS}
    return CatalogueEntry(name=name, also=tuple(also), sha256_verified=verified, **texts)


def _text(subject: str, table: dict[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not re.fullmatch(_FORMS[key], value):
        raise SettingError(f"{subject}: {key}", repr(value)[:80], f"a text like {_FORMS[key]}")
    return value
