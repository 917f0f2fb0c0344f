"""All streams of the process, carried by a connection or parked: opened, resumed, parted from, and ended in order.

A stream that loses its connection is parked for the grace time, state and all. A client that comes back with its token gets it
from here, whoever carries it; or, where this process does not have it, from the snapshot store.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import weakref
from collections.abc import Coroutine
from typing import Any

from codec_core.errors import CodecError
from server.checkpoints import Checkpoints
from server.errors import DrainingError, NotOfferedError, ProtocolError, SnapshotStoreError, TakenOverError
from server.live_stream import Carrier, LiveStream, taken_over
from server.ready_message import Outlook, ready_text
from server.resume_token import ResumeToken, TokenIssuer, token_refused
from server.revival import Revival
from server.settings import Settings
from server.shared_secret import SharedSecret
from server.snapshot_store import FencedError, SnapshotStore
from server.stream_maker import StreamMaker
from server.stream_snapshot import Lineage
from server.stream_state import StreamState
from server.tasks import cancel
from server.wire_resume import Resume
from server.wire_settings import Offer, StreamSettings

RESUMABLE = ("too_slow", "idle_timeout", "overloaded", "taken_over", "draining")
"""Refusals after which a client may come back: nothing that it sent was at fault."""

log = logging.getLogger("mimi.server.stream")


class LiveStreams:
    """Used from one event loop.

    Args:
        settings: the service's.
        maker: makes the sessions of streams.
        offer: what a client may ask for.
        store: where snapshots go, if anywhere.

    """

    def __init__(self, settings: Settings, maker: StreamMaker, offer: Offer, store: SnapshotStore | None) -> None:
        self._settings = settings
        self._maker = maker
        info = maker.model.info
        longest_s = (settings.session_timeout_ms + settings.resume_grace_ms) / 1000
        self._tokens = TokenIssuer(SharedSecret(settings.secret), info.sha256, info.numerics, longest_s)
        self.checkpoints = Checkpoints(
            store,
            key=self._tokens.snapshot_key,
            model_sha256=info.sha256,
            offer=offer,
            interval_ms=settings.checkpoint_interval_ms,
            retry_after_ms=settings.retry_after_ms,
            on_fenced=self._fenced,
        )
        self._live: dict[str, LiveStream] = {}
        self._parked: dict[str, asyncio.TimerHandle] = {}
        self._resuming: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    @property
    def parked(self) -> int:
        """Streams that wait for their client to come back."""
        return len(self._parked)

    @property
    def talking(self) -> int:
        """Streams of mode ``talk``, parked ones too."""
        return sum(stream.session.talker is not None for stream in self._live.values())

    def start(self) -> None:
        """Begin the upkeep of the snapshot store."""
        if self.checkpoints.store is not None:
            self._spawn(self._keep_alive())

    def open(self, settings: StreamSettings, carrier: Carrier) -> LiveStream:
        """Begin a new stream, carried by this connection."""
        stream = self._make(Lineage(secrets.token_hex(16), time.time()))
        stream.start(self._maker.make(StreamState(settings), stream.deliver))
        self._live[stream.lineage.stream_id] = stream
        self.checkpoints.begin(stream)
        stream.attach(carrier, [self._ready(stream, resumed=False)])
        return stream

    async def resume(self, request: Resume, carrier: Carrier) -> LiveStream:
        """Give a client its stream back; what it lacks is sent again.

        Raises:
            NotOfferedError: this service parks no streams.
            ResumeRefusedError, ResumeLostError, ProtocolError, SnapshotError, SnapshotStoreError: it cannot be.

        """
        token = self._token(request)
        async with self._resuming.setdefault(token.stream_id, asyncio.Lock()):
            stream = self._live.get(token.stream_id)
            if stream is not None:
                stream = await self._reclaim(stream, token)
            if stream is not None:
                self._go_on(stream, request, carrier)
            else:
                stream = await self._revive(token, request, carrier)
        return stream

    def carrier_of(self, request: Resume) -> Carrier | None:
        """Find the connection that still carries a stream, maybe half open: whoever comes with a good token has its place.

        Raises:
            NotOfferedError: this service parks no streams.
            ResumeRefusedError: the token is not good.

        """
        token = self._token(request)
        stream = self._live.get(token.stream_id)
        if stream is None or token.generation < stream.lineage.oldest_generation:
            return None
        return stream.carrier

    def confirm(self, stream: LiveStream) -> None:
        """Note that the client has its present token, since it has sent something after it: older ones are void."""
        if stream.lineage.oldest_generation < stream.lineage.generation:
            stream.lineage.oldest_generation = stream.lineage.generation
            self._spawn(self.checkpoints.confirm(stream))

    def token_for(self, stream: LiveStream) -> str | None:
        """Make the stream's present token, where streams can be resumed."""
        if not self._settings.resume_grace_ms:
            return None
        lineage = stream.lineage
        return self._tokens.issue(lineage.stream_id, lineage.generation, lineage.opened_unix_s)

    async def part(self, stream: LiveStream, carrier: Carrier, end: BaseException | None) -> None:
        """Part a stream from its connection, which ended like this: park it, save it, or end it."""
        stream.detach(carrier)
        if self._live.get(stream.lineage.stream_id) is not stream:
            return
        refused = isinstance(end, CodecError) and end.code not in RESUMABLE
        if end is None or refused or stream.is_over or not self._settings.resume_grace_ms:
            await self._end(stream, and_stored=True)
        elif isinstance(end, TakenOverError):
            self._park(stream)
        elif self._draining or isinstance(end, DrainingError) or self.parked >= self._settings.max_parked_sessions:
            await self._put_away(stream)
        else:
            self._park(stream)

    async def put_parked_away(self) -> None:
        """Save the parked streams, and from here on every one that loses its connection: the service goes down."""
        self._draining = True
        await self._put_all_away([self._live[stream_id] for stream_id in self._parked if stream_id in self._live])

    async def close(self) -> None:
        """Save or end every stream and let go of the store."""
        self._draining = True
        await self._put_all_away(list(self._live.values()))
        await cancel(*self._tasks)
        await self.checkpoints.close()

    def _make(self, lineage: Lineage) -> LiveStream:
        return LiveStream(lineage, self._settings, self.checkpoints.between_steps, self._over)

    def _token(self, request: Resume) -> ResumeToken:
        if not self._settings.resume_grace_ms:
            raise NotOfferedError("resume", found="a token", expected="a new stream: this service keeps none")
        return self._tokens.read(request.token)

    async def _uncarry(self, stream: LiveStream) -> None:
        if (carrier := stream.carrier) is not None:
            carrier.end(taken_over())
            await carrier.gone.wait()

    async def _reclaim(self, stream: LiveStream, token: ResumeToken) -> LiveStream | None:
        """Take a stream of this process for a new connection; ``None`` if another process has gone on with it meanwhile."""
        lineage = stream.lineage
        if token.generation < lineage.oldest_generation:
            raise token_refused("one that a later connection has replaced")
        await self._uncarry(stream)
        await stream.come_to_rest()
        if stream.failure is not None:
            await self._end(stream, and_stored=True)
            raise stream.failure
        try:
            lineage.generation = await self._claim(stream, token)
        except FencedError:
            await self._end(stream, and_stored=False)
            return None
        if self._live.get(lineage.stream_id) is not stream:
            if self._draining:
                # Put away meanwhile, for whoever goes on with it.
                raise DrainingError("service", "one that goes down", "another", retry_after_ms=self._settings.retry_after_ms)
            raise token_refused("that of a stream which is over")
        return stream

    async def _claim(self, stream: LiveStream, token: ResumeToken) -> int:
        """Claim a stream of this process where others may have, which they can only with the store."""
        lineage = stream.lineage
        if self.checkpoints.is_stored(stream):
            try:
                return await self.checkpoints.claim(lineage.stream_id, token.generation, lineage.generation, held_here=True)
            except SnapshotStoreError as error:
                log.warning("stream %s resumes without the store: %s", lineage.stream_id, error)
        return lineage.generation + 1

    def _go_on(self, stream: LiveStream, request: Resume, carrier: Carrier) -> None:
        counters = stream.session.counters
        epoch = counters.epoch if request.epoch is None else request.epoch
        newest = stream.newest_sent
        if (epoch, request.last_sequence) > newest:
            found = f"{request.last_sequence} of epoch {epoch}"
            raise ProtocolError("resume.last_sequence", found, f"at most {newest[1]} of epoch {newest[0]}")
        answers = stream.window.after(epoch, request.last_sequence)
        self._unpark(stream)
        stream.attach(carrier, [self._ready(stream, resumed=True, reprimed=False), *answers])

    async def _revive(self, token: ResumeToken, request: Resume, carrier: Carrier) -> LiveStream:
        revived = await Revival(self.checkpoints, self._maker).revive(token, request, self._make)
        stream = revived.stream
        self._live[token.stream_id] = stream
        self.checkpoints.found(stream)
        stream.attach(carrier, [self._ready(stream, resumed=True, reprimed=revived.reprimed), *revived.answers])
        return stream

    def _ready(self, stream: LiveStream, *, resumed: bool, reprimed: bool = False) -> str:
        outlook = Outlook(resumed, reprimed, self.token_for(stream), self.checkpoints.are_made_of(stream))
        return ready_text(stream, self._maker.model.info, self._settings, outlook)

    def _park(self, stream: LiveStream) -> None:
        loop, grace_s = asyncio.get_running_loop(), self._settings.resume_grace_ms / 1000
        self._parked[stream.lineage.stream_id] = loop.call_later(grace_s, self._expire, stream)

    def _unpark(self, stream: LiveStream) -> None:
        timer = self._parked.pop(stream.lineage.stream_id, None)
        if timer is not None:
            timer.cancel()

    def _expire(self, stream: LiveStream) -> None:
        log.info("stream %s was not resumed in time", stream.lineage.stream_id)
        self._spawn(self._end(stream, and_stored=True))

    def _over(self, stream: LiveStream) -> None:
        if self._live.get(stream.lineage.stream_id) is stream:
            self._spawn(self._end(stream, and_stored=True))

    def _fenced(self, stream: LiveStream) -> None:
        """End a stream that another process goes on with."""
        if stream.carrier is not None:
            stream.carrier.end(taken_over())
        self._spawn(self._end(stream, and_stored=False))

    async def _put_all_away(self, streams: list[LiveStream]) -> None:
        """Put these away that are still here, whatever happens to one of them."""
        for failure in filter(None, await asyncio.gather(*map(self._put_away, streams), return_exceptions=True)):
            log.error("a stream could not be put away", exc_info=failure)

    async def _put_away(self, stream: LiveStream) -> None:
        """Save a stream for another process and end it here; one that cannot be saved is lost."""
        if not self._remove(stream):
            return
        await stream.halt()
        is_whole = stream.failure is None and not stream.is_over
        saved = is_whole and await self.checkpoints.save(stream)
        await self._end(stream, and_stored=not is_whole)
        log.info("stream %s ended here, %s", stream.lineage.stream_id, "saved" if saved else "not saved")

    async def _end(self, stream: LiveStream, *, and_stored: bool) -> None:
        self._remove(stream)
        await stream.close()
        await self.checkpoints.forget(stream, and_stored=and_stored)
        log.info("stream %s ended after %d frames", stream.lineage.stream_id, stream.session.counters.frames)

    def _remove(self, stream: LiveStream) -> bool:
        is_here = self._live.get(stream.lineage.stream_id) is stream
        if is_here:
            del self._live[stream.lineage.stream_id]
            self._unpark(stream)
        return is_here

    async def _keep_alive(self) -> None:
        while True:
            await self.checkpoints.keep_alive(stream for stream in self._live.values() if stream.carrier is not None)
            await asyncio.sleep(self._settings.checkpoint_interval_ms / 1000)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
