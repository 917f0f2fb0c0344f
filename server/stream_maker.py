"""Makes the sessions of streams: what all of them run on, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from codec_core import CodecModel
from server.codec_executor import CodecExecutor
from server.language import Language
from server.stream_session import Send, StreamSession
from server.stream_state import StreamState


@dataclass(frozen=True)
class StreamMaker:
    """The models of a service, and who runs their steps."""

    model: CodecModel
    executor: CodecExecutor
    language: Language | None = None

    def make(self, state: StreamState, send: Send) -> StreamSession:
        """Make a session from where its state says; from a snapshot it takes time: do it off the event loop.

        Raises:
            SnapshotError: the state holds snapshots that are damaged or of another model.

        """
        return StreamSession(state, self.model, self.executor, send, self.language)
