"""A day of one stream in the library, and what it is compared with."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from different_audio import audio_bank, frame_choice
from memory_course import MemoryCourse, resident_bytes

from codec_core import CodecModel
from codec_core.pcm import to_float32
from codec_core.snapshot import SnapshotContent, pack, unpack

sys.path.append(str(Path(__file__).parents[1] / "golden"))
from offline_reference import OfflineMimi

FRAMES_PER_HOUR: Final = 45_000
STEPS_PER_FRAME: Final = 2
LANDMARK_STEPS: Final = 1 << 20
"""A position past which something that counts too narrowly would show."""
CONVS_HEAR_FRAMES: Final = 10
"""More than the convolutions before and behind a transformer look back together."""
WINDOW_FRAMES: Final = 25
NEAR_TIE: Final = 1e-3
"""Codes may differ from those in float64 where the two best codewords are this close, relative to their distance."""

Array = npt.NDArray[Any]


@dataclass
class StreamReport:
    """What was compared and what was found."""

    checked_frames: int = 0
    checked_blocks: int = 0
    wrong_frames: list[int] = field(default_factory=list)
    wrong_states: list[int] = field(default_factory=list)
    window_codes: int = 0
    window_ties: int = 0
    wrong_windows: list[int] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Name what was wrong."""
        named = {"frames": self.wrong_frames, "states": self.wrong_states, "windows": self.wrong_windows}
        return [f"{len(wrong)} wrong {name}, from frame {wrong[0]}" for name, wrong in named.items() if wrong]


