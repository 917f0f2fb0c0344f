"""What a client may ask of a stream or of a clip: parsed strictly, refused by name. Sans-IO, standard library only.

The same settings come as query parameters (text) or as the fields of a ``hello`` message (JSON), and mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from codec_core.errors import SettingError
from server.errors import NotOfferedError
from server.wire_talk import SAMPLING_SETTINGS, SEED_RANGE, TEMPERATURE_RANGE, TOP_K_RANGE, LanguageOffer, parts_of

MODES = ("encode", "decode", "echo", "talk")
"""The last of them only where the service has a language model."""
FORMATS = ("s16le", "f32le", "mulaw")
"""Forms of PCM."""
OPUS_FORMATS = ("opus", "opus-packets")
"""Of streams only, and only where the service can: Ogg pages, and packets by themselves."""
CODES_FORMS = ("binary", "json")
ECHO_CODES = ("off", "on")
PACES = ("real", "free")
STATS = ("off", "on")
SAMPLE_RATE_RANGE_HZ = (8_000, 96_000)
OPUS_SAMPLE_RATE_HZ = 48_000
"""The only one with Opus: its own clock, whatever rate an encoder was given."""
PRE_SKIP_RANGE = (0, 48_000)
PRE_SKIP_DEFAULT = 312
CHANNELS_MAX = 2
_DECIMAL = re.compile(r"\d{1,4}(\.\d{1,9})?", re.ASCII)

STREAM_SETTINGS = (
    "mode",
    "levels",
    "format",
    "sample_rate",
    "channels",
    "codes",
    "echo_codes",
    "numerics",
    "pace",
    "stats",
    "pre_skip",
    *SAMPLING_SETTINGS,
)
ENCODE_CLIP_SETTINGS = ("levels", "format", "sample_rate", "channels", "numerics")
RAW_CLIP_SETTINGS = ("format", "sample_rate", "channels")
"""Those of a clip that is raw PCM; an audio file says them itself."""
DECODE_CLIP_SETTINGS = ("levels", "numerics")

QUOTED_MAX_CHARS = 64


@dataclass(frozen=True)
class Offer:
    """What the loaded model and the operator allow a client to ask for."""

    default_levels: int
    max_levels: int
    codebook_entries: int
    frame_samples: int
    sample_rate_hz: int
    numerics: str
    free_pace: bool = False
    opus: bool = False
    """Whether Opus can be decoded and encoded here."""
    language: LanguageOffer | None = None
    """What mode ``talk`` can be asked for; None where it cannot."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes there are here."""
        return MODES if self.language is not None else MODES[:-1]

    def parts_of(self, mode: str) -> frozenset[str]:
        """Name the sessions that a stream of this mode has: of ``encoder``, ``decoder`` and ``language``."""
        return parts_of(mode, 0 if self.language is None else self.language.own_levels)


@dataclass(frozen=True)
class StreamSettings:
    """Settings agreed with one client; every field legal and filled in."""

    mode: str
    levels: int
    format: str
    sample_rate: int
    channels: int
    codes: str
    echo_codes: str
    numerics: str
    pace: str = PACES[0]
    stats: str = STATS[0]
    pre_skip: int = 0
    """Of ``opus-packets`` in, in samples at 48 kHz; 0 of every other format."""
    seed: int = 0
    text_temperature: float = 0.0
    text_top_k: int = 0
    temperature: float = 0.0
    top_k: int = 0
    """How the model of mode ``talk`` chooses; 0, all five, in other modes."""

    @property
    def is_opus(self) -> bool:
        """Whether sound travels as Opus."""
        return self.format in OPUS_FORMATS


def quoted(value: object) -> str:
    """Quote a value in an error text: short, printable, in the words of JSON, never the whole payload."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    text = ascii(value)
    return text if len(text) <= QUOTED_MAX_CHARS else text[:QUOTED_MAX_CHARS] + "..."


def unique_fields(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Turn pairs into a mapping; a name given twice is refused.

    Raises:
        SettingError: a name that comes twice.

    """
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise SettingError(quoted(name), found="the name twice", expected="once")
        fields[name] = value
    return fields


def parse_settings(
    fields: Mapping[str, object], offer: Offer, *, allowed: tuple[str, ...] = STREAM_SETTINGS, from_text: bool
) -> StreamSettings:
    """Read settings from named fields; what is absent takes its default.

    Args:
        fields: names and values; text values only where ``from_text`` (a query), JSON values otherwise (a ``hello``).
        offer: what the model allows.
        allowed: the names legal in this place.
        from_text: whether numbers come as decimal digits.

    Raises:
        SettingError: an unknown name, a value of the wrong type or outside its legal values.
        NotOfferedError: a name or value of the protocol that this build does not offer.

    """
    _refuse_unknown(fields, allowed)
    mode = _mode(fields, offer)
    form = _format(fields, offer, allowed)
    channels = _integer(fields, "channels", 1, (1, CHANNELS_MAX), from_text)
    if channels != 1 and (mode == "decode" or form in OPUS_FORMATS):
        why = "decoded audio is mono" if mode == "decode" else "Opus packets say it themselves"
        raise SettingError("channels", found=str(channels), expected=f"1: {why}")
    return StreamSettings(
        mode=mode,
        levels=_levels(fields, mode, offer, from_text),
        format=form,
        sample_rate=_sample_rate(fields, form, offer, from_text),
        channels=channels,
        codes=_choice(fields, "codes", CODES_FORMS),
        echo_codes=_echo_codes(fields, mode),
        numerics=_numerics(fields, offer),
        pace=_pace(fields, offer),
        stats=_choice(fields, "stats", STATS),
        pre_skip=_pre_skip(fields, form, mode, from_text),
        **_sampling(fields, offer.language if mode == "talk" else None, from_text),
    )


