"""Sound as Opus, to a service and back: packets of 80 ms, by themselves or each on an Ogg page of its own. Sans-IO."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from codec_core.errors import OpusDataError, UnavailableError
from codec_core.ogg import OggOpusReader, OggOpusWriter
from codec_core.opus import OpusDecoder, OpusEncoder
from codec_core.opus_packets import OPUS_RATE_HZ, OpusPacket, packet_samples
from codec_core.pcm import CODEC_RATE_HZ, PcmIntake

Float32Array = npt.NDArray[np.float32]

RATES_HZ: Final = (CODEC_RATE_HZ, OPUS_RATE_HZ)
_SERIAL: Final = 0x6D696D69


class OpusMessage(NamedTuple):
    """One message of input, never to be split."""

    data: bytes
    samples: int
    """What it stands for, at 48 kHz; positions of the stream count these."""


class OpusSender:
    """Sound in, messages out. What follows a flush is a new Opus stream.

    Args:
        in_pages: whether packets travel on Ogg pages.
        sample_rate_hz: of the sound.

    """

    def __init__(self, *, in_pages: bool, sample_rate_hz: int) -> None:
        self._in_pages = in_pages
        self._rate_hz = sample_rate_hz
        self.restart()

    def restart(self) -> None:
        """Forget what is unfinished and begin a new Opus stream."""
        self._encoder: OpusEncoder | None = None
        self._writer: OggOpusWriter | None = None
        self._waiting = np.empty(0, np.float32)
        self._samples = 0

    def push(self, pcm: Float32Array) -> list[OpusMessage]:
        """Take in float32 ``[n]`` and return the messages that it completes.

        Raises:
            UnavailableError: the package that encodes is not installed.

        """
        encoder = self._encoder
        if encoder is None:
            encoder = self._encoder = OpusEncoder(self._rate_hz)
            self._writer = OggOpusWriter(encoder.head, self._rate_hz, _SERIAL) if self._in_pages else None
        waiting = np.concatenate([self._waiting, pcm])
        whole = len(waiting) - len(waiting) % encoder.packet_samples
        self._samples += len(pcm)
        self._waiting = waiting[whole:]
        return [self._message(encoder, packet, None) for packet in waiting[:whole].reshape(-1, encoder.packet_samples)]

    def flush(self) -> list[OpusMessage]:
        """Return what is left, the encoder's own delay included, and end the Opus stream."""
        encoder, clocks = self._encoder, OPUS_RATE_HZ // self._rate_hz
        if encoder is None:
            return []
        left = len(self._waiting) + encoder.head.pre_skip // clocks
        rest = np.zeros(-(-left // encoder.packet_samples) * encoder.packet_samples, np.float32)
        rest[: len(self._waiting)] = self._waiting
        packets, end = list(rest.reshape(-1, encoder.packet_samples)), clocks * self._samples
        made = [self._message(encoder, packet, None) for packet in packets[:-1]]
        made += [self._message(encoder, packet, end) for packet in packets[-1:]]
        self.restart()
        return made

    def _message(self, encoder: OpusEncoder, pcm: Float32Array, end_samples: int | None) -> OpusMessage:
        packet = encoder.encode(pcm)
        data = packet if self._writer is None else self._writer.page(packet, end_samples=end_samples)
        return OpusMessage(data, packet_samples(packet))


class OpusReceiver:
    """Payloads in, sound out.

    Args:
        in_pages: whether packets travel on Ogg pages.
        sample_rate_hz: of the sound.

    """

    def __init__(self, *, in_pages: bool, sample_rate_hz: int) -> None:
        self._in_pages = in_pages
        self._rate_hz = sample_rate_hz
        self._decoder: OpusDecoder | None = None
        self.restart()

    def restart(self) -> None:
        """Begin a new Opus stream with the next payload."""
        self._reader = OggOpusReader()
        self._resampler = None if self._rate_hz == OPUS_RATE_HZ else PcmIntake(OPUS_RATE_HZ)
        self._is_first = True

    def decode(self, payload: bytes, width: int) -> Float32Array:
        """Decode one payload into float32 ``[n]``.

        Args:
            payload: a packet, or Ogg pages.
            width: samples of audio that it adds, at 48 kHz.

        Raises:
            OpusDataError: it is no Opus, or holds another number of samples.
            UnavailableError: the package that decodes is not installed.

        """
        if self._decoder is None:
            self._decoder = OpusDecoder()
        packets = self._reader.push(payload) if self._in_pages else [self._bare(payload, width)]
        pcm = np.concatenate([np.empty(0, np.float32), *(self._decoder.decode(packet) for packet in packets)])
        if len(pcm) != width:
            raise OpusDataError("Opus of the service", f"{len(pcm)} samples", f"{width}, as its header says")
        # All but the first and the last payload of an Opus stream are audio from end to end.
        is_last = not self._is_first and width < sum(packet.samples for packet in packets)
        self._is_first = False
        sound = pcm if self._resampler is None else self._resampler.push(pcm)
        if is_last:
            sound = sound if self._resampler is None else np.concatenate([sound, self._resampler.flush()])
            self.restart()
        return sound

    def _bare(self, packet: bytes, width: int) -> OpusPacket:
        samples = packet_samples(packet)
        first = max(0, samples - width) if self._is_first else 0
        return OpusPacket(packet, samples, first, min(samples, first + width), begins=self._is_first)


def require_opus() -> None:
    """Load what codes Opus, so that it is missed before a stream is opened.

    Raises:
        UnavailableError: the package is not installed.

    """
    try:
        OpusDecoder()
    except UnavailableError as cause:
        raise UnavailableError("sample_format: Opus", cause.found, cause.expected) from cause
