"""One OpenTelemetry span for each session, where it is installed (the extra ``otel``) and asked for (``MIMI_TRACING=otel``).

Never one for a frame: spans of 80 ms of work would cost more than they tell. The ``OTEL_*`` variables say where spans go.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from codec_core.errors import CodecError, SettingError
from server.admission import Demand

_provider: Any = None


class SessionSpan:
    """A span, or nothing."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def set_demand(self, demand: Demand) -> None:
        """Say which steps the session asked for, and of how many levels."""
        if self._span is not None and demand:
            self._span.set_attribute("mimi.steps", [step for step, _ in demand])
            self._span.set_attribute("mimi.levels", demand[0][1])

    def set_error(self, error: BaseException) -> None:
        """Say how the session failed: the code of a refusal, the class of anything else."""
        if self._span is not None:
            self._span.set_attribute("mimi.error", error.code if isinstance(error, CodecError) else type(error).__name__)


def start_tracing(version: str) -> None:
    """Set up the exporter that the ``OTEL_*`` variables describe.

    Raises:
        SettingError: OpenTelemetry is not installed.

    """
    global _provider  # noqa: PLW0603 - one process has one exporter
    try:
        _provider = importlib.import_module("server.otel").make_provider(version)
    except ImportError as cause:
        expected = "OpenTelemetry: pip install 'mimi-server[otel]'"
        raise SettingError("MIMI_TRACING", found=f"otel, without {cause.name}", expected=expected) from cause


def stop_tracing() -> None:
    """Send what is left."""
    global _provider  # noqa: PLW0603
    if _provider is not None:
        _provider.shutdown()
        _provider = None


@contextlib.contextmanager
def session_span(kind: str, session_id: str) -> Iterator[SessionSpan]:
    """Trace a session for as long as the context lasts."""
    if _provider is None:
        yield SessionSpan()
        return
    tracer = _provider.get_tracer(__name__)
    with tracer.start_as_current_span(kind, attributes={"mimi.session": session_id}, record_exception=False) as span:
        traced = SessionSpan(span)
        try:
            yield traced
        except BaseException as error:
            traced.set_error(error)
            raise
