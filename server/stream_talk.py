"""The language model's side of one stream: codes of the user in, a text token and the model's codes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codec_core.language_model import LanguageModelInfo
from codec_core.language_session import FREE
from codec_core.talk import Transcript, steps_of_next_frame
from server.batch_schedule import Array
from server.codec_executor import CodecExecutor
from server.language import Language
from server.stream_state import StreamState


@dataclass(frozen=True)
class Reply:
    """What a model says in a frame: a token, what that adds to the text, and codes int32 [own levels], if it has any."""

    token: int
    text: str
    codes: Array


class Talker:
    """Making one from a snapshot takes time: do it off the event loop.

    Args:
        language: the model.
        state: where to begin.
        executor: runs the steps.

    Raises:
        SnapshotError: the state holds a snapshot that is damaged or of another model.

    """

    def __init__(self, language: Language, state: StreamState, executor: CodecExecutor) -> None:
        self._language = language
        self._executor = executor
        model = language.model
        self._session = model.restore(state.language) if state.language else language.session(state.settings)
        self._transcript = self._new_transcript()
        if self._transcript.stream is not None:
            self._transcript.stream.restore(state.text_pending)

    @property
    def info(self) -> LanguageModelInfo:
        """What the model is."""
        return self._language.model.info

    async def reply(self, codes: Array) -> Reply | None:
        """Step a frame of the user's codes; None while the model holds its answer back.

        Raises:
            CodecError: the engine refuses the step.

        """
        row: Array = np.full(1, FREE, np.int32)
        for _ in range(steps_of_next_frame(self._session)):
            row = await self._executor.converse(self._session, codes)
        token = int(row[0])
        return None if token == FREE else Reply(token, self._transcript.push(token), row[1:])

    def capture(self) -> tuple[bytes, bytes]:
        """Return the session's snapshot, and the bytes of a letter that is not complete."""
        stream = self._transcript.stream
        return self._session.snapshot(), b"" if stream is None else stream.pending

    async def reset(self) -> None:
        """Start over as a new stream with the same settings."""
        if self._session.position_steps:
            await self._executor.reset(self._session)
        self._transcript = self._new_transcript()

    def close(self) -> None:
        """Free the state, once the step it may be in has ended."""
        self._executor.retire(self._session)

    def _new_transcript(self) -> Transcript:
        return Transcript(self._language.tokenizer, self.info.text_padding_id)
