"""How a client asks for its stream back: message ``resume`` or query parameters. Sans-IO, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from server.errors import ProtocolError
from server.wire_settings import quoted

TOKEN_MAX_CHARS = 1024
RESUME_FIELDS = (("token", "last_sequence"), ("epoch",))
"""Required and optional fields of the message ``resume``."""
RESUME_PARAMETERS = ("resume_token", "last_sequence", "epoch")
"""The same as query parameters; the first of them tells that the query is no list of settings."""


@dataclass(frozen=True)
class Resume:
    """The client wants its stream back and holds every frame up to and including ``last_sequence`` of ``epoch``.

    ``last_sequence`` is -1 where it holds none; ``epoch`` is ``None`` where it means the stream's present one.
    """

    token: str
    last_sequence: int
    epoch: int | None = None


def parse_resume(fields: Mapping[str, object]) -> Resume:
    """Read the fields of a message ``resume``.

    Raises:
        ProtocolError: naming the field.

    """
    token = fields["token"]
    if not isinstance(token, str) or not 0 < len(token) <= TOKEN_MAX_CHARS:
        raise ProtocolError("resume.token", found=quoted(token), expected="the text of a ready or goaway message")
    last_sequence = sequence_number("resume.last_sequence", fields["last_sequence"], least=-1)
    epoch = sequence_number("resume.epoch", fields["epoch"]) if "epoch" in fields else None
    return Resume(token, last_sequence, epoch)


def parse_resume_query(fields: Mapping[str, object]) -> Resume:
    """Read the query parameters of a resume.

    Raises:
        ProtocolError: naming the parameter.

    """
    for name in fields:
        if name not in RESUME_PARAMETERS:
            raise ProtocolError(quoted(name), found="a parameter beside resume_token", expected=" | ".join(RESUME_PARAMETERS))
    numbers = {name: _digits(fields[name]) for name in RESUME_PARAMETERS[1:] if name in fields}
    return parse_resume({"token": fields[RESUME_PARAMETERS[0]], "last_sequence": -1, **numbers})


def sequence_number(subject: str, value: object, least: int = 0) -> int:
    """Check a number that counts frames or epochs.

    Raises:
        ProtocolError: no whole number of 32 bits, or less than ``least``.

    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 32:
        raise ProtocolError(subject, found=quoted(value), expected="a whole number of 32 bits")
    return value


def _digits(text: object) -> object:
    digits = text.removeprefix("-") if isinstance(text, str) else ""
    return int(str(text)) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else text
