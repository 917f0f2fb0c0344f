"""Sessions whose every answer is compared with what the library makes of the same input, undisturbed."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel
from codec_core.client import LineOptions, Notice, Stream, StreamSettings
from codec_core.errors import CodecError

FRAME_SAMPLES: Final = 1920
MODES: Final[tuple[Literal["encode", "decode", "echo"], ...]] = ("encode", "encode", "decode", "echo")
OPTIONS: Final = LineOptions(
    wait_for_place_ms=120_000,
    give_up_ms=120_000,
    first_delay_ms=20,
    longest_delay_ms=400,
    open_timeout_ms=10_000,
    ping_interval_ms=500,
    ping_timeout_ms=1_500,
    max_unsent_bytes=1 << 16,
)

Array = npt.NDArray[Any]


@dataclass
class ChaosReport:
    """What all sessions saw together."""

    streams: int = 0
    frames: int = 0
    wrong_streams: list[str] = field(default_factory=list)
    failed_streams: list[str] = field(default_factory=list)
    repeated_frames: int = 0
    notices: Counter[str] = field(default_factory=Counter)

    def noticed(self, notice: Notice) -> None:
        """Count what happened on a line."""
        self.notices[notice.kind] += 1


@dataclass(frozen=True)
class Plan:
    """One stream: settings, input in two parts with a flush after each, and the answers that shall come."""

    settings: StreamSettings
    parts: list[Array]
    answers: list[Array]


def make_plan(model: CodecModel, rng: np.random.Generator, seconds: float) -> Plan:
    """Draw a stream of about so many seconds and compute its answers; ``seconds`` is a mean."""
    mode = MODES[int(rng.integers(len(MODES)))]
    levels = int(rng.integers(1, model.info.default_levels + 1))
    settings = StreamSettings(mode, levels, "f32le")
    if mode == "decode":
        parts = [_codes(model, levels, rng, seconds / 2) for _ in range(2)]
    else:
        parts = [_sound(rng, seconds / 2) for _ in range(2)]
    return Plan(settings, parts, _answers(model, settings, parts))


def _answers(model: CodecModel, settings: StreamSettings, parts: list[Array]) -> list[Array]:
    encoder, decoder = model.encoder(settings.levels), model.decoder(settings.levels)
    answers: list[Array] = []
    for part in parts:
        codes = part
        if settings.mode != "decode":
            codes = np.concatenate([encoder.push(part), encoder.flush()], axis=1)
        answers.append(codes if settings.mode == "encode" else decoder.push(codes))
    return answers


def _sound(rng: np.random.Generator, mean_s: float) -> Array:
    at_s = np.arange(int(24_000 * mean_s * rng.uniform(0.5, 1.5))) / 24_000
    glide = rng.uniform(80, 400) + rng.uniform(-60, 60) * at_s
    tone = rng.uniform(0.1, 0.7) * np.sin(2 * np.pi * glide * at_s) * (0.6 + 0.4 * np.sin(rng.uniform(3, 9) * at_s))
    return np.asarray(tone + 0.05 * rng.standard_normal(len(at_s)), np.float32)


def _codes(model: CodecModel, levels: int, rng: np.random.Generator, mean_s: float) -> Array:
    frames = max(1, int(12.5 * mean_s * rng.uniform(0.5, 1.5)))
    return np.asarray(rng.integers(0, model.info.codebook_entries, (levels, frames)), np.int32)


async def keep_streaming(
    url: str, model: CodecModel, seed: list[int], seconds: float, *, report: ChaosReport, stop: asyncio.Event
) -> None:
    """Run one stream after another until told to stop; the last one is finished."""
    rng = np.random.default_rng(seed)
    while not stop.is_set():
        plan = await asyncio.to_thread(make_plan, model, rng, seconds)
        name = f"stream {report.streams} of seed {seed}: {plan.settings.mode}, {plan.settings.levels} levels"
        report.streams += 1
        try:
            await _run(url, plan, report, name)
        except CodecError as error:
            report.failed_streams.append(f"{name}: {error.code}: {error}")


async def _run(url: str, plan: Plan, report: ChaosReport, name: str) -> None:
    async with Stream(url, plan.settings, OPTIONS, paced=True, notify=report.noticed) as stream:
        for part, expected in zip(plan.parts, plan.answers, strict=True):
            answer = await stream.convert(part)
            report.frames += stream.flushed.frames
            if not np.array_equal(answer, expected):
                report.wrong_streams.append(f"{name}: {answer.shape} for {expected.shape}")
        report.repeated_frames += stream.stats.repeated_frames
