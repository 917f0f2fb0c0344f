"""The server process: the socket, uvicorn as we need it, and an orderly way down."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import faulthandler
import ipaddress
import logging
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from codec_core.errors import SettingError
from server.address_connections import AddressConnections
from server.client_address import checked_proxies
from server.http_protocol import bounded_http_protocol
from server.logs import configure_logs
from server.service import Service
from server.settings import Settings
from server.tracing import stop_tracing
from server.websocket_protocol import bounded_protocol

STOP_PARTS = 3
"""The way down after the drain: streams are saved, conversions end, and what is left goes; each has as much time."""
BACKLOG = 512
"""Connections that the kernel holds until they are accepted."""
ACCEPTED_AT_ONCE = 16
"""So many connections are accepted before streams get their turn again; a crowd comes in piece by piece."""
OTHER_FILES = 64
"""File descriptors that are no connections: listener, logs, bodies on disk."""

log = logging.getLogger("mimi.server")


class DrainingServer(uvicorn.Server):
    """uvicorn that lets streams end in order before it goes down, and then exits with 0.

    On SIGTERM or SIGINT nothing new is taken, every stream is told, and after the drain time closed with 1012. A second SIGINT
    cuts the wait short. Should anything not come to an end, a store or a thread, the process does: when the time for it all is
    over it leaves the stacks of its threads on standard error and exits with 1.
    """

    def __init__(self, config: uvicorn.Config, service: Service, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, then tell the caller."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        # asyncio takes one number for both: how many it accepts in a turn, and how many the kernel holds.
        for listening in sockets or ():
            listening.listen(BACKLOG)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        settings = self._service.settings
        part_ms = settings.stop_timeout_ms // STOP_PARTS
        parked = asyncio.create_task(self._service.streams.put_parked_away())
        await self._service.registry.drain(settings.drain_timeout_ms, part_ms)
        # A store that takes its time holds up nothing but what it is to keep.
        await asyncio.wait({parked}, timeout=part_ms / 1000)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; at the second SIGINT, hurry."""
        if not self.should_exit:
            # A thread of its own that needs neither the loop nor the interpreter lock, but a standard error to write to.
            with contextlib.suppress(RuntimeError, OSError):
                faulthandler.dump_traceback_later(longest_stop_s(self._service.settings), exit=True)
        super().handle_exit(sig, frame)
        if self.force_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.registry.hurry)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving; having obeyed one is success, not death by signal."""
        previous = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def longest_stop_s(settings: Settings) -> float:
    """Say how long the process may take from the signal to its end, whatever hangs."""
    return (settings.drain_timeout_ms + settings.stop_timeout_ms) / 1000


def bind(settings: Settings) -> socket.socket:
    """Open the listening socket.

    Raises:
        SettingError: the address cannot be had, or is not loopback although no key is asked for and nobody said that it may be.

    """
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not (settings.asks_for_key or settings.allow_remote or ipaddress.ip_address(address[0]).is_loopback):
            listener.close()
            expected = "a loopback address, or keys in MIMI_API_KEYS; --allow-remote listens without"
            raise SettingError("host", found=settings.host, expected=expected)
        listener.bind(address)
    except OSError as cause:
        found_text = f"{settings.host}:{settings.port}: {cause.strerror or cause}"
        taken = cause.errno == errno.EADDRINUSE
        expected = "--port N, or 0 for any free one" if taken else "an address that can be listened on"
        raise SettingError("host and port", found=found_text, expected=expected) from cause
    return listener


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """Name the address to open in a browser."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{scheme}://{host}:{port}"


def most_connections(settings: Settings) -> int:
    """Have as many file descriptors as the system lets us, each connection being one, and say how many connections that makes.

    More than them would be taken by nobody and hold up those that are there.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = settings.max_connections
    if files != resource.RLIM_INFINITY and files - OTHER_FILES < most:
        most = max(files - OTHER_FILES, 1)
        log.warning("the system allows %d open files, so connections are limited to %d", files, most)
    return most


def serve(
    app: FastAPI,
    settings: Settings,
    listener: socket.socket,
    on_start: Callable[[], None],
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve until a signal ends it, over TLS where there is a context for it.

    Compression is off: codes and PCM do not compress, and its memory would outweigh a session's.
    """
    service: Service = app.state.service
    proxies = checked_proxies(settings.trusted_proxy_list)
    addresses = AddressConnections(settings.max_address_connections, proxies, settings.retry_after_ms)
    service.metrics.observe("mimi_connections", lambda: len(server.server_state.connections))
    config = uvicorn.Config(
        app,
        log_config=configure_logs(settings.log_format, settings.log_level),
        # Requests are logged by our own outermost layer, without their queries.
        access_log=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        ws=bounded_protocol(settings, addresses),
        ws_max_size=settings.max_message_bytes,
        ws_ping_interval=settings.ping_interval_ms / 1000,
        ws_ping_timeout=settings.ping_timeout_ms / 1000,
        ws_per_message_deflate=False,
        http=bounded_http_protocol(settings, service.metrics, most_connections(settings), addresses),
        lifespan="on",
        log_level=settings.log_level,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=settings.stop_timeout_ms / 1000 / STOP_PARTS,  # type: ignore[arg-type]
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )
    server = DrainingServer(config, service, on_start)
    try:
        server.run(sockets=[listener])
    finally:
        stop_tracing()
