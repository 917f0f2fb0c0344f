"""``/v1/encode`` and ``/v1/decode``: one clip, one answer.

The body comes first, spooled, within its size and time. Only then a place is taken, held while the codec works, and given back
whether or not the client has read its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response

from codec_core.errors import SettingError
from server import openapi
from server.admission import demand_of
from server.answer import Answer, AnswerResponse
from server.client_address import client_of
from server.clip_source import ClipSource
from server.codes_body import most_body_bytes, most_frames, parse_body
from server.conversion import decode_clip, encode_clip
from server.media import AUDIO_IN_MEDIA, CODES_MEDIA, RAW_MEDIA, SOUND_MEDIA, accepted_media, content_media
from server.origin import check_origin
from server.request_body import hung_up, receive_body
from server.service import ClientGoneError, Service, service_of
from server.session_registry import Lease
from server.spool import Spool, in_thread
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

Making = Callable[[Answer, Lease], Coroutine[Any, Any, None]]


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
    body = await receive_body(request, service, service.settings.max_body_bytes)
    most_samples = most_frames(service) * service.offer.frame_samples
    source = ClipSource(body.file, settings, media == RAW_MEDIA, most_samples)

    async def make(answer: Answer, lease: Lease) -> None:
        lease.load(demand_of("encode", settings.levels))
        await encode_clip(service, source, CODES_MEDIA[answer_media], answer)

    return await _answer(request, body, answer_media, make)


@router.post("/decode", include_in_schema=False)
@router.post("/v1/decode", response_class=Response, openapi_extra=openapi.DECODE, responses=openapi.DECODE_RESPONSES)
async def decode(request: Request) -> Response:
    """Turn codes into sound, 24 kHz mono.

    Codes that carry a true sample count are trimmed to it.
    """
    service = service_of(request)
    check_origin(request, service.settings)
    settings = _settings(request, service, DECODE_CLIP_SETTINGS)
    media = content_media(request.headers.get("content-type"), tuple(CODES_MEDIA))
    answer_media = accepted_media(request.headers.get("accept"), tuple(SOUND_MEDIA))
    levels = settings.levels if "levels" in request.query_params else None
    body = await receive_body(request, service, most_body_bytes(service))

    async def make(answer: Answer, lease: Lease) -> None:
        data = await in_thread(body.read, 0, body.size_bytes)
        document = await in_thread(parse_body, service, data, CODES_MEDIA[media], levels)
        lease.load(demand_of("decode", document.levels))
        await decode_clip(service, document, SOUND_MEDIA[answer_media], answer)

    return await _answer(request, body, answer_media, make)


async def _answer(request: Request, body: Spool, media_type: str, make: Making) -> Response:
    """Begin an answer in a place of its own; what is refused before it begins is raised."""
    service = service_of(request)
    answer = Answer(Spool(service.spool_budget, service.settings.spool_memory_bytes), body)

    async def make_in_place() -> None:
        with service.registry.lease("conversion", client=client_of(request)) as lease, body:
            await make(answer, lease)

    answer.start(make_in_place())
    beginning = asyncio.create_task(answer.begun())
    listening = asyncio.create_task(hung_up(request.receive))
    try:
        await asyncio.wait({beginning, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not beginning.done():
            raise ClientGoneError
        beginning.result()
    except BaseException:
        await answer.close()
        raise
    finally:
        beginning.cancel()
        listening.cancel()
        await asyncio.gather(beginning, listening, return_exceptions=True)
    return AnswerResponse(answer, media_type, service.settings.send_timeout_ms)


def _settings(request: Request, service: Service, allowed: tuple[str, ...]) -> StreamSettings:
    fields = unique_fields(request.query_params.multi_items())
    return parse_settings(fields, service.offer, allowed=allowed, from_text=True)


def _refuse_raw_settings(request: Request, media: str) -> None:
    for name in RAW_CLIP_SETTINGS:
        if name in request.query_params:
            expected = f"none with {media}, which says it itself: only for raw PCM, {RAW_MEDIA}"
            raise SettingError(name, found=quoted(request.query_params[name]), expected=expected)
