"""How far the logits of one language model are from those of another, with the same tokens going in.

Left to itself a model follows its own choices, and one choice that differs changes all that come after it. So the reference
runs freely and greedily, and the other is forced to say what it has said: in every step both look at the same past.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import SettingError
from codec_core.language_model import LanguageModel, LanguageModelInfo
from codec_core.language_session import FREE, GREEDY, Given

Progress = Callable[[int, int], None]
_TEXT: Final = "text_logits"
_COMMON_FACTS: Final = ("own_levels", "user_levels", "codebook_entries", "text_entries", "delays_steps")


@dataclass(frozen=True)
class LogitDrift:
    """One kind of logits over all steps."""

    relative_rms: float
    """RMS of the difference over the RMS of the reference's."""
    match: float
    """Share of steps in which both have the same largest logit."""


@dataclass(frozen=True)
class LanguageDrift:
    """A model measured against a reference."""

    reference: LanguageModelInfo
    model: LanguageModelInfo
    steps: int
    text: LogitDrift
    audio: LogitDrift | None
    """Of all codebooks together; None: the models choose no codes."""
    levels: tuple[LogitDrift, ...]
    """By codebook."""

    def fields(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        own = {
            "text": asdict(self.text),
            "audio": None if self.audio is None else asdict(self.audio),
            "levels": [asdict(level) for level in self.levels],
        }
        return {"reference": self.reference.facts(), "model": self.model.facts(), "steps": self.steps, **own}


def measure_language_drift(
    reference: LanguageModel, model: LanguageModel, user_codes: npt.NDArray[np.int32], progress: Progress | None = None
) -> LanguageDrift:
    """Run both over the same codes.

    Args:
        reference: the model that is right; it chooses greedily.
        model: the one to measure, of the same geometry.
        user_codes: [steps, n], n >= the user's codebooks. At least one step.
        progress: called with (steps done, steps in all).

    Raises:
        SettingError: models that cannot be compared, or no codes.
        CodeRangeError: a code the models have not.

    """
    for fact in _COMMON_FACTS:
        found, expected = getattr(model.info, fact), getattr(reference.info, fact)
        if found != expected:
            raise SettingError(f"{fact} of {model.info.path}", f"{found}", f"{expected}, as {reference.info.path} has")
    if not len(user_codes):
        raise SettingError("user codes", "no step", "at least one")
    names = [_TEXT, *(f"audio_logits.{level}" for level in range(reference.info.own_levels))]
    right: dict[str, list[npt.NDArray[np.float32]]] = {name: [] for name in names}
    found_logits: dict[str, list[npt.NDArray[np.float32]]] = {name: [] for name in names}
    free, forced = reference.session(GREEDY), model.session(GREEDY)
    for done, codes in enumerate(user_codes, start=1):
        free.step(codes, None, _keep(right))
        forced.step(codes, _as_chosen([int(right[name][-1].argmax()) for name in names]), _keep(found_logits))
        if progress is not None:
            progress(done, len(user_codes))
    drifts = [_drift(np.stack(right[name]), np.stack(found_logits[name])) for name in names]
    audio = None
    if len(names) > 1:
        together = [np.concatenate([np.stack(logits[name]) for name in names[1:]]) for logits in (right, found_logits)]
        audio = _drift(*together)
    return LanguageDrift(reference.info, model.info, len(user_codes), drifts[0], audio, tuple(drifts[1:]))


def _keep(logits: dict[str, list[npt.NDArray[np.float32]]]) -> Callable[[str, npt.NDArray[np.float32]], None]:
    def observe(name: str, values: npt.NDArray[np.float32]) -> None:
        if name in logits:
            logits[name].append(values[0, 0].copy())

    return observe


def _as_chosen(tokens: list[int]) -> Given:
    """Force these tokens. The last code is replaced once it is chosen: were all given, no logits would be computed."""
    text, codes = tokens[0], tokens[1:]
    if not codes:
        return Given(text=text)
    return Given(text=text, codes=[*codes[:-1], FREE], kept=[FREE] * (len(codes) - 1) + codes[-1:])


def _drift(right: npt.NDArray[np.float32], found: npt.NDArray[np.float32]) -> LogitDrift:
    exact = right.astype(np.float64)
    error, power = ((found - exact) ** 2).mean(), (exact**2).mean()
    return LogitDrift(
        relative_rms=float(np.sqrt(error / power)) if power else 0.0,
        match=float((right.argmax(axis=1) == found.argmax(axis=1)).mean()),
    )
