"""What must not show in a model's results: chunks, batches, threads, instruction sets, other sessions, the past before a reset.

Every property is tried at two places of one stream: at its start, and where the attention ring wraps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from codec_core.difference import Difference, compare_codes, compare_sound
from codec_core.errors import InputError
from codec_core.model import CodecModel
from codec_core.session import DecoderSession, EncoderSession
from codec_core.variant import open_variant

SPAN_FRAMES: Final = 6
STEPS_PER_FRAME: Final = 2
FRAMES_BEFORE_THE_WRAP: Final = 2
SLOW_SPAN_FRAMES: Final = 4
"""Frames for ``scalar``, which is twenty times slower than the others; the wrap is still among them."""
BATCHES: Final = (2, 3, 8)
CHUNKS: Final = {"single samples and primes": (1, 1, 2, 3, 1009, 4099), "around a frame": (1919, 1921), "halves": (960,)}

Codes = npt.NDArray[np.int32]
Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Span:
    """Consecutive frames of the reference stream, with the state that it had before them."""

    name: str
    first: int
    pcm: Float32Array
    """float32 [frames, frame_samples]"""
    codes: Codes
    """int32 [levels, frames]"""
    sound: Float32Array
    """float32 [frames * frame_samples]: ``codes`` decoded."""
    encoder_state: bytes
    decoder_state: bytes

    def head(self, frames: int) -> Span:
        """Return the first frames of the span only."""
        sound = self.sound[: frames * self.pcm.shape[1]]
        return replace(self, pcm=self.pcm[:frames], codes=self.codes[:, :frames], sound=sound)


class ReferenceStream:
    """One stream through a model, frame by frame, alone, on one thread: what everything else must equal."""

    def __init__(self, model: CodecModel) -> None:
        """Name the model; the stream is run when its spans are first asked for."""
        self.model = model
        self.wrap_frame = -(-model.info.context_steps // STEPS_PER_FRAME)

    @property
    def frames(self) -> int:
        """Length of the stream."""
        return self.wrap_frame - FRAMES_BEFORE_THE_WRAP + SPAN_FRAMES

    @cached_property
    def spans(self) -> tuple[Span, Span]:
        """The start of the stream, and where its ring wraps."""
        pcm = test_signal(self.frames, self.model.info.frame_samples)
        levels = self.model.info.levels
        encoder, decoder = self.model.encoder(levels), self.model.decoder(levels)
        places = {0: "start", self.frames - SPAN_FRAMES: "past the ring"}
        states, codes, sound = {}, [], []
        for frame, samples in enumerate(pcm):
            if frame in places:
                states[frame] = encoder.snapshot(), decoder.snapshot()
            codes.append(encoder.encode(samples))
            sound.append(decoder.decode(codes[-1]))

        def span(first: int) -> Span:
            part = slice(first, first + SPAN_FRAMES)
            return Span(places[first], first, pcm[part], np.array(codes[part]).T, np.concatenate(sound[part]), *states[first])

        start, wrap = (span(first) for first in places)
        return start, wrap


def test_signal(frames: int, frame_samples: int) -> Float32Array:
    """Return a gliding tone in noise, float32 [frames, frame_samples]: no frame is like another, none is silent."""
    at_s = np.arange(frames * frame_samples) / 24000
    tone = 0.2 * np.sin(2 * np.pi * (110 + 15 * at_s) * at_s)
    noise = np.random.default_rng(24).standard_normal(len(at_s)) * 0.02
    return (tone + noise).astype(np.float32).reshape(frames, frame_samples)


def check_chunks(stream: ReferenceStream) -> Difference | None:
    """Cut the same samples into chunks of many sizes, and the codes into single frames and pairs."""
    for span in stream.spans:
        for sizes in CHUNKS.values():
            session = stream.model.restore_encoder(span.encoder_state)
            pieces = [session.push(chunk) for chunk in _cut(span.pcm.reshape(-1), sizes)]
            if difference := _compare_codes(span, np.concatenate(pieces, axis=1)):
                return difference
        for width in (1, 2):
            decoder = stream.model.restore_decoder(span.decoder_state)
            sound = [decoder.push(span.codes[:, i : i + width]) for i in range(0, SPAN_FRAMES, width)]
            if difference := _compare_sound(span, np.concatenate(sound)):
                return difference
    return None


def check_batches(stream: ReferenceStream) -> Difference | None:
    """Step the stream as one lane of a batch whose other lanes are at other positions."""
    for batch in BATCHES:
        spans = [stream.spans[lane % 2] for lane in range(batch)]
        encoders, decoders = zip(*(_sessions(stream.model, span) for span in spans), strict=True)
        codes: list[list[Codes]] = [[] for _ in spans]
        sound: list[list[Float32Array]] = [[] for _ in spans]
        for frame in range(SPAN_FRAMES):
            pcm = np.array([span.pcm[frame] for span in spans])
            for lane, row in enumerate(stream.model.encode_batch(encoders, pcm)):
                codes[lane].append(row)
            rows = np.array([span.codes[:, frame] for span in spans])
            for lane, samples in enumerate(stream.model.decode_batch(decoders, rows)):
                sound[lane].append(samples)
        if difference := _compare_lanes(spans, codes, sound):
            return difference
    return None


def check_variant(stream: ReferenceStream, isa: str = "", threads: int = 1) -> Difference | None:
    """Continue the stream on the same model opened otherwise: for another instruction set, or with more threads.

    Raises:
        UnavailableError: this machine lacks the instruction set.

    """
    variant = open_variant(stream.model, isa=isa, threads=threads)
    frames = SLOW_SPAN_FRAMES if isa == "scalar" else SPAN_FRAMES
    for span in (span.head(frames) for span in stream.spans):
        encoder, decoder = _sessions(variant, span)
        difference = _compare_codes(span, encoder.push(span.pcm.reshape(-1)))
        difference = difference or _compare_sound(span, decoder.push(span.codes))
        if difference:
            return difference
    return None


def check_reset(stream: ReferenceStream) -> Difference | None:
    """Reset sessions in the middle of a stream, an unfinished frame included, and begin anew."""
    start, wrap = stream.spans
    encoder, decoder = _sessions(stream.model, wrap)
    encoder.push(wrap.pcm.reshape(-1)[:-7])
    decoder.push(wrap.codes)
    encoder.reset()
    decoder.reset()
    if encoder.snapshot() != start.encoder_state or decoder.snapshot() != start.decoder_state:
        return Difference("state after reset", "that of a new session", "another")
    return _compare_codes(start, encoder.push(start.pcm.reshape(-1))) or _compare_sound(start, decoder.push(start.codes))


def check_two_sessions(stream: ReferenceStream) -> Difference | None:
    """Step two encoders and two decoders of one model in turn."""
    lanes = [(span, *_sessions(stream.model, span)) for span in stream.spans]
    codes: list[list[Codes]] = [[] for _ in lanes]
    sound: list[list[Float32Array]] = [[] for _ in lanes]
    for frame in range(SPAN_FRAMES):
        for lane, (span, encoder, decoder) in enumerate(lanes):
            codes[lane].append(encoder.encode(span.pcm[frame]))
            sound[lane].append(decoder.decode(span.codes[:, frame]))
    return _compare_lanes(list(stream.spans), codes, sound)


def check_refusals(stream: ReferenceStream) -> Difference | None:
    """Refuse what is not finite and codes out of range, and go on as if they had never been sent."""
    for span in stream.spans:
        encoder, decoder = _sessions(stream.model, span)
        spoilt = span.pcm.reshape(-1).copy()
        spoilt[-1] = np.nan
        bad_codes = span.codes.copy()
        bad_codes[-1, -1] = stream.model.info.codebook_entries
        if not (_refuses(partial(encoder.push, spoilt)) and _refuses(partial(decoder.push, bad_codes))):
            return Difference("impossible input", "a refusal", "an answer")
        difference = _compare_codes(span, encoder.push(span.pcm.reshape(-1)))
        difference = difference or _compare_sound(span, decoder.push(span.codes))
        if difference:
            return difference
    return None


def _sessions(model: CodecModel, span: Span) -> tuple[EncoderSession, DecoderSession]:
    return model.restore_encoder(span.encoder_state), model.restore_decoder(span.decoder_state)


def _cut(samples: Float32Array, sizes: tuple[int, ...]) -> Iterator[Float32Array]:
    taken = 0
    for size in itertools.cycle(sizes):
        yield samples[taken : taken + size]
        taken += size
        if taken >= len(samples):
            return


def _refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except InputError:
        return True
    return False


def _compare_codes(span: Span, found: Codes) -> Difference | None:
    return _in_stream(span, compare_codes(span.codes, found))


def _compare_sound(span: Span, found: Float32Array) -> Difference | None:
    return _in_stream(span, compare_sound(span.sound, found, span.pcm.shape[1]))


def _compare_lanes(spans: list[Span], codes: list[list[Codes]], sound: list[list[Float32Array]]) -> Difference | None:
    for lane, span in enumerate(spans):
        difference = _compare_codes(span, np.array(codes[lane]).T) or _compare_sound(span, np.concatenate(sound[lane]))
        if difference:
            return replace(difference, what=f"{difference.what} of lane {lane} of {len(spans)}")
    return None


def _in_stream(span: Span, difference: Difference | None) -> Difference | None:
    """Count a difference's frame from the beginning of the stream."""
    if difference is None or difference.frame is None:
        return difference
    return replace(difference, frame=span.first + difference.frame)
