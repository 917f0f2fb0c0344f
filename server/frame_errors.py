"""Where in a client's stream or clip the engine refused: it knows its batch, the client only its own frames."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from codec_core.errors import InputError

_LANE = re.compile(r" of lane \d+")


@contextlib.contextmanager
def naming_frame(index: int) -> Iterator[None]:
    """Name the frame in what the engine refuses, instead of the frame's place in a batch.

    Args:
        index: which frame of the stream since its last reset, or of the clip; counts from 0.

    Raises:
        InputError: the same class, found and expected; the subject reads ``frame INDEX: ...``.

    """
    try:
        yield
    except InputError as error:
        subject = f"frame {index}: {_LANE.sub('', error.subject)}"
        raise type(error)(subject, error.found, error.expected) from error