def _refuse_unknown(fields: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    for name in fields:
        if name not in allowed:
            raise SettingError(quoted(name), found="an unknown setting", expected=" | ".join(allowed))


def _mode(fields: Mapping[str, object], offer: Offer) -> str:
    mode = _choice(fields, "mode", MODES)
    if mode not in offer.modes:
        expected = f"{' | '.join(offer.modes)}, or a service with a language model (--language-model)"
        raise NotOfferedError("mode", found=quoted(mode), expected=expected)
    return mode


def _levels(fields: Mapping[str, object], mode: str, offer: Offer, from_text: bool) -> int:
    if mode == "talk" and offer.language is not None:
        heard = offer.language.user_levels
        return _integer(fields, "levels", heard, (heard, heard), from_text)
    return _integer(fields, "levels", offer.default_levels, (1, offer.max_levels), from_text)


def _sampling(fields: Mapping[str, object], usual: LanguageOffer | None, from_text: bool) -> dict[str, Any]:
    """Read how a language model is to choose; nothing but 0 is legal where there is none, nor of sound where it makes none."""
    talks, speaks = usual is not None, usual is not None and usual.own_levels > 0
    return {
        "seed": _integer(fields, "seed", 0, SEED_RANGE if talks else (0, 0), from_text),
        "text_temperature": _temperature(fields, "text_temperature", usual, from_text, legal=talks),
        "text_top_k": _integer(
            fields, "text_top_k", getattr(usual, "text_top_k", 0), TOP_K_RANGE if talks else (0, 0), from_text
        ),
        "temperature": _temperature(fields, "temperature", usual, from_text, legal=speaks),
        "top_k": _integer(fields, "top_k", getattr(usual, "top_k", 0), TOP_K_RANGE if speaks else (0, 0), from_text),
    }


def _temperature(
    fields: Mapping[str, object], name: str, usual: LanguageOffer | None, from_text: bool, *, legal: bool
) -> float:
    value = fields.get(name, getattr(usual, name, 0))
    if from_text and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    low, high = TEMPERATURE_RANGE
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (value == 0 or (legal and low <= float(str(value)) <= high)):
        raise SettingError(name, found=quoted(value), expected=f"0, or {low:g} .. {high:g}" if legal else "0")
    return float(str(value))


def _choice(fields: Mapping[str, object], name: str, legal: tuple[str, ...]) -> str:
    value = fields.get(name, legal[0])
    if not isinstance(value, str) or value not in legal:
        raise SettingError(name, found=quoted(value), expected=" | ".join(legal))
    return value


def _format(fields: Mapping[str, object], offer: Offer, allowed: tuple[str, ...]) -> str:
    value = fields.get("format")
    if not isinstance(value, str) or value not in OPUS_FORMATS:
        return _choice(fields, "format", FORMATS + (OPUS_FORMATS if offer.opus else ()))
    if "mode" not in allowed:
        raise NotOfferedError("format", found=quoted(value), expected=f"{' | '.join(FORMATS)}, or a body of audio/ogg")
    if not offer.opus:
        expected = f"{' | '.join(FORMATS)}, or a service with the extra opus (mimi-server[opus])"
        raise NotOfferedError("format", found=quoted(value), expected=expected)
    return value


def _sample_rate(fields: Mapping[str, object], form: str, offer: Offer, from_text: bool) -> int:
    if form not in OPUS_FORMATS:
        return _integer(fields, "sample_rate", offer.sample_rate_hz, SAMPLE_RATE_RANGE_HZ, from_text)
    return _integer(fields, "sample_rate", OPUS_SAMPLE_RATE_HZ, (OPUS_SAMPLE_RATE_HZ, OPUS_SAMPLE_RATE_HZ), from_text)


def _pre_skip(fields: Mapping[str, object], form: str, mode: str, from_text: bool) -> int:
    if form == "opus-packets" and mode != "decode":
        return _integer(fields, "pre_skip", PRE_SKIP_DEFAULT, PRE_SKIP_RANGE, from_text)
    return _integer(fields, "pre_skip", 0, (0, 0), from_text)


def _integer(fields: Mapping[str, object], name: str, default: int, legal: tuple[int, int], from_text: bool) -> int:
    low, high = legal
    value = fields.get(name, default)
    if from_text and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SettingError(
            name, found=quoted(value), expected=f"a whole number from {low} to {high}" if low < high else f"{low}"
        )
    return value


def _echo_codes(fields: Mapping[str, object], mode: str) -> str:
    value = _choice(fields, "echo_codes", ECHO_CODES)
    if value != ECHO_CODES[0] and mode != "echo":
        raise SettingError("echo_codes", found=quoted(value), expected=f"{ECHO_CODES[0]} in mode {mode}")
    return value


def _pace(fields: Mapping[str, object], offer: Offer) -> str:
    value = _choice(fields, "pace", PACES)
    if value == "free" and not offer.free_pace:
        raise SettingError("pace", found="'free'", expected="real: this service allows no other")
    return value


def _numerics(fields: Mapping[str, object], offer: Offer) -> str:
    value = fields.get("numerics", offer.numerics)
    if value != offer.numerics:
        raise SettingError("numerics", found=quoted(value), expected=f"{offer.numerics}, which the model runs under here")
    return offer.numerics
