"""Draws spectrograms of speech and of what a model makes of it. Needs matplotlib: the extra ``plot``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.atomic_file import atomic_output
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import AudioFileError
from codec_core.model import CodecModel
from codec_core.pcm import CODEC_RATE_HZ
from codec_core.spectral import HOP_SAMPLES, power_spectra
from codec_core.verify.drift_plot import require_matplotlib
from codec_core.verify.quality import read_clip

MOST_SECONDS: Final = 3
HIGHEST_HZ: Final = 8_500
RANGE_DB: Final = 70


def plot_spectrograms(model: CodecModel, path: Path, levels: Sequence[int], destination: str | os.PathLike[str]) -> None:
    """Write a picture of a clip's first seconds: the original, and decoded with each number of levels.

    Args:
        model: what encodes and decodes.
        path: the clip.
        levels: numbers of levels, a row each.
        destination: the ``.png`` file to write; replaced if it exists.

    Raises:
        UnavailableError: there is no matplotlib.
        AudioFileError: the clip cannot be read, or the picture not written.

    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    pcm = read_clip(path)[: MOST_SECONDS * CODEC_RATE_HZ]
    codes = encode_clip(model, pcm, model.info.levels)
    rows = {"original": pcm} | {f"{count} levels": decode_clip(model, codes[:count])[: len(pcm)] for count in levels}
    figure = Figure(figsize=(9, 1.9 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    top = float(power_spectra(pcm).max(initial=1e-9))
    for axes, (title, sound) in zip(figure.subplots(len(rows), 1, sharex=True), rows.items(), strict=True):
        _draw(axes, sound, top)
        axes.set_title(title, loc="left", fontsize=9)
    with atomic_output(destination, replace=True, error=AudioFileError) as temporary:
        # Without a date, the same clip gives the same bytes.
        figure.savefig(temporary, format="png", dpi=80, metadata={"Software": None})


def _draw(axes: Any, sound: npt.NDArray[np.float32], top: float) -> None:
    power = power_spectra(sound).T
    levels_db = 10 * np.log10(np.maximum(power / top, 10 ** (-RANGE_DB / 10)))
    extent = (0, power.shape[1] * HOP_SAMPLES / CODEC_RATE_HZ, 0, CODEC_RATE_HZ / 2)
    axes.imshow(levels_db, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=-RANGE_DB, vmax=0)
    axes.set(ylim=(0, HIGHEST_HZ), ylabel="Hz")
