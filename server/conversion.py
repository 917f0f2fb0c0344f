"""One clip through the codec for REST: frame by frame through the executor, so that clips and streams share its batches.

What is laid out frame by frame, codes as ``raw`` and ``mimi`` and sound as WAV, goes into the answer as it is made, since its
length is known before: audio is read once to count it, and only then encoded. The rest is put together at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import open_sound
from codec_core.codes_document import CodesDocument
from codec_core.codes_file import serialize_codes
from codec_core.codes_json import codes_json_pieces
from codec_core.framing import FrameAccumulator
from codec_core.pcm import to_int16
from codec_core.wav_header import HEADER_BYTES, wav_header
from server.answer import Answer
from server.clip_source import ClipSource
from server.errors import NotAcceptableError
from server.frame_errors import naming_frame
from server.media import CodesForm, SoundForm
from server.service import Service, version
from server.spool import in_thread

Array = npt.NDArray[Any]
Item = TypeVar("Item")
Sink = Callable[[Array], Awaitable[None]]

WRITE_FRAMES: Final = 25
"""Frames put into a file at once."""


async def encode_clip(service: Service, source: ClipSource, form: CodesForm, answer: Answer) -> None:
    """Encode audio into an answer.

    Args:
        service: the service.
        source: the audio, and the levels.
        form: how the codes are laid out.
        answer: where they go.

    Raises:
        AudioFileError, PayloadError, NonFiniteInputError: the body is refused.
        NumericOverflowError: a frame drives the network out of range; it is named.
        BodyTooLargeError: the clip is longer than one may be.

    """
    if form == "raw" or form == "mimi":  # noqa: PLR1714 - mypy narrows only this spelling
        await _stream_codes(service, source, form, answer)
        return
    blocks: list[Array] = [np.zeros((0, source.settings.levels), np.int32)]

    async def keep(block: Array) -> None:
        blocks.append(block)

    samples = await _encode(service, source, keep)
    codes = await in_thread(lambda: np.ascontiguousarray(np.concatenate(blocks).T))
    document = CodesDocument(codes, samples, provenance(service))
    _describe(answer, source, document.frames, samples)
    async for piece in drawn(codes_json_pieces(document) if form == "json" else iter([serialize_codes(document, form)])):
        await answer.write(piece)


async def decode_clip(service: Service, document: CodesDocument, form: SoundForm, answer: Answer) -> None:
    """Decode codes into an answer: the document's own count of samples where it has one, else whole frames.

    Raises:
        NumericOverflowError: a frame drives the network out of range; it is named.
        NotAcceptableError: no samples, in a form that has no files without any.

    """
    samples = document.frames * service.offer.frame_samples if document.samples is None else document.samples
    answer.describe_document(document)
    if form == "WAV":
        answer.expect(HEADER_BYTES + 2 * samples)
        await _stream_wav(service, document, samples, answer)
    elif samples == 0:
        raise NotAcceptableError("Accept", found=f"{form} for a clip of no samples", expected="audio/wav")
    else:
        await _write_sound(service, document, samples, form, answer)


def provenance(service: Service) -> dict[str, str]:
    """Say which model and program made the codes."""
    info = service.model.info
    return {
        "model": info.name,
        "model_sha256": info.sha256,
        "weight_class": info.weight_class,
        "numerics": info.numerics,
        "software": f"mimi-server {version()}",
    }


async def drawn(items: Iterator[Item]) -> AsyncIterator[Item]:
    """Draw from a blocking iterator without blocking the event loop."""
    while (item := await in_thread(next, items, None)) is not None:
        yield item


async def _stream_codes(service: Service, source: ClipSource, form: Literal["raw", "mimi"], answer: Answer) -> None:
    samples = 0
    async for piece in drawn(source.pieces()):
        samples += len(piece)
    frames, levels = -(-samples // service.offer.frame_samples), source.settings.levels
    header = serialize_codes(CodesDocument(np.zeros((levels, 0), np.int32)), "mimi") if form == "mimi" else b""
    _describe(answer, source, frames, samples)
    answer.expect(len(header) + 2 * levels * frames)

    async def send(block: Array) -> None:
        nonlocal header
        await answer.write(header + block.astype("<u2").tobytes())
        header = b""

    await _encode(service, source, send)
    await answer.write(header)


def _describe(answer: Answer, source: ClipSource, frames: int, samples: int) -> None:
    answer.describe(source.settings.levels, frames, samples)
    if source.shortfall is not None:
        answer.headers["x-mimi-warning"] = source.shortfall


async def _encode(service: Service, source: ClipSource, sink: Sink) -> int:
    """Hand codes out block by block, [frames, levels]; return the samples encoded, without the last frame's padding."""
    accumulator = FrameAccumulator(service.offer.frame_samples)
    encoder = service.model.encoder(source.settings.levels)
    samples = frames = 0

    async def encode(block: Array) -> None:
        nonlocal frames
        codes = np.empty((len(block), source.settings.levels), np.int32)
        for row, pcm in enumerate(block):
            with naming_frame(frames):
                codes[row] = await service.executor.encode(encoder, pcm)
            frames += 1
        if len(block):
            await sink(codes)

    try:
        async for piece in drawn(source.pieces()):
            samples += len(piece)
            await encode(accumulator.push(piece))
        await encode(accumulator.flush())
    finally:
        service.executor.retire(encoder)
    return samples


async def _decode(service: Service, document: CodesDocument, samples: int, sink: Sink) -> None:
    """Hand sound out block by block, float32, ``samples`` in all."""
    decoder = service.model.decoder(document.levels)
    try:
        for first in range(0, document.frames, WRITE_FRAMES):
            block: list[Array] = []
            for index, codes in enumerate(document.codes[:, first : first + WRITE_FRAMES].T, first):
                with naming_frame(index):
                    block.append(await service.executor.decode(decoder, codes))
            await sink(np.concatenate(block)[: samples - first * service.offer.frame_samples])
    finally:
        service.executor.retire(decoder)


async def _stream_wav(service: Service, document: CodesDocument, samples: int, answer: Answer) -> None:
    header = wav_header(samples, service.offer.sample_rate_hz)

    async def send(pcm: Array) -> None:
        nonlocal header
        await answer.write(header + to_int16(pcm).astype("<i2").tobytes())
        header = b""

    await _decode(service, document, samples, send)
    await answer.write(header)


async def _write_sound(
    service: Service, document: CodesDocument, samples: int, form: Literal["FLAC", "OGG"], answer: Answer
) -> None:
    with open_sound(answer.spool.file, form) as writer:
        await _decode(service, document, samples, lambda pcm: in_thread(writer.write, pcm))
    await asyncio.to_thread(answer.spool.adopt)
