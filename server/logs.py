"""What is logged, and how: one line an event, as JSON for machines or plain for people, with the session it belongs to.

Everything goes through the standard library's loggers, ours and uvicorn's alike, and is rendered here by structlog. Audio,
codes and keys are never logged; of an address only the path is, since queries may carry a token.
"""

from __future__ import annotations

import logging
import logging.config
import re
from typing import Any, Final, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LogFormat = Literal["console", "json"]

FRAMES_LOGGER: Final = "mimi.server.frames"
"""What the WebSocket layer logs to."""
_QUERY: Final = re.compile(r"\?[^\s\"']*")
_FACTS: Final = "mimi_facts"


def configure_logs(log_format: LogFormat, level: str) -> dict[str, Any]:
    """Return the logging configuration, in the form that :func:`logging.config.dictConfig` and uvicorn take.

    Args:
        log_format: ``json``, an object a line; ``console``, for a terminal.
        level: least level logged, as ``info``.

    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _add_facts,
        _without_query,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: Processor = (
        structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": shared,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
    }
    logger = {"handlers": ["stderr"], "level": level.upper(), "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"mimi": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "mimi", "stream": "ext://sys.stderr"}},
        # At level debug the frames' logger would have headers, keys among them, and the payload of every frame.
        "loggers": {"mimi": logger, "uvicorn": logger, FRAMES_LOGGER: {"level": _at_least_info(level)}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
    }


def bind_to_log(**facts: str) -> None:
    """Add facts to all that the present task logs from now on, and tasks that it makes. A connection or request is one task."""
    structlog.contextvars.bind_contextvars(**facts)


def event(logger: logging.Logger, level: int, message: str, **facts: object) -> None:
    """Log an event with facts of its own, each a field of the JSON object."""
    logger.log(level, message, extra={_FACTS: facts})


def _at_least_info(level: str) -> int:
    return max(logging.getLevelNamesMapping()[level.upper()], logging.INFO)


def _add_facts(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    record = fields.get("_record")
    return {**fields, **getattr(record, _FACTS, {})}


def _without_query(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    """Take queries out of what uvicorn logs."""
    if str(fields.get("logger", "")).startswith("uvicorn"):
        fields["event"] = _QUERY.sub("", str(fields["event"]))
    return fields
