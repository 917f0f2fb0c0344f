"""Answers that a client may not have: kept until it says that it has them, or until there are too many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from server.errors import ResumeLostError

NOTHING = -1
"""The sequence of a client that holds nothing of an epoch."""


class Answer(NamedTuple):
    """One message to the client."""

    message: str | bytes
    epoch: int = 0
    sequence: int | None = None
    """Of a frame; ``None`` for what only stands between frames."""
    kept: bool = True
    """Whether a client that comes back must get it."""


class ReplayWindow:
    """The newest answers of a stream, in order, bounded in number and bytes; the oldest go first.

    Args:
        max_answers: most that are kept.
        max_bytes: most bytes of their messages.

    """

    def __init__(self, max_answers: int, max_bytes: int) -> None:
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._answers: deque[Answer] = deque()
        self._bytes = 0
        self._freed = (0, NOTHING)

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def freed(self) -> tuple[int, int]:
        """Epoch and sequence of the newest frame that is no longer held."""
        return self._freed

    def add(self, answer: Answer) -> None:
        """Keep an answer; those too many are let go."""
        self._answers.append(answer)
        self._bytes += len(answer.message)
        while self._answers and (len(self._answers) > self._max_answers or self._bytes > self._max_bytes):
            self._free_oldest()

    def acknowledge(self, epoch: int, sequence: int) -> None:
        """Let go every answer up to and including this frame."""
        for _ in range(self._count_through(epoch, sequence)):
            self._free_oldest()

    def after(self, epoch: int, sequence: int) -> list[str | bytes]:
        """Return the messages that follow this frame.

        Raises:
            ResumeLostError: one of them is no longer held.

        """
        if (epoch, sequence) < self._freed:
            found = f"frame {sequence} of epoch {epoch} as the last one received"
            raise ResumeLostError("resume", found, f"frame {self._freed[1]} of epoch {self._freed[0]} or a later one")
        # What stands between frames belongs after the frame before it.
        return [answer.message for answer in list(self._answers)[self._count_through(epoch, sequence) :]]

    def content(self) -> list[Answer]:
        """Return what is kept, for a snapshot."""
        return list(self._answers)

    def restore(self, answers: Iterable[Answer], freed: tuple[int, int]) -> None:
        """Take over the content of another window."""
        self._answers.clear()
        self._bytes, self._freed = 0, freed
        for answer in answers:
            self.add(answer)

    def _count_through(self, epoch: int, sequence: int) -> int:
        """Count the answers up to and including the newest frame that a client who holds this one has."""
        count = 0
        for index, answer in enumerate(self._answers):
            if answer.sequence is not None and (answer.epoch, answer.sequence) <= (epoch, sequence):
                count = index + 1
        return count

    def _free_oldest(self) -> None:
        oldest = self._answers.popleft()
        self._bytes -= len(oldest.message)
        if oldest.sequence is not None:
            self._freed = max(self._freed, (oldest.epoch, oldest.sequence))
