"""One connection to a service: shaken hands, settings agreed or stream resumed. The only module that knows sockets."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import urllib.parse
from typing import Final

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from codec_core.client.errors import RESUMABLE, closed_unasked, refused_handshake, retry_after_ms
from codec_core.client.messages import SUBPROTOCOL, Ready, Refused
from codec_core.client.protocol import StreamProtocol
from codec_core.client.settings import LineOptions
from codec_core.client.timing import delays_s
from codec_core.errors import CodecError, SettingError, UnavailableError

STREAM_PATH: Final = "/v1/stream"
GOING_AWAY_CODES: Final = (1001, 1012, 1013)
"""Close codes after which the same service, or another in its place, may go on with the stream."""
PASSING_STATUSES: Final = (502, 503, 504)
"""HTTP statuses of a handshake that a proxy gives while the service behind it is away."""
_SCHEMES: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_MESSAGES_AHEAD: Final = 16


class LineLostError(Exception):
    """A connection that is lost or did not come about, where trying again makes sense; ``error`` says why."""

    def __init__(self, error: CodecError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def retry_after_s(self) -> float:
        """The wait that the service asked for, or 0."""
        return (retry_after_ms(self.error) or 0) / 1000


def stream_url(url: str, token: str | None = None) -> str:
    """Return the WebSocket address of a service.

    Args:
        url: ``ws://``, ``wss://``, ``http://`` or ``https://``, with or without the path.
        token: goes into the query.

    Raises:
        SettingError: it is no such address.

    """
    try:
        parts = urllib.parse.urlsplit(url)
        valid = parts.scheme in _SCHEMES and bool(parts.hostname) and not parts.fragment and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise SettingError("url", repr(url), "ws://HOST:PORT or wss://HOST:PORT, the path /v1/stream may be left out")
    path = parts.path if parts.path.strip("/") else STREAM_PATH
    query = "&".join(filter(None, [parts.query, urllib.parse.urlencode({"token": token}) if token else ""]))
    return urllib.parse.urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, query, ""))


async def open_line(url: str, protocol: StreamProtocol, options: LineOptions) -> ClientConnection:
    """Connect, send the first message of the protocol and wait until the service is ready.

    Raises:
        LineLostError: there is no service, it does not answer in time, or asks to be tried again later.
        CodecError: any other refusal.

    """
    connection = await _connected(url, options)
    try:
        async with asyncio.timeout(options.open_timeout_ms / 1000):
            # A service that has refused already has said why, and that is still to be read.
            with contextlib.suppress(ConnectionClosed):
                await connection.send(protocol.opening())
            while True:
                match protocol.receive(await connection.recv(), time.monotonic()):
                    case Ready():
                        return connection
                    case Refused(error):
                        raise LineLostError(error) if protocol.begin_again(error) else as_lost(error)
    except TimeoutError as cause:
        await abandon(connection)
        raise LineLostError(_unreachable(url, f"no answer within {options.open_timeout_ms} ms")) from cause
    except ConnectionClosed as cause:
        raise end_of_line(cause) from cause
    except BaseException:
        await abandon(connection)
        raise


async def open_within(
    limit_s: float,
    url: str,
    protocol: StreamProtocol,
    options: LineOptions,
    *,
    rng: random.Random,
    cause: LineLostError | None,
) -> ClientConnection:
    """Try :func:`open_line` until it succeeds, with growing waits that are never shorter than the service asks for.

    Args:
        limit_s: how long to go on trying.
        url: see :func:`stream_url`.
        protocol: the stream.
        options: how to behave on the line.
        rng: spreads the tries.
        cause: why there is no connection, if one was lost; then even the first try waits.

    Raises:
        CodecError: the service's refusal, or why the last try failed.

    """
    deadline_s = time.monotonic() + limit_s
    for delay_s in delays_s(options.first_delay_ms / 1000, options.longest_delay_ms / 1000, rng):
        if cause is not None:
            wait_s = max(delay_s, cause.retry_after_s)
            if time.monotonic() + wait_s > deadline_s:
                break
            await asyncio.sleep(wait_s)
        try:
            return await open_line(url, protocol, options)
        except LineLostError as again:
            cause = again
    raise cause.error if cause is not None else _unreachable(url, "no time to try")


async def _connected(url: str, options: LineOptions) -> ClientConnection:
    headers = {} if options.key is None else {"Authorization": f"Bearer {options.key}"}
    try:
        return await connect_websocket(
            stream_url(url, options.token),
            additional_headers=headers,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            open_timeout=options.open_timeout_ms / 1000,
            close_timeout=options.close_timeout_ms / 1000,
            ping_interval=options.ping_interval_ms / 1000,
            ping_timeout=options.ping_timeout_ms / 1000,
            max_queue=_MESSAGES_AHEAD,
        )
    except InvalidStatus as cause:
        error = refused_handshake(cause.response.status_code, bytes(cause.response.body or b""))
        passing = cause.response.status_code in PASSING_STATUSES
        raise (LineLostError(error) if passing else as_lost(error)) from cause
    except InvalidURI as cause:
        raise SettingError("url", repr(url), "an address of a service") from cause
    except (OSError, TimeoutError, WebSocketException, EOFError) as cause:
        raise LineLostError(_unreachable(url, _reason(cause))) from cause


def as_lost(error: CodecError) -> LineLostError | CodecError:
    """Return a refusal as what it means for the line: lost where it can be had again, else the refusal itself."""
    return LineLostError(error) if error.code in RESUMABLE or retry_after_ms(error) is not None else error


def end_of_line(cause: ConnectionClosed) -> LineLostError | CodecError:
    """Name the end of a connection, by what the other side said last."""
    if cause.rcvd is None:
        return LineLostError(closed_unasked(None, ""))
    error = closed_unasked(cause.rcvd.code, cause.rcvd.reason)
    # A service that misses our pongs closes with 1011 too, as with a failure, but names no code.
    missed = cause.rcvd.code == CloseCode.INTERNAL_ERROR and isinstance(error, UnavailableError)
    return LineLostError(error) if missed or cause.rcvd.code in GOING_AWAY_CODES else as_lost(error)


async def abandon(connection: ClientConnection) -> None:
    """Drop a connection without a word, so that the service keeps its stream; waits for nobody."""
    connection.transport.abort()
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        await connection.wait_closed()


def _unreachable(url: str, found: str) -> UnavailableError:
    # The query of an address may hold a token.
    return UnavailableError(url.partition("?")[0], found, "a service that can be reached")


def _reason(cause: BaseException) -> str:
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return text.splitlines()[0]
