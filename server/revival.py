"""A stream made again from its snapshot: after a crash, after a drain, or because another replica was asked first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from server.checkpoints import Checkpoints
from server.live_stream import LiveStream
from server.replay_window import NOTHING
from server.resume_token import ResumeToken, token_refused
from server.snapshot_store import FencedError
from server.stream_maker import StreamMaker
from server.stream_snapshot import Lineage, StreamSnapshot
from server.wire_resume import Resume


@dataclass(frozen=True)
class Revived:
    """A stream at rest, the answers that its client lacks, and whether its resamplers were primed anew."""

    stream: LiveStream
    answers: list[str | bytes]
    reprimed: bool


class Revival:
    """Finds snapshots and makes streams of them.

    Args:
        checkpoints: where snapshots are.
        maker: makes their sessions.

    """

    def __init__(self, checkpoints: Checkpoints, maker: StreamMaker) -> None:
        self._checkpoints = checkpoints
        self._maker = maker

    async def revive(self, token: ResumeToken, request: Resume, make: Callable[[Lineage], LiveStream]) -> Revived:
        """Claim a stream and make it again; processes that still have it are fenced off.

        Args:
            token: checked already.
            request: what the client holds.
            make: makes the stream, not started yet.

        Raises:
            ResumeRefusedError, ResumeLostError, SnapshotError, SnapshotStoreError: it cannot be.

        """
        stream_id = token.stream_id
        if await self._checkpoints.load(stream_id) is None:
            raise token_refused("that of a stream which is over, or unknown here")
        try:
            generation = await self._checkpoints.claim(stream_id, token.generation, token.generation, held_here=False)
        except FencedError as cause:
            raise token_refused("one that a later connection has replaced") from cause
        # Once more: until the claim another process may have saved a later one.
        snapshot = await self._checkpoints.load(stream_id)
        if snapshot is None or token.generation < snapshot.lineage.oldest_generation:
            raise token_refused("one that a later connection has replaced")
        snapshot.lineage.generation = generation
        return await self._made(snapshot, request, make(snapshot.lineage))

    async def _made(self, snapshot: StreamSnapshot, request: Resume, stream: LiveStream) -> Revived:
        session = await asyncio.to_thread(self._maker.make, snapshot.state, stream.deliver)
        held = session.counters.epoch if request.epoch is None else request.epoch, request.last_sequence
        stream.window.restore(snapshot.answers, snapshot.freed)
        reprimed = session.settings.sample_rate != self._maker.model.info.sample_rate_hz
        try:
            if held[0] > session.counters.epoch:
                # The client's reset was done after the snapshot; what was before it no longer matters to anyone.
                await session.reset(held[0])
                stream.window.restore([], (held[0], NOTHING))
                reprimed = False
            answers = stream.window.after(*held)
        except BaseException:
            session.close()
            raise
        stream.start(session)
        stream.skip_through(*held)
        return Revived(stream, answers, reprimed)
