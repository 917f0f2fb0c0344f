"""One clip through the codec for REST: frame by frame through the executor, so that clips and streams share its batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import AudioReader, open_wav
from codec_core.codes_file import CodesDocument, CodesFormat, parse_codes, serialize_codes
from codec_core.errors import AudioFileError, CodeRangeError, CodesFileError, SettingError
from codec_core.framing import FrameAccumulator
from server.errors import BodyTooLargeError
from server.frame_errors import naming_frame
from server.media import CodesForm
from server.sample_format import AudioIntake
from server.service import Service, version
from server.wire_settings import StreamSettings

Array = npt.NDArray[Any]
Item = TypeVar("Item")

RAW_BLOCK_BYTES: Final = 65_536
WRITE_FRAMES: Final = 25
"""Frames written to the file at once."""


def most_frames(service: Service) -> int:
    """Count the frames of the longest clip that is taken."""
    return service.settings.max_clip_ms // 80


async def encode_clip(service: Service, settings: StreamSettings, path: Path, *, raw: bool) -> CodesDocument:
    """Encode a file.

    Args:
        service: the service.
        settings: levels, and what ``raw`` PCM is made of.
        path: an audio file, or raw PCM.
        raw: which of the two.

    Raises:
        AudioFileError, PayloadError, NonFiniteInputError: the file is refused.
        NumericOverflowError: a frame drives the network out of range; it is named.
        BodyTooLargeError: the clip is longer than one may be.

    """
    pieces = _raw_pieces(path, settings) if raw else _file_pieces(path)
    frames = FrameAccumulator(service.offer.frame_samples)
    encoder = service.model.encoder(settings.levels)
    rows: list[Array] = []
    samples = 0

    async def encode(pcm_frames: Array) -> None:
        for pcm in pcm_frames:
            with naming_frame(len(rows)):
                rows.append(await service.executor.encode(encoder, pcm))

    try:
        async for piece in _in_thread(pieces):
            samples += len(piece)
            _check_length(service, samples)
            await encode(frames.push(piece))
        await encode(frames.flush())
    finally:
        service.executor.retire(encoder)
    codes = np.array(rows, np.int32).reshape(-1, settings.levels).T
    return CodesDocument(np.ascontiguousarray(codes), samples, provenance(service))


async def decode_clip(service: Service, document: CodesDocument, path: Path) -> int:
    """Decode codes to a WAV file and return its samples: the document's own count where it has one, else whole frames."""
    wanted = document.frames * service.offer.frame_samples if document.samples is None else document.samples
    decoder = service.model.decoder(document.levels)
    written = 0
    try:
        with open_wav(path) as writer:
            for first in range(0, document.frames, WRITE_FRAMES):
                block: list[Array] = []
                for index, codes in enumerate(document.codes[:, first : first + WRITE_FRAMES].T, first):
                    with naming_frame(index):
                        block.append(await service.executor.decode(decoder, codes))
                pcm = np.concatenate(block)[: wanted - written]
                await asyncio.to_thread(writer.write, pcm)
                written += len(pcm)
    finally:
        service.executor.retire(decoder)
    return written


def parse_body(service: Service, data: bytes, form: CodesForm, levels: int | None) -> CodesDocument:
    """Read codes from a body and check all of them before any is decoded.

    Args:
        service: the service.
        data: the body.
        form: how it is laid out.
        levels: levels to decode; ``None`` for as many as the body has, or the model's default for ``raw``, which does not say.

    Raises:
        CodesFileError, CodeRangeError: the body is refused, naming level and frame where it is one code.
        SettingError: more levels asked for than the body has.
        BodyTooLargeError: the clip is longer than one may be.

    """
    offer = service.offer
    document = _raw_codes(data, levels or offer.default_levels) if form == "raw" else parse_codes(data, form, "body")
    if levels is not None and levels > document.levels:
        raise SettingError("levels", found=str(levels), expected=f"at most {document.levels}, as the body has")
    codes = document.codes[:levels]
    if len(codes) > offer.max_levels:
        raise CodesFileError("body: levels", found=str(len(codes)), expected=f"at most {offer.max_levels}, as the model has")
    _check_length(service, document.frames * offer.frame_samples)
    outside = codes >= offer.codebook_entries
    if outside.any():
        level, frame = np.unravel_index(int(np.argmax(outside)), codes.shape)
        expected = f"0 .. {offer.codebook_entries - 1}"
        raise CodeRangeError(f"codes[level {level}][frame {frame}]", found=str(codes[level, frame]), expected=expected)
    return CodesDocument(codes, document.samples, document.provenance)


def serialize_body(document: CodesDocument, form: CodesForm) -> bytes:
    """Lay codes out as one of the forms of :mod:`server.media`."""
    if form == "raw":
        return document.codes.T.astype("<u2").tobytes()
    chosen: CodesFormat = form
    return serialize_codes(document, chosen)


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


def _raw_codes(data: bytes, levels: int) -> CodesDocument:
    if len(data) % (2 * levels):
        expected = f"whole frames of {2 * levels} bytes: u16 of {levels} levels"
        raise CodesFileError("body", found=f"{len(data)} bytes", expected=expected)
    return CodesDocument(np.ascontiguousarray(np.frombuffer(data, "<u2").reshape(-1, levels).T, dtype=np.int32))


def _check_length(service: Service, samples: int) -> None:
    if samples > most_frames(service) * service.offer.frame_samples:
        raise BodyTooLargeError("clip", found="a longer one", expected=f"at most {service.settings.max_clip_ms} ms of audio")


def _file_pieces(path: Path) -> Iterator[Array]:
    try:
        with AudioReader(path) as reader:
            yield from reader.pcm()
    except AudioFileError as error:
        raise AudioFileError(error.subject.replace(str(path), "body"), error.found, error.expected) from error


def _raw_pieces(path: Path, settings: StreamSettings) -> Iterator[Array]:
    intake = AudioIntake(settings)
    with path.open("rb") as file:
        while data := file.read(RAW_BLOCK_BYTES):
            yield intake.push(data)
    yield intake.flush()


async def _in_thread(items: Iterator[Item]) -> AsyncIterator[Item]:
    """Draw from a blocking iterator without blocking the event loop."""
    while (item := await asyncio.to_thread(next, items, None)) is not None:
        yield item
