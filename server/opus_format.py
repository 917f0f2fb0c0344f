"""Opus of the wire to the codec's samples and back: the formats ``opus`` (Ogg pages) and ``opus-packets``.

It takes the place of :mod:`server.sample_format` in a stream. Decoders and encoders stay with the process: a stream goes on
with them after a lost connection, but they cannot be put into a snapshot.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from codec_core.ogg import OggOpusWriter
from codec_core.opus import OpusDecoder, OpusEncoder
from codec_core.opus_packets import OPUS_RATE_HZ, OpusPacket
from codec_core.pcm import CODEC_RATE_HZ
from server.resampling import Float32Array, Resampler
from server.wire_messages import KIND_OPUS
from server.wire_opus import OpusPlace, Packets
from server.wire_settings import StreamSettings

CLOCKS: Final = OPUS_RATE_HZ // CODEC_RATE_HZ
SERIAL: Final = 0x6D696D69
"""Of every stream that is sent: the same answers have the same bytes."""


class OpusIntake:
    """One stream's packets in, 24 kHz mono float32 out."""

    def __init__(self) -> None:
        self._decoder: OpusDecoder | None = None
        self._resampler = Resampler(OPUS_RATE_HZ, CODEC_RATE_HZ)
        self.received_samples = 0
        """Samples of audio taken in, at 48 kHz: pre-skip and what was trimmed left out."""
        self.position = 0
        """Samples of all packets taken in, at 48 kHz, whole: where the client goes on after a lost connection."""
        self.place: OpusPlace | None = None
        """Of the reader, behind the last packets."""

    def push(self, event: Packets) -> Float32Array:
        """Take in packets and return the samples that are ready, which may be none. Takes time: call it off the event loop.

        Raises:
            OpusDataError: the decoder refuses one.

        """
        ready = [self._resampler.push(self._decoded(packet)) for packet in event.packets]
        self.place = event.place or self.place
        return np.concatenate([np.empty(0, np.float32), *ready])

    def flush(self) -> Float32Array:
        """Return what the resampler held back."""
        return self._resampler.flush()

    def drop_split_sample(self) -> None:
        """Do nothing: packets and pages come whole or not at all."""

    def _decoded(self, packet: OpusPacket) -> Float32Array:
        if self._decoder is None:
            self._decoder = OpusDecoder()
        pcm = self._decoder.decode(packet)
        self.position += packet.samples
        self.received_samples += len(pcm)
        return pcm


class OpusOutlet:
    """One stream's 24 kHz mono float32 in, a packet a frame out. What follows a flush is a new Opus stream."""

    kind: Final = KIND_OPUS

    def __init__(self, settings: StreamSettings) -> None:
        self._in_pages = settings.format == "opus"
        self._encoder: OpusEncoder | None = None
        self._writer: OggOpusWriter | None = None
        self._stream_samples = 0
        self._packets = 0
        self.width = 0
        """Of the header of what was handed out last: the samples of audio that it adds, at 48 kHz."""
        self.sent_samples = 0
        """Samples of audio handed out, at 48 kHz."""

    def push(self, pcm: Float32Array) -> bytes:
        """Encode a frame. Takes time: call it off the event loop."""
        if self._encoder is None:
            self._encoder = OpusEncoder(CODEC_RATE_HZ)
            self._writer = OggOpusWriter(self._encoder.head, CODEC_RATE_HZ, SERIAL) if self._in_pages else None
        samples = CLOCKS * len(pcm)
        self._stream_samples += samples
        self.sent_samples += samples
        self.width = samples - (0 if self._packets else self._encoder.head.pre_skip)
        return self._encoded(self._encoder, pcm, None)

    def flush(self) -> bytes:
        """Encode what the encoder holds back, with the end of the stream; nothing where there is no stream."""
        encoder, samples = self._encoder, self._stream_samples
        if encoder is None:
            return b""
        payload = self._encoded(encoder, np.zeros(encoder.packet_samples, np.float32), samples)
        self._encoder = self._writer = None
        self._stream_samples = self._packets = 0
        self.width = encoder.head.pre_skip
        return payload

    def _encoded(self, encoder: OpusEncoder, pcm: Float32Array, end_samples: int | None) -> bytes:
        packet = encoder.encode(pcm)
        self._packets += 1
        return packet if self._writer is None else self._writer.page(packet, end_samples=end_samples)
