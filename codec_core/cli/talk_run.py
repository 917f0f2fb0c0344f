"""A recording through a conversation: what goes in, frame by frame, and where what comes out goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import AudioReader, SoundWriter
from codec_core.cli.talk_models import TalkModels
from codec_core.cli.talk_progress import TalkProgress
from codec_core.cli.talk_text import TextSink
from codec_core.framing import FrameAccumulator
from codec_core.language_session import LanguageSession
from codec_core.pcm import CODEC_RATE_HZ
from codec_core.talk import FRAME_S, Talk, held_back_frames

AFTER_SPEECH_S: Final = 1.0
"""Silence behind a recording, for a model that recognises speech, besides the time by which its text lags."""


@dataclass
class Heard:
    """What became of a recording: frames stepped, samples of the answer, and what was odd."""

    frames: int = 0
    samples: int = 0
    warnings: list[str] = field(default_factory=list)


class Recording:
    """The user's side: silence that a model wants first, the recording, and silence for it to finish in.

    Args:
        reader: the recording.
        models: what hears it.
        tail_s: silence that was asked for.

    """

    def __init__(self, reader: AudioReader, models: TalkModels, tail_s: float) -> None:
        info = models.language.info
        self._reader = reader
        self._frame_samples = models.codec.info.frame_samples
        listens_only = not info.own_levels
        times = models.times
        self.prefix_s = times.prefix_s
        self._prefix_samples = round(times.prefix_s * CODEC_RATE_HZ)
        self._tail_samples = round((tail_s + (times.delay_s + AFTER_SPEECH_S) * listens_only) * CODEC_RATE_HZ)
        self._held_back_frames = held_back_frames(info)
        self.samples = 0
        """Of the recording so far, and at the end of the silence behind it, too: as long is the answer."""

    @property
    def expected_frames(self) -> int:
        """Frames that there will be, as far as the recording says."""
        samples = self._prefix_samples + self._reader.expected_samples + self._tail_samples
        return -(-samples // self._frame_samples) + self._held_back_frames

    def frames(self) -> Iterator[npt.NDArray[np.float32]]:
        """Yield frames, float32 [frame_samples]; to be used once."""
        accumulator = FrameAccumulator(self._frame_samples)
        yield from accumulator.push(np.zeros(self._prefix_samples, np.float32))
        for pcm in self._reader.pcm():
            self.samples += len(pcm)
            yield from accumulator.push(pcm)
        self.samples += self._tail_samples
        yield from accumulator.push(np.zeros(self._tail_samples, np.float32))
        yield from accumulator.flush()
        yield from np.zeros((self._held_back_frames, self._frame_samples), np.float32)

    def warnings(self) -> list[str]:
        """Return what was odd, once all is read."""
        missing = self._reader.missing
        return [] if missing is None else [f"{self._reader.subject}: {missing}"]


def talk_through(
    models: TalkModels,
    session: LanguageSession,
    recording: Recording,
    *,
    progress: TalkProgress,
    writer: SoundWriter | None,
    sink: TextSink,
) -> Heard:
    """Have a model hear a recording, and write what it says: sound as long as recording and tail, text with its times.

    Raises:
        CodecError: as :meth:`codec_core.talk.Talk.hear`, reading and writing.

    """
    heard, said = Heard(), 0
    talk = Talk(models.codec, models.language, session, models.tokenizer)
    held: npt.NDArray[np.float32] = np.empty(0, np.float32)
    for frame in recording.frames():
        spoken = talk.hear(frame)
        heard.frames += 1
        progress.done(heard.frames)
        if spoken is None:
            continue
        sink.take(spoken.token, spoken.text, max(0.0, said * FRAME_S - recording.prefix_s - models.times.delay_s))
        said += 1
        if writer is not None and spoken.pcm is not None:
            # The last frame may reach beyond the end, which is known only then.
            writer.write(held)
            held = spoken.pcm
    sink.end(talk.transcript.flush())
    if writer is not None:
        writer.write(held[: max(0, recording.samples - writer.samples)])
        heard.samples = writer.samples
    heard.warnings = recording.warnings()
    return heard
