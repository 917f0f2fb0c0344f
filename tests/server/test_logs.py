from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.config

import pytest
import structlog

from server.logs import bind_to_log, configure_logs, event


@pytest.fixture
def lines(request):
    """Log as configured, into a list that is returned by calling it; of what other tests have bound nothing is left."""
    structlog.contextvars.clear_contextvars()
    stream = io.StringIO()
    config = configure_logs(getattr(request, "param", "json"), "info")
    config["handlers"]["stderr"] = {"class": "logging.StreamHandler", "formatter": "mimi", "stream": stream}
    config["root"] = {"handlers": [], "level": "WARNING"}
    logging.config.dictConfig(config)
    yield lambda: stream.getvalue().splitlines()
    for name in ("mimi", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def test_each_line_is_an_object_with_its_facts(lines):
    event(logging.getLogger("mimi.server.http"), logging.INFO, "request", status=200, path="/v1/info")
    logging.getLogger("mimi.server").debug("not at this level")
    (line,) = lines()
    found = json.loads(line)
    assert found.pop("timestamp").endswith("Z")
    expected = {"event": "request", "level": "info", "logger": "mimi.server.http", "status": 200, "path": "/v1/info"}
    assert found == expected


async def test_the_session_is_named_in_tasks_too_and_nowhere_else(lines):
    log = logging.getLogger("mimi.server.stream")

    async def work(name: str) -> None:
        bind_to_log(session=name)
        await asyncio.sleep(0)
        await asyncio.create_task(say())

    async def say() -> None:
        log.info("opened: %s, %d levels", "encode", 8)

    await asyncio.gather(asyncio.create_task(work("a")), asyncio.create_task(work("b")))
    log.info("nobody's")
    found = [json.loads(line) for line in lines()]
    assert [line.get("session") for line in found] == ["a", "b", None]
    assert found[0]["event"] == "opened: encode, 8 levels"


def test_queries_of_uvicorns_lines_are_left_out(lines):
    logging.getLogger("uvicorn.error").info('%s - "WebSocket %s" [accepted]', "127.0.0.1", "/v1/stream?token=secret&levels=8")
    logging.getLogger("mimi.server").info("really?")
    first, second = (json.loads(line)["event"] for line in lines())
    assert first == '127.0.0.1 - "WebSocket /v1/stream" [accepted]'
    assert second == "really?"


def test_an_exception_is_one_line(lines):
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger("mimi.server").exception("a stream failed")
    (line,) = lines()
    found = json.loads(line)
    assert "Traceback" in found["exception"]
    assert "KeyError" in found["exception"]


@pytest.mark.parametrize("lines", ["console"], indirect=True)
async def test_plain_lines_for_people(lines):
    bind_to_log(session="abc")
    logging.getLogger("mimi.server").warning("late")
    (line,) = lines()
    assert "late" in line
    assert "session=abc" in line
    assert "\x1b" not in line
