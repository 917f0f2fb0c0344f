"""Input on its way: what is not sent yet, and what was sent and may have to be sent again. Sans-IO.

A place in the input is the pair (epoch, byte): a reset starts a new epoch at byte 0. With Opus it is (epoch, sample). Control
messages stand between the bytes they were given between, and are sent again with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from codec_core.errors import InternalError, UnavailableError

ControlKind = Literal["flush", "reset", "close"]


class Place(NamedTuple):
    """Where in the input; ordered."""

    epoch: int
    byte: int


@dataclass(frozen=True)
class Control:
    """A control message at its place. ``ordinal`` counts the flushes of the epoch, from 1; 0 for other kinds."""

    kind: ControlKind
    place: Place
    ordinal: int


@dataclass(frozen=True)
class Chunk:
    """Bytes of input that begin at a place."""

    place: Place
    data: bytes
    samples: int | None = None
    """What the bytes stand for, where places count that: such a chunk is a message, and never split."""

    @property
    def extent(self) -> int:
        """How far it reaches, as places count."""
        return len(self.data) if self.samples is None else self.samples

    @property
    def end(self) -> Place:
        """The place behind the last byte."""
        return Place(self.place.epoch, self.place.byte + self.extent)


Entry = Chunk | Control


class Outbox:
    """A log of input with a cursor between what is sent and what is not.

    Args:
        unit_bytes: size of a sample of all channels, or of a frame of codes: what positions count.
        keeps: whether what was sent is kept until :meth:`release`.
        max_held_bytes: most bytes kept that were sent; beyond it the oldest are forgotten.

    """

    def __init__(self, unit_bytes: int, *, keeps: bool, max_held_bytes: int) -> None:
        self.unit_bytes = unit_bytes
        self._keeps = keeps
        self._max_held_bytes = max_held_bytes
        self._entries: list[Entry] = []
        self._cursor = 0
        self._end = Place(0, 0)
        self._start = Place(0, 0)
        self._flushes = 0
        self.unsent_bytes = 0
        self.held_bytes = 0
        """Bytes that were sent and are kept."""

    @property
    def has_unsent(self) -> bool:
        """Whether anything waits to be sent."""
        return self._cursor < len(self._entries)

    @property
    def is_whole(self) -> bool:
        """Whether everything that was ever appended is still here."""
        return self._start == Place(0, 0)

    @property
    def end(self) -> Place:
        """The place behind everything that was appended."""
        return self._end

    def append(self, data: bytes, samples: int | None = None) -> None:
        """Add input; with ``samples``, as one message that stands for so many."""
        if data:
            chunk = Chunk(self._end, data, samples)
            self._entries.append(chunk)
            self._end = chunk.end
            self.unsent_bytes += len(data)

    def append_control(self, kind: ControlKind) -> Control:
        """Add a control message; after a reset the input begins anew."""
        self._flushes += kind == "flush"
        control = Control(kind, self._end, self._flushes if kind == "flush" else 0)
        self._entries.append(control)
        if kind == "reset":
            self._end, self._flushes = Place(self._end.epoch + 1, 0), 0
        return control

    def peek(self, most_bytes: int) -> Entry | None:
        """Return what is to be sent next, at most so many bytes of it; ``None`` where all is sent."""
        if self._cursor == len(self._entries):
            return None
        entry = self._entries[self._cursor]
        if isinstance(entry, Chunk) and entry.samples is None and len(entry.data) > most_bytes:
            self._split(self._cursor, most_bytes)
            entry = self._entries[self._cursor]
        return entry

    def advance(self) -> None:
        """Count what :meth:`peek` returned as sent."""
        entry = self._entries[self._cursor]
        self._cursor += 1
        if isinstance(entry, Chunk):
            self.unsent_bytes -= len(entry.data)
            self.held_bytes += len(entry.data)
        if not self._keeps:
            self._forget(self._cursor)
        elif self.held_bytes > self._max_held_bytes:
            self._forget(1)

    def release(self, epoch: int, units: int) -> None:
        """Forget what lies before a position that is safe. A control message at the very place is kept: it may not be."""
        place = Place(epoch, units * self.unit_bytes)
        if place <= self._start:
            return
        count = 0
        while count < self._cursor and _is_before(self._entries[count], place):
            count += 1
        if count < self._cursor:
            entry = self._entries[count]
            if isinstance(entry, Chunk) and entry.samples is None and entry.place < place < entry.end:
                self._split(count, place.byte - entry.place.byte)
                self._cursor += 1
                count += 1
        self._forget(count)

    def rewind(self, epoch: int, units: int, flushes: int) -> None:
        """Go back to what a service holds: everything after it counts as not sent.

        Args:
            epoch: the service's, the same or a later one.
            units: input of that epoch that it holds.
            flushes: of that epoch that it has done.

        Raises:
            UnavailableError: input that it lacks was forgotten.
            InternalError: nobody has that input yet.

        """
        place = Place(epoch, units * self.unit_bytes)
        if place > self._end:
            raise InternalError("resume", f"a position behind the input, {units}", f"at most {self._end}")
        if place < self._start:
            found = f"input from {units} of epoch {epoch} asked for again, kept from {self._start}"
            raise UnavailableError("resume", found, "a client with more room (max_held_bytes)")
        self._cursor = self._first_lacking(place, flushes)
        self._count()

    def _first_lacking(self, place: Place, flushes: int) -> int:
        """Find the first entry that a service which holds so much does not hold; one that it holds in part is split."""
        for index, entry in enumerate(self._entries):
            if isinstance(entry, Chunk):
                if entry.end > place:
                    is_in_part = entry.place < place and entry.samples is None
                    held_bytes = place.byte - entry.place.byte if is_in_part else 0
                    if held_bytes:
                        self._split(index, held_bytes)
                    return index + bool(held_bytes)
            elif not (entry.place.epoch < place.epoch or (entry.kind == "flush" and entry.ordinal <= flushes)):
                return index
        return len(self._entries)

    def _split(self, index: int, at: int) -> None:
        entry = self._entries[index]
        if isinstance(entry, Chunk):
            rest = Chunk(Place(entry.place.epoch, entry.place.byte + at), entry.data[at:])
            self._entries[index : index + 1] = [Chunk(entry.place, entry.data[:at]), rest]

    def _forget(self, count: int) -> None:
        for entry in self._entries[:count]:
            if isinstance(entry, Chunk):
                self.held_bytes -= len(entry.data)
                self._start = entry.end
            elif entry.kind == "reset":
                self._start = Place(entry.place.epoch + 1, 0)
        del self._entries[:count]
        self._cursor -= count

    def _count(self) -> None:
        sizes = [len(entry.data) if isinstance(entry, Chunk) else 0 for entry in self._entries]
        self.held_bytes, self.unsent_bytes = sum(sizes[: self._cursor]), sum(sizes[self._cursor :])


def _is_before(entry: Entry, place: Place) -> bool:
    return entry.end <= place if isinstance(entry, Chunk) else entry.place < place
