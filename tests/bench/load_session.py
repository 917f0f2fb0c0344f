"""One session of the load: sends what was prepared when it is due, compares what comes with what was computed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

if TYPE_CHECKING:
    from load_report import LoadReport

FRAME_S: Final = 0.08
FRAME_SAMPLES: Final = 1920
LAST_ANSWERS_S: Final = 10.0
"""Time for the last answers to come, after the last frame was sent."""
_HEADER: Final = struct.Struct("<BBHIQ")


class LoadSession:
    """One session.

    Args:
        messages: the frames of the bank, as bytes.
        choice: which of them to send.
        codes: the codes that shall come, u16 [frames, levels].

    """

    def __init__(self, messages: list[bytes], choice: npt.NDArray[np.int32], codes: npt.NDArray[np.uint16]) -> None:
        self._messages = messages
        self._choice = choice.tolist()
        self._codes = codes.astype("<u2").tobytes()
        self._levels = codes.shape[1]
        self._received = 0
        self._start_s = 0.0

    @staticmethod
    @contextlib.asynccontextmanager
    async def connected(url: str, levels: int, key: str | None) -> AsyncIterator[tuple[ClientConnection, str | None]]:
        """Connect and wait for ``ready``; yields the connection, and the code of the refusal if that is what came."""
        address = f"ws{url.removeprefix('http').removeprefix('ws')}/v1/stream?mode=encode&levels={levels}"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with contextlib.AsyncExitStack() as stack:
            try:
                opening = connect(address, additional_headers=headers, compression=None, proxy=None)
                connection = await stack.enter_async_context(opening)
                text = json.loads(await connection.recv())
            except InvalidStatus as cause:
                yield None, _code_of(cause.response.body, f"HTTP {cause.response.status_code}")  # type: ignore[misc]
                return
            except ConnectionClosed as cause:
                yield None, f"closed: {cause.reason or cause.code}"  # type: ignore[misc,attr-defined]
                return
            yield connection, None if text["type"] == "ready" else text["code"]

    async def run(self, connection: ClientConnection, report: LoadReport, phase_s: float) -> None:
        """Send everything at its time, flush, and count what came.

        Args:
            connection: one that is ready.
            report: where it is counted.
            phase_s: frames are due this long after whole frames' times of the clock, as each microphone has a phase.

        """
        report.admitted += 1
        now_s = time.monotonic()
        self._start_s = now_s + (phase_s - now_s) % FRAME_S
        receiving = asyncio.create_task(self._receive(connection, report))
        sent = 0
        try:
            with contextlib.suppress(ConnectionClosed):
                for sent, frame in enumerate(self._choice, 1):
                    due_s = self._start_s + sent * FRAME_S
                    await asyncio.sleep(due_s - time.monotonic())
                    report.client_late_s.append(time.monotonic() - due_s)
                    await connection.send(self._messages[frame])
            with contextlib.suppress(ConnectionClosed):
                await connection.send('{"type":"flush"}')
            await asyncio.wait([receiving], timeout=LAST_ANSWERS_S)
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            report.sent_frames += sent
            report.lost_frames += len(self._choice) - self._received

    async def _receive(self, connection: ClientConnection, report: LoadReport) -> None:
        row_bytes = 2 * self._levels
        try:
            while True:
                message = await connection.recv()
                now_s = time.monotonic()
                if isinstance(message, str):
                    if self._text(json.loads(message), report):
                        return
                    continue
                index = self._received
                self._received += 1
                report.frame(now_s, now_s - self._start_s - (index + 1) * FRAME_S)
                header = _HEADER.pack(1, 1, self._levels, index, index * FRAME_SAMPLES)
                if message != header + self._codes[index * row_bytes : (index + 1) * row_bytes]:
                    report.wrong_frames += 1
        except ConnectionClosed as cause:
            report.ended(cause.rcvd.reason if cause.rcvd else "cut")

    def _text(self, fields: dict[str, Any], report: LoadReport) -> bool:
        """Take a text message; tell whether it is the last."""
        if fields["type"] == "warning":
            report.warned(fields["code"])
        if fields["type"] == "error":
            report.ended(fields["code"])
        return fields["type"] in ("flushed", "error")


def _code_of(body: Any, otherwise: str) -> str:
    try:
        return str(json.loads(bytes(body))["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return otherwise
