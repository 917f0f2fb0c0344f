"""Takes the body of a request: within its size, within its time, off the event loop where it goes to disk."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from fastapi import Request
from starlette.types import Receive

from server.errors import BodyTimeoutError, BodyTooLargeError, UnsupportedMediaError
from server.service import ClientGoneError, Service
from server.spool import Spool
from server.wire_settings import quoted

DISCARD_S: Final = 2.0
"""How long the rest of a refused body is read and dropped, so that the client gets to see the refusal."""


async def receive_body(request: Request, service: Service, limit_bytes: int) -> Spool:
    """Receive a whole body; the caller closes it. No place is taken for it: a slow upload holds up nobody.

    Raises:
        BodyTooLargeError: it is larger, or says that it will be.
        BodyTimeoutError: it did not come in time.
        UnsupportedMediaError: it is compressed.
        CapacityError: bodies and answers hold all the room there is for them.
        ClientGoneError: the client hung up.

    """
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() != "identity":
        await _discard(request)
        raise UnsupportedMediaError("Content-Encoding", found=quoted(coding), expected="identity")
    body = Spool(service.spool_budget, service.settings.spool_memory_bytes)
    timeout_ms = service.settings.body_timeout_ms
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await _fill(body, request, limit_bytes)
    except TimeoutError as cause:
        received = body.size_bytes
        body.close()
        expected = f"all of it within {timeout_ms} ms"
        raise BodyTimeoutError("body", found=f"{received} bytes", expected=expected) from cause
    except BaseException:
        body.close()
        raise
    return body


async def hung_up(receive: Receive) -> None:
    """Return once the client has hung up; what it sends until then is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _fill(body: Spool, request: Request, limit_bytes: int) -> None:
    declared = request.headers.get("content-length", "")
    more = not (declared.isascii() and declared.isdigit() and int(declared[:20]) > limit_bytes)
    is_too_large = not more
    while more and not is_too_large:
        chunk, more = await _chunk(request.receive)
        is_too_large = body.size_bytes + len(chunk) > limit_bytes
        if not is_too_large:
            await body.append(chunk)
    if is_too_large:
        await _discard(request)
        raise BodyTooLargeError("body", found="a larger one", expected=f"at most {limit_bytes} bytes")


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    """Receive the next piece of a body, and whether there is more to come."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message.get("body", b""), message.get("more_body", False)


async def _discard(request: Request) -> None:
    """Read on and drop it; a client that waits for leave to send (``Expect``) does not get it."""
    if "expect" in request.headers:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while (await _chunk(request.receive))[1]:
                pass
