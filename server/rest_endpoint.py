"""``/v1/encode`` and ``/v1/decode``: one clip, one answer. Bodies are spooled to disk, sizes and times bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from codec_core.codes_file import CodesDocument
from codec_core.errors import SettingError
from server import openapi
from server.admission import demand_of
from server.client_address import client_of
from server.conversion import decode_clip, encode_clip, most_frames, parse_body, serialize_body
from server.errors import BodyTimeoutError, BodyTooLargeError
from server.media import AUDIO_IN_MEDIA, AUDIO_OUT_MEDIA, CODES_MEDIA, RAW_MEDIA, accepted_media, content_media
from server.origin import check_origin
from server.service import ClientGoneError, Service, service_of
from server.wire_settings import (
    DECODE_CLIP_SETTINGS,
    ENCODE_CLIP_SETTINGS,
    RAW_CLIP_SETTINGS,
    StreamSettings,
    parse_settings,
    quoted,
    unique_fields,
)

router = APIRouter()
Result = TypeVar("Result")

JSON_CODE_BYTES: Final = 8
"""Generous for one code in JSON, spaces included."""
DISCARD_S: Final = 2.0
"""How long the rest of a refused body is read and dropped, so that the client gets to see the refusal."""
SEND_BYTES: Final = 65_536


@router.post("/encode", include_in_schema=False)
@router.post("/v1/encode", response_class=Response, openapi_extra=openapi.ENCODE, responses=openapi.ENCODE_RESPONSES)
async def encode(request: Request) -> Response:
    """Turn an audio file, or raw PCM, into codes.

    The last frame is padded with silence; the true sample count comes back with the codes.
    """
    service = service_of(request)
    check_origin(request, service.settings)
    settings = _settings(request, service, ENCODE_CLIP_SETTINGS)
    media = content_media(request.headers.get("content-type"), AUDIO_IN_MEDIA)
    if media != RAW_MEDIA:
        _refuse_raw_settings(request, media)
    answer_media = accepted_media(request.headers.get("accept"), tuple(CODES_MEDIA))
    with (
        service.registry.lease("conversion", client=client_of(request)) as lease,
        tempfile.TemporaryDirectory(prefix="mimi-") as folder,
    ):
        lease.load(demand_of("encode", settings.levels))
        path = Path(folder, "body")
        await _spool(request, path, service)
        document = await _while_connected(request, encode_clip(service, settings, path, raw=media == RAW_MEDIA))
        body = await asyncio.to_thread(serialize_body, document, CODES_MEDIA[answer_media])
    return Response(body, media_type=answer_media, headers=_facts(document))


@router.post("/decode", include_in_schema=False)
@router.post("/v1/decode", response_class=Response, openapi_extra=openapi.DECODE, responses=openapi.DECODE_RESPONSES)
async def decode(request: Request) -> Response:
    """Turn codes into a WAV file, 24 kHz mono 16 bits.

    Codes that carry a true sample count are trimmed to it.
    """
    service = service_of(request)
    check_origin(request, service.settings)
    settings = _settings(request, service, DECODE_CLIP_SETTINGS)
    media = content_media(request.headers.get("content-type"), tuple(CODES_MEDIA))
    answer_media = accepted_media(request.headers.get("accept"), AUDIO_OUT_MEDIA)
    levels = settings.levels if "levels" in request.query_params else None
    with (
        service.registry.lease("conversion", client=client_of(request)) as lease,
        tempfile.TemporaryDirectory(prefix="mimi-") as folder,
    ):
        lease.load(demand_of("decode", settings.levels))
        data = await _codes_body(request, service)
        document = await asyncio.to_thread(parse_body, service, data, CODES_MEDIA[media], levels)
        path = Path(folder, "clip.wav")
        await _while_connected(request, decode_clip(service, document, path))
        # The open file outlives its folder, so nothing is left behind if the client hangs up while it is sent.
        file = await asyncio.to_thread(path.open, "rb")
        size_bytes = os.fstat(file.fileno()).st_size
    headers = {"content-length": str(size_bytes), **_facts(document)}
    return StreamingResponse(_chunks(file), media_type=answer_media, headers=headers)


def _settings(request: Request, service: Service, allowed: tuple[str, ...]) -> StreamSettings:
    fields = unique_fields(request.query_params.multi_items())
    return parse_settings(fields, service.offer, allowed=allowed, from_text=True)


def _refuse_raw_settings(request: Request, media: str) -> None:
    for name in RAW_CLIP_SETTINGS:
        if name in request.query_params:
            expected = f"none with {media}, which says it itself: only for raw PCM, {RAW_MEDIA}"
            raise SettingError(name, found=quoted(request.query_params[name]), expected=expected)


def _facts(document: CodesDocument) -> dict[str, str]:
    facts = {"x-mimi-levels": str(document.levels), "x-mimi-frames": str(document.frames)}
    if document.samples is not None:
        facts["x-mimi-samples"] = str(document.samples)
    return facts


async def _spool(request: Request, path: Path, service: Service) -> None:
    with await asyncio.to_thread(path.open, "wb") as file:
        await _receive_body(request, service, service.settings.max_body_bytes, file.write)


async def _codes_body(request: Request, service: Service) -> bytes:
    """Read codes whole: the longest clip bounds them, well below what audio may have."""
    longest = most_frames(service) * service.offer.max_levels * JSON_CODE_BYTES + SEND_BYTES
    body = bytearray()
    await _receive_body(request, service, min(service.settings.max_body_bytes, longest), body.extend)
    return bytes(body)


async def _receive_body(request: Request, service: Service, limit_bytes: int, sink: Callable[[bytes], object]) -> None:
    timeout_ms = service.settings.body_timeout_ms
    received, more = 0, True
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while more:
                chunk, more = await _body_chunk(request)
                received += len(chunk)
                if received > limit_bytes:
                    await _discard(request, more)
                    raise BodyTooLargeError("body", found="a larger one", expected=f"at most {limit_bytes} bytes")
                sink(chunk)
    except TimeoutError as cause:
        raise BodyTimeoutError("body", found=f"{received} bytes", expected=f"all of it within {timeout_ms} ms") from cause


async def _body_chunk(request: Request) -> tuple[bytes, bool]:
    """Receive the next piece of a body, and whether there is more to come."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message.get("body", b""), message.get("more_body", False)


async def _discard(request: Request, more: bool) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while more:
                _, more = await _body_chunk(request)


async def _while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Run a conversion, and give it up as soon as the client hangs up."""
    working = asyncio.create_task(work)
    hung_up = asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({working, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        return working.result()
    finally:
        working.cancel()
        hung_up.cancel()
        await asyncio.gather(working, hung_up, return_exceptions=True)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(SEND_BYTES):
            yield chunk
