"""Fetches a model before its service starts: MODEL_URL into the file that the first argument names, if MODEL_SHA256 fits.

Needs nothing but Python. The file is whole and right, or it is not there.
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

CHUNK_BYTES = 1 << 20
TIMEOUT_S = 30


def fetch(url: str, sha256: str, path: Path) -> None:
    """Download, check, and only then give the file its name.

    Raises:
        ValueError: other bytes than were asked for, or an address that is not of the web.
        OSError: they do not come.

    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"MODEL_URL: found {url}, expected http:// or https://")
    part, digest = path.with_suffix(".part"), hashlib.sha256()
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as source, part.open("wb") as target:  # noqa: S310
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            target.write(chunk)
    if digest.hexdigest() != sha256.lower():
        part.unlink()
        raise ValueError(f"{url}: found SHA-256 {digest.hexdigest()}, expected {sha256}")
    part.replace(path)


def main() -> int:
    """Fetch; return the exit status."""
    try:
        fetch(os.environ["MODEL_URL"], os.environ["MODEL_SHA256"], Path(sys.argv[1]))
    except (OSError, ValueError, urllib.error.URLError) as error:
        print(f"fetch_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
