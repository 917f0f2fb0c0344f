"""The quality card of ``mimi verify --quality``, on standard output and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from codec_core import CodecModel
from codec_core.cli.report import print_json, printable, progress_bar, result_console
from codec_core.errors import SettingError
from codec_core.verify.drift_plot import require_matplotlib
from codec_core.verify.quality import LevelQuality, QualityCard, measure_quality
from codec_core.verify.quality_plot import plot_spectrograms

USUAL_LEVELS: Final = "1,4,8,16,32"
_COLUMNS: Final = ("levels", "kbit/s", "STOI", "worst", "PESQ-WB", "mel", "words")


def show_quality(
    model: str,
    audio: list[str],
    *,
    levels: str | None,
    recognised: list[str],
    numerics: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure and print a card.

    Args:
        model: path or name of the model to judge.
        audio: files or folders of speech.
        levels: numbers of levels, with commas between; None: 1, 4, 8, 16 and 32, as far as the model has them.
        recognised: files or folders of English speech, for the recogniser.
        numerics: of the model; None: what its file asks for.
        plot: ``.png`` file to write, of the first file; None: no picture.
        as_json: whether JSON is printed instead of tables.

    """
    if plot is not None:
        require_matplotlib()
    judged = CodecModel.open(model, numerics=numerics)
    counts = _counts(levels) if levels else [count for count in _counts(USUAL_LEVELS) if count <= judged.info.levels]
    with progress_bar("measuring") as progress:
        card = measure_quality(judged, audio, counts, recognised=recognised, progress=progress)
    if plot is not None:
        plot_spectrograms(judged, _first_file(audio), counts, plot)
    if as_json:
        print_json(card.fields())
    else:
        _print(card)


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as cause:
        raise SettingError("--levels", text, "numbers with commas between, as 8,32") from cause


def _first_file(audio: list[str]) -> Path:
    path = Path(audio[0])
    return next(iter(sorted(path.rglob("*.wav")))) if path.is_dir() else path


def _print(card: QualityCard) -> None:
    console, info = result_console(), card.model
    console.print(Text(printable(f"{info.name}, {info.weight_class}, {info.numerics} numerics: {info.path}")))
    clips = len(card.clips) // len(card.levels)
    words = f", words of {card.words[0].words}" if card.words else ""
    table = Table(*_COLUMNS, box=None, pad_edge=False, header_style="bold")
    for level in card.by_level():
        table.add_row(*_row(level))
    console.print(f"{clips} clips of {len(card.sources)} sources{words}")
    console.print(table)
    header = [f"{count} levels" for count in card.levels]
    table = Table("STOI by source", *header, box=None, pad_edge=False, header_style="bold")
    for source in card.sources:
        table.add_row(printable(source), *(f"{card.source_stoi(source, count):.3f}" for count in card.levels))
    console.print(table)


def _row(level: LevelQuality) -> tuple[str, ...]:
    return (
        f"{level.levels}",
        f"{level.kbit_s:.3f}",
        f"{level.stoi:.3f}",
        f"{level.worst_clip_stoi:.3f}",
        "" if level.pesq is None else f"{level.pesq:.2f}",
        f"{level.mel_distance_db:.2f} dB",
        "" if level.word_agreement is None else f"{100 * level.word_agreement:.0f} %",
    )
