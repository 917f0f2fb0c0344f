"""How a program that looks for failures says what it found."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any


def tell(result: Mapping[str, Any], *, as_json: bool, unprinted: Collection[str] = ()) -> int:
    """Print a result, all of it as JSON or a line for each name that is not ``unprinted``; return the exit status."""
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        for name, value in result.items():
            if name not in unprinted:
                print(f"{name.replace('_', ' ')}: {value}")
    return 1 if result["failures"] else 0