class LongStream:
    """One stream, encoded and decoded, and the sessions that compute parts of it once more."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.model = CodecModel.open(arguments.model)
        self.offline = OfflineMimi(Path(self.model.info.path))
        self.levels = arguments.levels
        self.first = arguments.from_frame
        self.frames = round(arguments.hours * FRAMES_PER_HOUR)
        self.block_frames = arguments.block_frames
        self.check_every = arguments.check_every
        self.report = StreamReport()
        self.memory = MemoryCourse()
        self._sound = to_float32(audio_bank())
        self._choice = frame_choice(0, self.frames, len(self._sound), arguments.seed)
        # Every layer looks back over a context; so far back, and no further, does anything matter to a frame.
        reach_steps = self.offline.layers * (self.offline.context - 1)
        self.reach_frames = arguments.hear_frames or -(-reach_steps // STEPS_PER_FRAME) + CONVS_HEAR_FRAMES
        self._recent_codes: deque[Array] = deque(maxlen=self.reach_frames)
        self._windows = self._window_starts(arguments.windows)
        self._window_codes: dict[int, list[Array]] = {start: [] for start in self._windows}

    def run(self) -> None:
        """Go through the stream once, frame by frame."""
        encoder = self._beginning("encoder", self.first)
        decoder = self._beginning("decoder", self.first)
        checkers: tuple[Any, Any] | None = None
        for index in range(self.frames):
            if index % self.block_frames == 0:
                self._look_at_memory(index)
                checkers = self._checkers(index, encoder, decoder) if self._is_checked(index) else None
            pcm = self._pcm(index)
            codes = encoder.encode(pcm)
            sound = decoder.decode(codes)
            self._recent_codes.append(codes)
            if checkers is not None:
                self._compare(index, checkers, (pcm, codes, sound))
            for start, kept in self._window_codes.items():
                if start <= index < start + WINDOW_FRAMES:
                    kept.append(codes)
        self._look_at_memory(self.frames)

    def look_through_windows(self) -> None:
        """Compute the windows once more, whole, uncached and in float64, at their own positions."""
        for start, kept in self._window_codes.items():
            began = max(0, start - self.reach_frames)
            pcm = np.concatenate([self._pcm(index) for index in range(began, start + WINDOW_FRAMES)])
            self.offline.first_step = (self.first + began) * STEPS_PER_FRAME
            latent = self.offline.latent(pcm)[:, -WINDOW_FRAMES:]
            expected, margins = self.offline.codes(latent, self.levels)
            found = np.array(kept).T
            for frame in range(WINDOW_FRAMES):
                tied = np.flatnonzero(margins[:, frame] < NEAR_TIE)
                certain = int(tied[0]) if len(tied) else self.levels
                self.report.window_codes += certain
                self.report.window_ties += self.levels - certain
                if not np.array_equal(found[:certain, frame], expected[:certain, frame]):
                    self.report.wrong_windows.append(self.first + start + frame)

    def _window_starts(self, count: int) -> list[int]:
        last = self.frames - WINDOW_FRAMES
        landmark = LANDMARK_STEPS // STEPS_PER_FRAME - self.first
        starts = [landmark] if 0 <= landmark <= last else []
        others = np.linspace(last, min(self.reach_frames, last), max(0, count - len(starts))).astype(int)
        return [*starts, *others.tolist()][:count]

    def _is_checked(self, index: int) -> bool:
        if index + self.first < self.reach_frames or index < self.reach_frames:
            return False
        landmark = LANDMARK_STEPS // STEPS_PER_FRAME - self.first
        return index // self.block_frames % self.check_every == 1 % self.check_every or (
            index <= landmark < index + self.block_frames
        )

    def _look_at_memory(self, index: int) -> None:
        self.memory.add(index / FRAMES_PER_HOUR, resident_bytes())
        if index % FRAMES_PER_HOUR == 0:
            wrong = len(self.report.wrong_frames) + len(self.report.wrong_states)
            print(f"{index // FRAMES_PER_HOUR} h: {self.memory.shown(2)[-1]} MB, {wrong} wrong", file=sys.stderr, flush=True)

    def _pcm(self, index: int) -> Array:
        return self._sound[self._choice[index]]

    def _beginning(self, direction: str, position_frames: int) -> Any:
        """Make a session that stands at this position and has heard nothing."""
        session = getattr(self.model, direction)(self.levels)
        if position_frames == 0:
            return session
        for _ in range(min(position_frames, self.offline.context)):
            if direction == "encoder":
                session.encode(np.zeros(self.model.info.frame_samples, np.float32))
            else:
                session.decode(np.zeros(self.levels, np.int32))
        size = len(unpack(session.snapshot(), self.model.info, direction).state)
        position = position_frames.to_bytes(8, "little")
        content = SnapshotContent(self.levels, np.zeros(0, np.float32), position + bytes(size - len(position)))
        return getattr(self.model, f"restore_{direction}")(pack(self.model.info, direction, content))

    def _checkers(self, index: int, encoder: Any, decoder: Any) -> tuple[Any, Any]:
        """Make two sessions of nothing but what can still be heard; their states must be those of the stream."""
        fresh = [self._beginning(side, self.first + index - self.reach_frames) for side in ("encoder", "decoder")]
        for back, codes in enumerate(self._recent_codes):
            fresh[0].encode(self._pcm(index - self.reach_frames + back))
            fresh[1].decode(codes)
        self.report.checked_blocks += 1
        if fresh[0].snapshot() != encoder.snapshot() or fresh[1].snapshot() != decoder.snapshot():
            self.report.wrong_states.append(self.first + index)
        return fresh[0], fresh[1]

    def _compare(self, index: int, checkers: tuple[Any, Any], frame: tuple[Array, Array, Array]) -> None:
        pcm, codes, sound = frame
        self.report.checked_frames += 1
        if not (np.array_equal(checkers[0].encode(pcm), codes) and np.array_equal(checkers[1].decode(codes), sound)):
            self.report.wrong_frames.append(self.first + index)


def soak_stream(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the stream, then look through its windows."""
    stream = LongStream(arguments)
    print(f"each frame hears {stream.reach_frames} frames back", file=sys.stderr, flush=True)
    started_s = time.monotonic()
    stream.run()
    elapsed_s = time.monotonic() - started_s
    stream.look_through_windows()
    report = stream.report
    failures = [*report.failures(), *stream.memory.complaint()]
    if not report.checked_frames:
        failures.append("nothing was checked: the stream is too short")
    return {
        "model": stream.model.info.name,
        "levels": stream.levels,
        "seed": arguments.seed,
        "frames": stream.frames,
        "last_position_steps": (stream.first + stream.frames) * STEPS_PER_FRAME,
        "seconds": round(elapsed_s, 1),
        "times_real_time": round(stream.frames * 0.08 / elapsed_s, 1),
        "checked_blocks": report.checked_blocks,
        "checked_frames": report.checked_frames,
        "wrong_frames": len(report.wrong_frames),
        "wrong_states": len(report.wrong_states),
        "uncached_codes": report.window_codes,
        "uncached_near_ties": report.window_ties,
        "wrong_windows": len(report.wrong_windows),
        "resident_mb": stream.memory.shown(),
        "slope_mb_per_hour": stream.memory.slope_mb_per_hour,
        "failures": failures,
    }
