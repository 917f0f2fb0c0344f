"""The recorded runs of the language models, run again: what goes in, and what came out stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codec_core.language_model import LanguageModel
from codec_core.language_session import GREEDY, ZERO, Given, LanguageSession, Sampling

from .vectors import FOLDER

TOLERANCE = {"dep_out": 3e-4, "audio_logits": 3e-4}
"""Largest difference to the reference's numbers, by stage; 1e-4 where none is named."""
RACE = Sampling(text_top_k=25, top_k=16)
TTS_DELAY_STEPS = 4
Runs = dict[str, np.ndarray]


@dataclass
class Recorded:
    """Outputs and stages of a run: lists with an entry a step, those of the depformer by step and level."""

    outputs: list[Any] = field(default_factory=list)
    stages: dict[str, list[np.ndarray]] = field(default_factory=dict)
    heads: list[np.ndarray] = field(default_factory=list)

    def observe(self, name: str, values: np.ndarray) -> None:
        kind = name.split(".", maxsplit=1)[0]
        self.stages.setdefault(kind, []).append(values[0, 0].copy())

    def stage(self, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack(self.stages[kind]).reshape(shape)


def recorded_runs() -> Runs:
    with np.load(FOLDER / "language_model.npz") as file:
        return dict(file)


def exponentials(draw: int, entries: int) -> np.ndarray:
    """The noise of the run ``sampled``: number j of a draw, from the stream of splitmix64 named lm-noise/1."""
    state = 0xCBF29CE484222325
    for byte in b"lm-noise/1":
        state = (state ^ byte) * 0x100000001B3 & (1 << 64) - 1
    z = np.uint64(state) + np.arange(1024 * draw + 1, 1024 * draw + entries + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return -np.log1p(-((z >> np.uint64(40)).astype(np.float64) * 2.0**-24)).astype(np.float32)


def noise_of_step(step: int) -> Given:
    return Given(noise=np.stack([exponentials(5 * step + channel, 25) for channel in range(5)]))


def speech_given(runs: Runs, delays: tuple[int, ...]) -> Callable[[int], Given]:
    """Text from outside; no code before its time, and none computed at first."""

    def given(step: int) -> Given:
        silent = [ZERO if step < delay + TTS_DELAY_STEPS else -2 for delay in delays[1:]]
        text = int(runs["tts_text"][step])
        return Given(text=text, codes=[ZERO] * 8) if step < TTS_DELAY_STEPS else Given(text=text, kept=silent)

    return given


def speech_conditions(runs: Runs) -> dict[str, Any]:
    speaker = runs["tts_speaker"]
    rows = np.concatenate([speaker, np.zeros_like(speaker)])
    return {"control": "ok", "cfg": "1.5", "speaker_wavs": (rows, [True] * 6 + [False] * 6)}


@dataclass(frozen=True)
class Run:
    """How one of the recorded runs is made."""

    name: str
    model: str
    user: str = "user"
    steps: int = 40
    sampling: Sampling = GREEDY
    reset_at: int | None = None

    def session(self, model: LanguageModel, runs: Runs) -> LanguageSession:
        conditions = speech_conditions(runs) if self.name == "tts" else None
        return model.session(self.sampling, conditions)

    def inputs(self, runs: Runs) -> np.ndarray:
        return np.zeros((self.steps, 0), np.int32) if self.name == "tts" else runs[self.user][: self.steps]

    def given(self, model: LanguageModel, runs: Runs) -> Callable[[int], Given]:
        if self.name == "tts":
            return speech_given(runs, model.info.delays_steps)
        return noise_of_step if self.name == "sampled" else lambda _step: Given()


RUNS = (
    Run("greedy", "a", steps=60),
    Run("special", "a", "user_special", reset_at=25),
    Run("b", "b"),
    Run("stt", "s", "user_stt"),
    Run("tts", "c"),
    Run("h", "h"),
    Run("sampled", "a", steps=60, sampling=RACE),
    Run("sampled_torch", "a", steps=60, sampling=Sampling(seed=42, generator="torch-cpu")),
)


def make(run: Run, model: LanguageModel, runs: Runs, steps: Iterable[int] | None = None) -> Recorded:
    """Make a run, observed."""
    recorded, session = Recorded(), run.session(model, runs)
    inputs, given = run.inputs(runs), run.given(model, runs)
    for step in steps if steps is not None else range(run.steps):
        if step == run.reset_at:
            session.reset()
        recorded.outputs.append(session.step(inputs[step], given(step), recorded.observe))
        if session.extra_heads is not None:
            recorded.heads.append(session.extra_heads)
    return recorded


def tokens_of(outputs: Iterable[Any], width: int) -> np.ndarray:
    """[steps, width] as recorded: text and codes, -2 where there is nothing yet."""
    rows = []
    for output in outputs:
        codes = [] if output is None or output[1] is None else output[1].tolist()
        rows.append([-2] * width if output is None else [output[0], *codes])
    return np.array(rows)
