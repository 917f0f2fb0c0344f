"""Rooms of the Mimi module of Kyutai's moshi-server: one sender of codes, any number of listeners to the sound. No sockets.

Binary messages, whose first byte says what they are. A sender's: 9 and a frame of codes, u32 little-endian each; 2 and text.
A listener's: 0 and eight zeros, first of all; 1 and Ogg pages of Opus; 2 and the sender's text; 5 and why it is over; 6, every
five seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CodecError, CodeRangeError, UnavailableError
from codec_core.ogg import OggOpusWriter
from codec_core.opus import OpusEncoder, is_installed
from codec_core.pcm import CODEC_RATE_HZ
from server.errors import CapacityError, NotFoundError, PayloadError, TooSlowError
from server.outbox import Outbox
from server.settings import Settings
from server.wire_settings import Offer, quoted

HANDSHAKE: Final = bytes(9)
AUDIO: Final = 1
TEXT: Final = 2
ERROR: Final = 5
PING: Final = bytes([6])
CODES: Final = 9
CODE_BYTES: Final = 4
SERIAL: Final = 0x6D696D69


class Listener:
    """One who listens: messages that wait, bounded; told when there are too many.

    Args:
        most: messages that may wait.

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._ended = False
        self.outbox = Outbox()

    def offer(self, message: bytes) -> bool:
        """Give a message; return whether it goes on listening. One for whom too many wait is ended: nothing is left out."""
        if self._waiting >= self._most:
            found = f"{self._waiting} messages left unread"
            self.end(TooSlowError("listener", found=found, expected=f"at most {self._most}; none is left out"))
        if not self._ended:
            self._waiting += 1
            self.outbox.preload([message])
        return not self._ended

    def end(self, error: CodecError) -> None:
        """Give nothing more, for this reason; what waits is still handed out."""
        if not self._ended:
            self._ended = True
            self.outbox.finish(error)

    async def next(self) -> bytes:
        """Wait for the next message.

        Raises:
            CodecError: why there is none.

        """
        message = await self.outbox.get()
        self._waiting -= 1
        return message if isinstance(message, bytes) else b""


class Room:
    """One room: its encoder, which outlives its senders, and those who listen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._encoder: OpusEncoder | None = None
        self._writer: OggOpusWriter | None = None
        self._listeners: set[Listener] = set()
        self._has_sender = False
        self._header = b""
        self._encoding = asyncio.Lock()
        self._begun: set[asyncio.Task[None]] = set()

    def enter(self, retry_after_ms: int) -> None:
        """Become the sender.

        Raises:
            CapacityError: there is one.

        """
        if self._has_sender:
            expected = "one sender at a time"
            raise CapacityError(f"room {self.name}", "a sender", expected, retry_after_ms=retry_after_ms)
        self._has_sender = True

    def leave(self) -> None:
        """Make place for another sender."""
        self._has_sender = False

    def listen(self, most: int) -> Listener:
        """Begin to listen, from here on."""
        listener = Listener(most)
        self._listeners.add(listener)
        return listener

    def forget(self, listener: Listener) -> None:
        """Let somebody go."""
        self._listeners.discard(listener)

    async def header(self) -> bytes:
        """Return the pages with which every listener begins."""
        await self._to_its_end(self._prepare())
        return self._header

    async def play(self, pcm: npt.NDArray[np.float32]) -> None:
        """Let everybody hear a frame. Cancelled, it is heard all the same: the pages that follow count on it."""
        await self._to_its_end(self._play(pcm))

    def tell(self, message: bytes) -> None:
        """Give a message to everybody."""
        self._listeners = {listener for listener in self._listeners if listener.offer(message)}

    async def _prepare(self) -> None:
        async with self._encoding:
            await asyncio.to_thread(self._open)

    async def _play(self, pcm: npt.NDArray[np.float32]) -> None:
        async with self._encoding:
            self.tell(bytes([AUDIO]) + await asyncio.to_thread(self._page, pcm))

    async def _to_its_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for work with the encoder, which one thread at a time may use; it goes on where nobody waits any more."""
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        await asyncio.shield(task)

    def _open(self) -> tuple[OpusEncoder, OggOpusWriter]:
        if self._encoder is None or self._writer is None:
            self._encoder = OpusEncoder(CODEC_RATE_HZ)
            self._writer = OggOpusWriter(self._encoder.head, CODEC_RATE_HZ, SERIAL)
            self._header = self._writer.header()
        return self._encoder, self._writer

    def _page(self, pcm: npt.NDArray[np.float32]) -> bytes:
        encoder, writer = self._open()
        return writer.page(encoder.encode(pcm))


class Rooms:
    """All rooms of the service.

    Args:
        settings: the service's; without names of rooms there are none.

    Raises:
        UnavailableError: rooms are asked for, and the package for Opus is not installed.

    """

    def __init__(self, settings: Settings) -> None:
        names = settings.moshi_room_list
        if names and not is_installed():
            raise UnavailableError("moshi_rooms", "no package for Opus", "the extra opus: pip install 'mimi-server[opus]'")
        self._rooms = {name: Room(name) for name in names}
        self._default = names[0] if names else ""

    def find(self, name: str | None) -> Room:
        """Look a room up; the first, where no name is said.

        Raises:
            NotFoundError: there is none of this name.

        """
        room = self._rooms.get(self._default if name is None else name)
        if room is None:
            raise NotFoundError("room_id", found=quoted(name), expected=" | ".join(self._rooms))
        return room


def parse_codes(message: bytes, levels: int | None, offer: Offer) -> npt.NDArray[np.int32]:
    """Read a frame of codes off a sender's message.

    Args:
        message: with its first byte.
        levels: those of the frames before; ``None`` before the first.
        offer: what the model allows.

    Raises:
        PayloadError: no whole codes, or another number of them than before.
        CodeRangeError: a code outside the codebook.

    """
    size_bytes = len(message) - 1
    count = size_bytes // CODE_BYTES
    legal = f"1 .. {offer.max_levels}" if levels is None else str(levels)
    if size_bytes % CODE_BYTES or not 1 <= count <= offer.max_levels or levels not in (None, count):
        raise PayloadError("codes", found=f"{size_bytes} bytes", expected=f"{legal} codes, u32 each")
    codes = np.frombuffer(message, "<u4", offset=1)
    outside = codes >= offer.codebook_entries
    if outside.any():
        level = int(np.argmax(outside))
        raise CodeRangeError(f"codes[level {level}]", found=str(codes[level]), expected=f"0 .. {offer.codebook_entries - 1}")
    return codes.astype(np.int32)
