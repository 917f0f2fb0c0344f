"""What the sessions share.

A session is used by one thread at a time; a second one is refused with :class:`~codec_core.errors.SessionBusyError`. After any
error the session is as it was before the call and may go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from codec_core import _ext
from codec_core.errors import CodeRangeError, NonFiniteInputError, NumericOverflowError, SessionBusyError

if TYPE_CHECKING:
    from codec_core.model import ModelInfo

StageObserver = Callable[[str, NDArray[np.float32]], None]
"""Called with each stage's name and its values, float32 [lanes, steps, channels]; what it raises ends the step unmade."""

AnyNative = TypeVar("AnyNative", bound=_ext.Session | _ext.LanguageSession)
Native = TypeVar("Native", bound=_ext.Session)


class ExclusiveSession(Generic[AnyNative]):
    """One call at a time. As a context manager it closes itself at the end."""

    def __init__(self, native: AnyNative) -> None:
        self.native = native
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def state_bytes(self) -> int:
        """Memory the stream's state holds."""
        return self.native.state_bytes

    def close(self) -> None:
        """End the session; every later call raises :class:`~codec_core.errors.SessionClosedError`. Twice is no error."""
        with self.entered():
            self.native.close()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have the session to oneself for the whole of a call, from its first frame to its last.

        Raises:
            SessionBusyError: another thread has it.

        """
        if not self._lock.acquire(blocking=False):
            raise SessionBusyError(
                "session", "a call still running on it", "one call at a time, and each session once in a batch"
            )
        try:
            yield
        finally:
            self._lock.release()


@contextmanager
def all_entered(sessions: Sequence[ExclusiveSession[Any]]) -> Iterator[None]:
    """Have several sessions to oneself; Error as :meth:`ExclusiveSession.entered` where one is not free."""
    with ExitStack() as stack:
        for session in sessions:
            stack.enter_context(session.entered())
        yield


class Session(ExclusiveSession[Native]):
    """What both directions of the codec share."""

    direction: str

    def __init__(self, native: Native, info: ModelInfo) -> None:
        super().__init__(native)
        self.info = info

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.info.name}: {self.levels} levels, {self.position_frames} frames>"

    @property
    def levels(self) -> int:
        """RVQ levels of this stream."""
        return self.native.levels

    @property
    def position_frames(self) -> int:
        """Frames encoded or decoded since the start or the last reset."""
        return self.native.position_frames

    @contextmanager
    def _naming_the_frame(self) -> Iterator[None]:
        """Say which frame of the stream a refusal is about, where the engine knows its place in the batch."""
        try:
            yield
        except (NonFiniteInputError, CodeRangeError, NumericOverflowError) as error:
            subject = error.subject.replace("lane 0", f"frame {self.position_frames}")
            raise type(error)(subject, error.found, error.expected) from None

    @contextmanager
    def _all_or_nothing(self, frames: int) -> Iterator[None]:
        """Undo the frames before the one that failed, where a call makes several."""
        before = self.native.save_state() if frames > 1 else None
        try:
            yield
        except BaseException:
            if before is not None:
                self.native.load_state(before)
            raise
