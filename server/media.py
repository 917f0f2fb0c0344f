"""Which media types REST takes and makes, and how ``Content-Type`` and ``Accept`` choose among them."""

from __future__ import annotations

from typing import Final, Literal

from codec_core.codes_file import CodesFormat
from server.errors import NotAcceptableError, UnsupportedMediaError
from server.wire_settings import quoted

CodesForm = CodesFormat | Literal["raw"]
SoundForm = Literal["WAV", "FLAC", "OGG"]

RAW_MEDIA: Final = "application/octet-stream"
ANYTHING: Final = "*/*"
WAV_MEDIA: Final = "audio/wav"
AUDIO_FILE_MEDIA: Final = (
    WAV_MEDIA,
    "audio/x-wav",
    "audio/wave",
    "audio/vnd.wave",
    "audio/flac",
    "audio/x-flac",
    "audio/ogg",
    "application/ogg",
    "audio/opus",
    "audio/mpeg",
    "audio/mp3",
    "audio/aiff",
    "audio/x-aiff",
    "audio/basic",
)
AUDIO_IN_MEDIA: Final = (*AUDIO_FILE_MEDIA, RAW_MEDIA)
SOUND_MEDIA: Final[dict[str, SoundForm]] = {
    WAV_MEDIA: "WAV",
    "audio/flac": "FLAC",
    "audio/ogg": "OGG",
    "audio/x-wav": "WAV",
    "audio/wave": "WAV",
    "audio/vnd.wave": "WAV",
    "audio/x-flac": "FLAC",
    "application/ogg": "OGG",
}
CODES_MEDIA: Final[dict[str, CodesForm]] = {
    "application/json": "json",
    RAW_MEDIA: "raw",
    "application/x-npy": "npy",
    "application/x-mimi": "mimi",
    "application/x-safetensors": "safetensors",
}


def content_media(header: str | None, taken: tuple[str, ...]) -> str:
    """Read a ``Content-Type``, its parameters left aside.

    Raises:
        UnsupportedMediaError: none of those taken, or absent.

    """
    media = (header or "").partition(";")[0].strip().lower()
    if media not in taken:
        found = quoted(media) if media else "nothing"
        raise UnsupportedMediaError("Content-Type", found=found, expected=" | ".join(taken))
    return media


def accepted_media(header: str | None, made: tuple[str, ...]) -> str:
    """Choose from an ``Accept``: the best of what can be made, earlier ones first where the client does not mind.

    Raises:
        NotAcceptableError: nothing that can be made is accepted.

    """
    weights = dict(_media_range(part) for part in (header or ANYTHING).split(","))
    weight, best = max(((_weight(one, weights), one) for one in made), key=lambda pair: pair[0])
    if weight <= 0:
        raise NotAcceptableError("Accept", found=quoted(header), expected=" | ".join(made))
    return best


def _media_range(part: str) -> tuple[str, float]:
    media, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return media, float(parameter[2:])
            except ValueError:
                return media, 0.0
    return media, 1.0


def _weight(media: str, weights: dict[str, float]) -> float:
    """Weigh a media type by the most specific range that covers it."""
    ranges = (media, f"{media.partition('/')[0]}/*", ANYTHING)
    return next((weights[one] for one in ranges if one in weights), 0.0)
