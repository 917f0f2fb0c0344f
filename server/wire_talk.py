"""What is particular to mode ``talk``: what a language model offers, and how it may be told to choose. Sans-IO."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLING_SETTINGS = ("seed", "text_temperature", "text_top_k", "temperature", "top_k")
SEED_RANGE = (0, (1 << 32) - 1)
TEMPERATURE_RANGE = (0.001, 1000.0)
"""Besides 0, which is greedy."""
TOP_K_RANGE = (0, 65_535)
"""0 lets all take part."""


@dataclass(frozen=True)
class LanguageOffer:
    """Codebooks of a language model's two sides, and how it chooses unless told otherwise."""

    user_levels: int
    own_levels: int
    """0 of a model that only writes."""
    text_temperature: float
    text_top_k: int
    temperature: float
    top_k: int


def parts_of(mode: str, own_levels: int) -> frozenset[str]:
    """Name the sessions that a stream of this mode has, of ``encoder``, ``decoder`` and ``language``.

    Args:
        mode: the stream's.
        own_levels: codebooks of the language model's own, if there is one.

    """
    talking = {"encoder", "language", "decoder"} if own_levels else {"encoder", "language"}
    parts = {"encode": {"encoder"}, "decode": {"decoder"}, "echo": {"encoder", "decoder"}, "talk": talking}
    return frozenset(parts[mode])
