"""A stream that outlives its connections: its inbox, its worker, and the answers that its client may not have.

A connection puts events in, a worker answers them in order. The answers go into the replay window and, where a connection
carries the stream, to its outbox. Without one the worker goes on until everything that has come is answered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from codec_core.errors import CodecError
from codec_core.opus_packets import OpusPacket
from server.errors import OverloadedError, ProtocolError, TakenOverError, TooSlowError
from server.inbox import Inbox
from server.outbox import Outbox
from server.replay_window import NOTHING, Answer, ReplayWindow
from server.sample_format import frame_bytes
from server.settings import Settings
from server.status_map import as_codec_error
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage
from server.tasks import cancel
from server.wire import Ack, Audio, Close, Codes, Event
from server.wire_messages import server_text
from server.wire_opus import Packets

WARNING_INTERVAL_S = 1.0
STEP_SAMPLES = 3_840
"""Opus of one step at most, at 48 kHz; a longer packet is a step by itself."""
MESSAGE_OVERHEAD_BYTES = 64
"""What a message counts for in the inbox besides its payload, so that empty ones are bounded too."""

log = logging.getLogger("mimi.server.stream")


class Carrier(Protocol):
    """What a stream needs of the connection that carries it."""

    outbox: Outbox
    gone: asyncio.Event
    """Set once the connection has let go of the stream."""
    stream: LiveStream | None
    """What it carries."""

    def end(self, error: CodecError) -> None:
        """Close the connection for this reason; returns at once."""


def taken_over() -> TakenOverError:
    """Make the error for a connection whose stream goes on over another one."""
    return TakenOverError("stream", found="a second connection", expected="one connection at a time")


@dataclass(frozen=True)
class Arrival:
    """What a connection took in, and when; ``blocked_s`` is how long answers had waited for the client by then."""

    event: Event | CodecError
    blocked_s: float
    arrived_s: float = field(default_factory=time.monotonic)


class LiveStream:
    """One stream. Used from one event loop.

    Args:
        lineage: which stream it is.
        settings: the service's.
        between: awaited between two steps of the worker, when the session is at rest.
        on_over: called when the client's ``close`` is reached and no connection is there to end the stream.

    """

    def __init__(
        self,
        lineage: Lineage,
        settings: Settings,
        between: Callable[[LiveStream], Awaitable[None]],
        on_over: Callable[[LiveStream], None],
    ) -> None:
        self.lineage = lineage
        self.window = ReplayWindow(settings.replay_window_frames, settings.replay_window_bytes)
        self.carrier: Carrier | None = None
        self.failure: CodecError | None = None
        """Why the worker has ended, where it was not told to."""
        self.is_over = False
        """Whether the client has closed the stream."""
        self.lag_s = 0.0
        self.session: StreamSession
        self._inbox: Inbox[Arrival]
        self._settings = settings
        self._between = between
        self._on_over = on_over
        self._worker: asyncio.Task[None] | None = None
        self._at_rest = asyncio.Event()
        self._halted = False
        self._held_by_client = (0, NOTHING)
        self._blocked_s = 0.0
        self._carried_since_s = 0.0
        self._warned_s = 0.0

    @property
    def queued_frames(self) -> float:
        """What waits for the worker, in frames."""
        return round(self._inbox.waiting_bytes / (frame_bytes(self.session.settings) + MESSAGE_OVERHEAD_BYTES), 2)

    def start(self, session: StreamSession) -> None:
        """Begin to answer events with this session, which sends by :meth:`deliver`."""
        self.session = session
        size_bytes = frame_bytes(session.settings) + MESSAGE_OVERHEAD_BYTES
        self._inbox = Inbox(self._settings.credit_frames * size_bytes, self._settings.max_queued_messages)
        self._worker = asyncio.create_task(self._work())

    async def accept(self, event: Event | CodecError, size_bytes: int = 0) -> None:
        """Take in an event as soon as there is room; cancelled while it waits, it was not taken in."""
        self._at_rest.clear()
        await self._inbox.put(Arrival(event, self._blocked_s), size_bytes + MESSAGE_OVERHEAD_BYTES)

    async def nudge(self) -> None:
        """Let the worker pass between two steps although nothing has come."""
        if self._at_rest.is_set() and not self._halted:
            await self.accept(Codes(()))

    def attach(self, carrier: Carrier, greeting: list[str | bytes]) -> None:
        """Let a connection carry the stream from here on; it begins with this greeting. The stream must be at rest."""
        self._carried_since_s = time.monotonic()
        self.carrier, carrier.stream = carrier, self
        carrier.outbox.preload(greeting)

    def detach(self, carrier: Carrier) -> None:
        """Go on without this connection."""
        if self.carrier is carrier:
            self.carrier = None
        carrier.outbox.close()

    async def come_to_rest(self) -> None:
        """Wait until everything that has come is answered; then forget what came of an unfinished sample."""
        await self._at_rest.wait()
        self.session.drop_split_sample()

    async def halt(self) -> None:
        """Stop the worker between two steps, whatever still waits."""
        self._halted = True
        if not len(self._inbox) and self._worker is not None and self._at_rest.is_set():
            await cancel(self._worker)
        await self._at_rest.wait()

    async def close(self) -> None:
        """End the worker at once and free the codec's state."""
        if self._worker is not None:
            await cancel(self._worker)
        self.session.close()

    def skip_through(self, epoch: int, sequence: int) -> None:
        """Do not send again what the client holds: every frame up to this one."""
        self._held_by_client = (epoch, sequence)

    @property
    def newest_sent(self) -> tuple[int, int]:
        """Epoch and sequence of the newest frame that the client can have."""
        counters = self.session.counters
        return max(self._held_by_client, (counters.epoch, counters.sequence - 1))

    async def deliver(self, answer: Answer) -> None:
        """Keep an answer and send it where a connection carries the stream; returns once there is room for the next."""
        if answer.sequence is not None and (answer.epoch, answer.sequence) <= self._held_by_client:
            return
        if answer.kept:
            self.window.add(answer)
        if self.carrier is not None:
            started_s = time.monotonic()
            await self.carrier.outbox.put(answer.message)
            self._blocked_s += time.monotonic() - started_s

    async def tell(self, message: str) -> None:
        """Send what only the present connection is told."""
        await self.deliver(Answer(message, kept=False))

    async def _work(self) -> None:
        try:
            while not self._halted and not self.is_over:
                await self._answer(await self._next())
        except CodecError as error:
            self.failure = error
        except Exception as error:
            log.exception("stream %s failed", self.lineage.stream_id)
            self.failure = as_codec_error(error)
        finally:
            self._at_rest.set()
        if self.carrier is not None and not self._halted:
            self.carrier.outbox.finish(self.failure)
        elif self.is_over:
            self._on_over(self)

    async def _next(self) -> Arrival:
        if not len(self._inbox):
            self._at_rest.set()
        arrival = await self._inbox.get()
        self._at_rest.clear()
        return arrival

    async def _answer(self, arrival: Arrival) -> None:
        if isinstance(arrival.event, CodecError):
            raise arrival.event
        for step in _steps(arrival.event, frame_bytes(self.session.settings)):
            if self._halted:
                return
            if isinstance(step, Close):
                self.is_over = True
            elif isinstance(step, Ack):
                self._acknowledge(step)
            else:
                await self.session.handle(step)
            await self._between(self)
        await self._watch_lag(arrival)
        # Events that need no codec would otherwise be answered in one turn of the loop, and everyone else would wait.
        await asyncio.sleep(0)

    def _acknowledge(self, ack: Ack) -> None:
        epoch = self.session.counters.epoch if ack.epoch is None else ack.epoch
        newest = self.newest_sent
        if (epoch, ack.sequence) > newest:
            expected = f"less than {newest[1] + 1}, the next to be sent"
            raise ProtocolError("ack.sequence", found=str(ack.sequence), expected=expected)
        self.window.acknowledge(epoch, ack.sequence)

    async def _watch_lag(self, arrival: Arrival) -> None:
        """Warn of late answers, and end a stream whose answers are far too late: there is no use in falling further behind."""
        now_s = time.monotonic()
        self.lag_s = now_s - arrival.arrived_s
        lag_ms = int(self.lag_s * 1000)
        if self.carrier is None or arrival.arrived_s < self._carried_since_s:
            return
        if lag_ms >= self._settings.lag_limit_ms:
            self.carrier.end(self._too_late(lag_ms, self._blocked_s - arrival.blocked_s))
        elif lag_ms >= self._settings.lag_warning_ms and now_s - self._warned_s >= WARNING_INTERVAL_S:
            self._warned_s = now_s
            await self.tell(server_text("warning", code="lagging", message=f"an answer took {lag_ms} ms"))

    def _too_late(self, lag_ms: int, blocked_s: float) -> CodecError:
        expected = f"less than {self._settings.lag_limit_ms} ms"
        if blocked_s * 1000 > lag_ms / 2:
            return TooSlowError("client", found=f"answers left unread for {lag_ms} ms", expected=expected)
        retry_after_ms = self._settings.retry_after_ms
        return OverloadedError(
            "service", found=f"an answer that took {lag_ms} ms", expected=expected, retry_after_ms=retry_after_ms
        )


def _steps(event: Event, size_bytes: int) -> Iterator[Event]:
    """Cut a message into steps of a frame at most, so that the worker can stop between any two."""
    match event:
        case Packets():
            yield from _packet_steps(event)
        case Audio(data) if len(data) > size_bytes:
            for start in range(0, len(data), size_bytes):
                yield Audio(data[start : start + size_bytes])
        case Codes(frames) if len(frames) > 1:
            for frame in frames:
                yield Codes((frame,))
        case _:
            yield event


def _packet_steps(event: Packets) -> Iterator[Event]:
    """Cut Opus where a frame's worth is full. Only the last step has the reader's place: the others end within a page."""
    group: list[OpusPacket] = []
    for packet in event.packets:
        if group and sum(one.samples for one in group) + packet.samples > STEP_SAMPLES:
            yield Packets(tuple(group), None)
            group = []
        group.append(packet)
    yield Packets(tuple(group), event.place)
