"""An answer that is sent while it is made: one task makes it into a spool, the response sends what is there.

Making never waits for the client, so the place it needs is free as soon as the codec is done, however slowly the client reads.
What is refused before the first byte is answered with its status. Afterwards the answer is cut off: it ends before the length
that its header states, or without its last chunk, and the client sees that it is not whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from codec_core.codes_document import CodesDocument
from codec_core.errors import CodecError
from server.errors import TooSlowError
from server.request_body import hung_up
from server.service import ClientGoneError
from server.spool import Spool, in_thread

SEND_BYTES: Final = 65_536

log = logging.getLogger("mimi.server.rest")


class Answer:
    """What is made so far, and what is known of the whole.

    Args:
        spool: where it is put; the answer closes it.
        body: what it is made from; closed with the answer, if the maker has not done so before.

    """

    def __init__(self, spool: Spool, body: Spool) -> None:
        self.spool = spool
        self.headers: dict[str, str] = {}
        self._body = body
        self._task: asyncio.Task[None] | None = None
        self._grown = asyncio.Event()

    def describe(self, levels: int, frames: int, samples: int | None) -> None:
        """Put the clip's figures into the header."""
        figures = {"x-mimi-levels": levels, "x-mimi-frames": frames, "x-mimi-samples": samples}
        self.headers.update({name: str(figure) for name, figure in figures.items() if figure is not None})

    def describe_document(self, document: CodesDocument) -> None:
        """Put the figures of codes into the header."""
        self.describe(document.levels, document.frames, document.samples)

    def expect(self, size_bytes: int) -> None:
        """State the length of the whole in the header; else it is sent in chunks, unless it has ended before it is sent."""
        self.headers["content-length"] = str(size_bytes)

    async def write(self, data: bytes) -> None:
        """Add bytes; the first ones seal the header.

        Raises:
            CapacityError: there is no room for them.

        """
        await self.spool.append(data)
        self._grown.set()

    def start(self, making: Coroutine[Any, Any, None]) -> None:
        """Let it be made."""
        self._task = asyncio.create_task(self._run(making))

    async def begun(self) -> None:
        """Wait for the first bytes, or for the end if there are none.

        Raises:
            CodecError: why there will be none.

        """
        while not (self.spool.size_bytes or self._ended):
            await self._growth()
        if self._ended:
            self._raise_failure()
            self.expect(self.spool.size_bytes)

    async def next_bytes(self, offset_bytes: int) -> bytes:
        """Wait for bytes from here on; empty at the end.

        Raises:
            CodecError: why there will be no more.

        """
        while self.spool.size_bytes <= offset_bytes:
            if self._ended:
                self._raise_failure()
                return b""
            await self._growth()
        return await in_thread(self.spool.read, offset_bytes, SEND_BYTES)

    async def close(self) -> None:
        """Give up what is not made yet, and drop the rest."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._body.close()
        self.spool.close()

    @property
    def _ended(self) -> bool:
        return self._task is None or self._task.done()

    async def _run(self, making: Coroutine[Any, Any, None]) -> None:
        try:
            await making
        finally:
            asyncio.get_running_loop().call_soon(self._grown.set)

    async def _growth(self) -> None:
        self._grown.clear()
        await self._grown.wait()

    def _raise_failure(self) -> None:
        if self._task is not None:
            self._task.result()


class AnswerResponse(Response):
    """Sends an answer that has begun, and closes it.

    Args:
        answer: the answer.
        media_type: what it is.
        send_timeout_ms: time for the client to take each piece.

    """

    def __init__(self, answer: Answer, media_type: str, send_timeout_ms: int) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.init_headers(answer.headers)
        self._answer = answer
        self._send_timeout_ms = send_timeout_ms

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send until the end, or until the client hangs up."""
        sending = asyncio.create_task(self._send_all(send))
        listening = asyncio.create_task(hung_up(receive))
        try:
            await asyncio.wait({sending, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ClientGoneError
            sending.result()
        except ClientGoneError:
            log.info("an answer was not wanted to its end")
        except CodecError as error:
            log.info("an answer was cut off: %s: %s", error.code, error)
        finally:
            sending.cancel()
            listening.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)
            await self._answer.close()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sent_bytes = 0
        while data := await self._answer.next_bytes(sent_bytes):
            await self._send(send, data, more=True)
            sent_bytes += len(data)
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, data: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._send_timeout_ms / 1000):
                await send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError as cause:
            expected = f"reading within {self._send_timeout_ms} ms"
            raise TooSlowError("client", found="an answer left unread", expected=expected) from cause
