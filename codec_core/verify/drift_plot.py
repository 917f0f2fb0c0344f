"""Draws a drift card. Needs matplotlib, which the extra ``plot`` of this distribution installs."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np

from codec_core.atomic_file import atomic_output
from codec_core.errors import AudioFileError, UnavailableError
from codec_core.verify.drift import DriftCard

_INK, _GREY, _FIRST, _SECOND = "#1f2933", "#9aa5b1", "#0b7285", "#e8590c"


def require_matplotlib() -> None:
    """Refuse at once what would fail after minutes of measuring.

    Raises:
        UnavailableError: there is no matplotlib.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError("matplotlib", "not installed", "the extra 'plot': pip install 'mimi-server[plot]'")


def plot_drift(card: DriftCard, destination: str | os.PathLike[str]) -> None:
    """Write a card's picture: code match by level, and the sound's errors by signal.

    Args:
        card: what was measured.
        destination: the ``.png`` file to write; replaced if it exists.

    Raises:
        UnavailableError: there is no matplotlib.
        AudioFileError: the file cannot be written.

    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    levels, sound = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_levels(levels, card)
    _draw_sound(sound, card)
    for axes in (levels, sound):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=_INK)
    figure.suptitle(f"{card.model.name}: {card.model.weight_class} against {card.reference.weight_class}", color=_INK)
    with atomic_output(destination, replace=True, error=AudioFileError) as temporary:
        # Without a date, the same card gives the same bytes.
        figure.savefig(temporary, format="png", dpi=110, metadata={"Software": None})


def _draw_levels(axes: Any, card: DriftCard) -> None:
    levels = np.arange(len(card.level_match))
    axes.bar(levels, np.multiply(card.level_match, 100), color=_FIRST, label="equal codes")
    fresh = [np.nan if share is None else 100 * share for share in card.first_match]
    axes.plot(levels, fresh, ".", color=_SECOND, label="of those whose residual was equal")
    axes.set(xlabel="level", ylabel="%", ylim=(0, 105), title=f"codes, {100 * card.code_match:.1f} % equal")
    axes.axhline(100, color=_GREY, linewidth=0.6)
    axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _draw_sound(axes: Any, card: DriftCard) -> None:
    places = np.arange(len(card.signals))
    axes.barh(places, [0 if signal.sound.bit_exact else signal.sound.snr_db for signal in card.signals], color=_FIRST)
    axes.set(xlabel="SNR, dB", title="sound of the same codes")
    names = [f"{signal.name}\nbit-identical" if signal.sound.bit_exact else signal.name for signal in card.signals]
    axes.set_yticks(places, names)
    axes.invert_yaxis()
