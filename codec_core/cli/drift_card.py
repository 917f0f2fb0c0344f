"""The drift card of ``mimi verify --drift``, on standard output and as a picture."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from codec_core import CodecModel
from codec_core.cli.report import print_json, printable, progress_bar, result_console
from codec_core.verify.drift import PREFIX_LEVELS, DriftCard, SignalDrift, measure_drift
from codec_core.verify.drift_plot import plot_drift, require_matplotlib


def show_drift(model: str, reference: str, audio: list[str], *, numerics: str | None, plot: Path | None, as_json: bool) -> None:
    """Measure and print a card.

    Args:
        model: path or name of the model to measure.
        reference: of the model it is measured against.
        audio: files to encode.
        numerics: of both; None: what the reference's file asks for.
        plot: ``.png`` file to write; None: no picture.
        as_json: whether JSON is printed instead of a table.

    """
    if plot is not None:
        require_matplotlib()
    right = CodecModel.open(reference, numerics=numerics)
    measured = CodecModel.open(model, numerics=right.info.numerics)
    with progress_bar("comparing") as progress:
        card = measure_drift(right, measured, audio, progress)
    if plot is not None:
        plot_drift(card, plot)
    if as_json:
        print_json(card.fields())
    else:
        _print(card)


def _print(card: DriftCard) -> None:
    console = result_console()
    for label, info in (("model", card.model), ("against", card.reference)):
        console.print(Text(printable(f"{label:8} {info.name}, {info.weight_class}, {info.numerics} numerics: {info.path}")))
    first = min(PREFIX_LEVELS, len(card.level_match))
    console.print(
        f"codes    {_percent(card.code_match)} of {len(card.level_match)} levels equal,"
        f" {_percent(card.prefix_match(first))} of the first {first}, {_percent(card.semantic_match)} of the semantic one"
    )
    table = Table("level", "equal", "residual equal", box=None, pad_edge=False, header_style="bold")
    for level, (share, fresh) in enumerate(zip(card.level_match, card.first_match, strict=True)):
        table.add_row(str(level), _percent(share), "" if fresh is None else _percent(fresh))
    console.print(table)
    table = Table(
        "sound of the same codes", "SNR", "PSNR", "mel", "log spectrum", box=None, pad_edge=False, header_style="bold"
    )
    for signal in card.signals:
        table.add_row(*_sound_row(signal))
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)


def _sound_row(signal: SignalDrift) -> tuple[str, ...]:
    sound = asdict(signal.sound)
    decibels = [f"{sound[name]:.1f} dB" if math.isfinite(sound[name]) else "equal" for name in ("snr_db", "psnr_db")]
    distances = (signal.mel_distance_db, signal.log_spectral_distance_db)
    return printable(signal.name), *decibels, *(f"{distance:.2f} dB" for distance in distances)


def _percent(share: float) -> str:
    """Never rounds what is not whole to 100 %."""
    return "100 %" if share == 1 else f"{min(share * 100, 99.99):.2f} %"
