"""What a client asks of a stream, and how it behaves on the line. The service checks what it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np

from codec_core.errors import SettingError
from codec_core.opus_packets import OPUS_RATE_HZ
from codec_core.pcm import CODEC_RATE_HZ

Mode = Literal["encode", "decode", "echo", "talk"]
PcmFormat = Literal["s16le", "f32le"]
OpusFormat = Literal["opus", "opus-packets"]
SampleFormat = PcmFormat | OpusFormat
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
PCM_FORMATS: Final[tuple[PcmFormat, ...]] = get_args(PcmFormat)
OPUS_FORMATS: Final[tuple[OpusFormat, ...]] = get_args(OpusFormat)
SAMPLE_FORMATS: Final[tuple[SampleFormat, ...]] = (*PCM_FORMATS, *OPUS_FORMATS)
DTYPES: Final[dict[str, np.dtype[np.generic]]] = {"s16le": np.dtype("<i2"), "f32le": np.dtype("<f4")}
CODE_BYTES: Final = 2
_OPTIONAL: Final = ("levels", "numerics", "seed", "text_temperature", "text_top_k", "temperature", "top_k")


@dataclass(frozen=True)
class StreamSettings:
    """What the stream shall be. The service checks the values it is sent and names the one that it refuses.

    Raises:
        SettingError: a mode or a format that this client does not know, or a rate that it cannot turn into Opus.

    """

    mode: Mode = "encode"
    """``encode``: audio to codes; ``decode``: codes to audio; ``echo``: audio to the audio that its codes stand for; ``talk``:
    audio to the text and audio of a language model, which the service must have."""
    levels: int | None = None
    """RVQ levels, 1 .. the model's; ``None`` for the model's default."""
    sample_format: SampleFormat = "s16le"
    """Of audio in and out. ``opus`` (Ogg pages) and ``opus-packets`` are made and undone here, by the extra ``opus``."""
    sample_rate_hz: int = 24_000
    """Of audio in and out, 8000 .. 96000. Another than 24000 is resampled by the service. With Opus 24000 or 48000."""
    channels: int = 1
    """Of audio in, 1 or 2, mixed to their mean. Audio out is mono."""
    echo_codes: bool = False
    """In mode ``echo``, whether each frame's codes come too, before its audio."""
    free_pace: bool = False
    """Whether the service shall read as fast as it can, which it must allow; else it reads at most a few times real time."""
    numerics: str | None = None
    """An assertion: a service whose model runs under others refuses."""
    seed: int | None = None
    """In mode ``talk``, of the model's choices: the same seed and input make the same answer."""
    text_temperature: float | None = None
    """In mode ``talk``, how freely text is chosen; 0 is greedy, ``None`` as published. So the three that follow."""
    text_top_k: int | None = None
    """Text tokens that take part in a choice; 0 for all."""
    temperature: float | None = None
    """Of codes."""
    top_k: int | None = None
    """Codes that take part in a choice."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SettingError("mode", repr(self.mode), " | ".join(MODES))
        if self.sample_format not in SAMPLE_FORMATS:
            raise SettingError("sample_format", repr(self.sample_format), " | ".join(SAMPLE_FORMATS))
        if self.is_opus and self.sample_rate_hz not in (CODEC_RATE_HZ, OPUS_RATE_HZ):
            expected = f"{CODEC_RATE_HZ} or {OPUS_RATE_HZ} with {self.sample_format}"
            raise SettingError("sample_rate_hz", str(self.sample_rate_hz), expected)

    @property
    def is_opus(self) -> bool:
        """Whether audio travels as Opus."""
        return self.sample_format in OPUS_FORMATS

    @property
    def wire_rate_hz(self) -> int:
        """Rate at which positions of audio are counted."""
        return OPUS_RATE_HZ if self.is_opus else self.sample_rate_hz

    def hello(self) -> dict[str, object]:
        """Return the fields of the message that asks for these settings; what is left to the service is not in it."""
        fields: dict[str, object] = {"mode": self.mode, "format": self.sample_format, "sample_rate": self.wire_rate_hz}
        if self.mode != "decode" and not self.is_opus:
            fields["channels"] = self.channels
        if self.echo_codes:
            fields["echo_codes"] = "on"
        if self.free_pace:
            fields["pace"] = "free"
        optional = {name: getattr(self, name) for name in _OPTIONAL}
        return fields | {name: value for name, value in optional.items() if value is not None}

    def unit_bytes(self, levels: int) -> int:
        """Count the bytes of one unit of input: a sample of all channels, or in mode ``decode`` a frame of codes.

        Opus has no bytes a sample: there places in the input are samples themselves.
        """
        if self.mode == "decode":
            return CODE_BYTES * levels
        return 1 if self.is_opus else DTYPES[self.sample_format].itemsize * self.channels


@dataclass(frozen=True)
class LineOptions:
    """How the client behaves on the line. Times in milliseconds; every buffer has a bound."""

    key: str | None = field(default=None, repr=False)
    """One of the service's keys, where it asks for one; sent as ``Authorization: Bearer``."""
    token: str | None = field(default=None, repr=False)
    """A short-lived token instead of a key; sent as the query parameter ``token``."""
    resume: bool = True
    """Whether a lost connection is made again and the stream goes on where it was, bit for bit."""
    give_up_ms: int | None = None
    """How long a lost connection is tried again; ``None`` for as long as the service keeps the stream."""
    wait_for_place_ms: int = 0
    """How long a service that is full, draining or away is asked again at the start."""
    first_delay_ms: int = 100
    """Before the first new try; each further one waits up to twice as long, evenly at random from zero up."""
    longest_delay_ms: int = 5_000
    open_timeout_ms: int = 10_000
    """For a connection to come about, settings included."""
    close_timeout_ms: int = 5_000
    """For what was sent to be answered when the stream is closed."""
    ping_interval_ms: int = 20_000
    ping_timeout_ms: int = 20_000
    """Silence after a ping from which the service counts as dead, even if no packet says so."""
    max_unsent_bytes: int = 1 << 18
    """Input waiting to be sent; :meth:`Stream.send` waits while there is more."""
    max_held_bytes: int = 1 << 25
    """Input kept so that it can be sent again after a crash of the service. What is beyond is forgotten, the oldest first."""
    max_received_frames: int = 256
    """Frames waiting to be read; then the client stops reading, and the service stops answering."""
