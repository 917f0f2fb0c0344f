"""Where ``mimi stream`` takes its input from: a sound file, a file of codes, raw samples on standard input, a microphone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import STANDARD_INPUT, AudioReader
from codec_core.client import StreamSettings
from codec_core.client.settings import SampleFormat
from codec_core.codes_file import FORMATS, read_codes
from codec_core.errors import SettingError
from codec_core.microphone import Microphone
from codec_core.pcm import PcmIntake

MICROPHONE: Final = "mic"
_BLOCK_BYTES: Final = 1 << 14
_BLOCK_SAMPLES: Final = 1920
_MICROPHONE_BLOCKS: Final = 500
"""Blocks of 20 ms that may wait while the service does not take them."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Source:
    """Input and the settings that it asks for."""

    settings: StreamSettings
    chunks: AsyncIterator[Array]
    """Audio float32 [n] at 24 kHz, or codes [levels, frames]. Resampled here and not by the service: a stream that is resumed
    has the same bits whichever service goes on with it."""
    samples: int | None = None
    """True length at 24 kHz, where it is known beforehand."""
    expected_frames: int | None = None
    """Frames that there will be, as far as the input says; good for a progress bar."""


def open_source(
    name: str,
    sample_rate_hz: int,
    levels: int | None,
    *,
    echo: bool,
    sample_format: SampleFormat = "f32le",
    talk: StreamSettings | None = None,
) -> Source:
    """Find out what the input is.

    Args:
        name: a path, ``mic``, or ``-`` for raw samples on standard input.
        sample_rate_hz: of raw samples.
        levels: what was asked for, or ``None``.
        echo: whether sound comes back for sound.
        sample_format: how sound travels.
        talk: settings of mode ``talk``, where a language model is to answer; sound then travels as ``sample_format`` says.

    Raises:
        CodecError: the file cannot be read, or there is no microphone.
        SettingError: levels asked for that are not those of the codes; or codes, for a language model to hear.

    """
    if Path(name).suffix.lower().removeprefix(".") in FORMATS:
        if talk is not None:
            raise SettingError("--talk", name, "sound: the language model hears no codes of a file")
        return _codes(name, levels, sample_format)
    settings = StreamSettings("echo" if echo else "encode", levels, sample_format, echo_codes=echo)
    if talk is not None:
        settings = replace(talk, levels=levels, sample_format=sample_format)
    if name == MICROPHONE:
        return Source(settings, _microphone())
    if name == STANDARD_INPUT:
        return Source(settings, _standard_input(sample_rate_hz))
    reader = AudioReader(name)
    return Source(settings, _audio(reader), expected_frames=-(-reader.expected_samples // _BLOCK_SAMPLES))


def _codes(name: str, levels: int | None, sample_format: SampleFormat) -> Source:
    document = read_codes(name)
    if levels not in (None, document.levels):
        raise SettingError("levels", str(levels), f"{document.levels}, which the codes have")
    settings = StreamSettings("decode", document.levels, sample_format)
    return Source(settings, _columns(document.codes), document.samples, document.frames)


async def _columns(codes: Array) -> AsyncIterator[Array]:
    for frame in range(codes.shape[1]):
        yield codes[:, frame : frame + 1]


async def _audio(reader: AudioReader) -> AsyncIterator[Array]:
    with reader:
        for pcm in reader.pcm():
            for start in range(0, len(pcm), _BLOCK_SAMPLES):
                yield pcm[start : start + _BLOCK_SAMPLES]


async def _standard_input(sample_rate_hz: int) -> AsyncIterator[Array]:
    intake = PcmIntake(sample_rate_hz, 1, "int16")
    split = b""
    async for data in _input_bytes():
        whole = split + data
        split = whole[len(whole) & ~1 :]
        yield intake.push(np.frombuffer(whole[: len(whole) & ~1], "<i2").astype(np.int16, copy=False))
    yield intake.flush()


async def _input_bytes() -> AsyncIterator[bytes]:
    """Yield standard input as it comes. A loop cannot wait for a plain file, which need not be waited for."""
    if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        while data := sys.stdin.buffer.read(_BLOCK_BYTES):
            yield data
        return
    reader = asyncio.StreamReader(limit=_BLOCK_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    with contextlib.closing(transport):
        while data := await reader.read(_BLOCK_BYTES):
            yield data


async def _microphone() -> AsyncIterator[Array]:
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[Array] = asyncio.Queue(_MICROPHONE_BLOCKS)

    def take(block: Array) -> None:
        # Sound that nobody takes for ten seconds is lost, as it would be in any recorder.
        with contextlib.suppress(asyncio.QueueFull):
            blocks.put_nowait(block)

    def take_from_thread(block: Array) -> None:
        loop.call_soon_threadsafe(take, block)

    with Microphone(take_from_thread) as microphone:
        intake = PcmIntake(microphone.sample_rate_hz, 1, "int16")
        while True:
            yield intake.push(await blocks.get())


async def stoppable(chunks: AsyncIterator[Array], stop: asyncio.Event) -> AsyncIterator[Array]:
    """Yield the chunks until there are no more, or until somebody says stop."""
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            following = asyncio.ensure_future(anext(chunks, None))
            await asyncio.wait([following, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                return
            chunk = following.result()
            if chunk is None:
                return
            yield chunk
    finally:
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
