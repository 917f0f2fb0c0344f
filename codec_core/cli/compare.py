"""Compare two files of codes, or two of sound."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from codec_core import CodecModel
from codec_core.audio_file import AudioReader
from codec_core.cli.options import JsonOption, NumericsOption
from codec_core.cli.report import print_json, result_console
from codec_core.clip import decode_clip
from codec_core.codes_file import require_levels
from codec_core.compare import CodesComparison, SoundComparison, compare_code_sets, compare_sounds, read_any_codes
from codec_core.errors import CodesFileError, SettingError

STRIP_COLUMNS: Final = 60
_SHADES: Final = ((1.0, "green"), (0.9, "yellow"), (0.5, "dark_orange"), (0.0, "red"))
_AUDIO_SUFFIXES: Final = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")
_OPTIONS: Final = {
    "token exact": "--require-token-exact",
    "code match": "--min-code-match",
    "prefix match": "--min-prefix-match",
    "decode PSNR": "--min-decode-psnr-db",
}
"""The option that makes each requirement."""


@dataclass(frozen=True)
class Gate:
    """One requirement and what was found."""

    name: str
    required: float
    found: float

    @property
    def passed(self) -> bool:
        """Whether it is met."""
        return self.found >= self.required


def command(
    first: Annotated[
        str, typer.Argument(metavar="A", help="Codes (.npy, .mimi, .json, .safetensors, text), or an audio file.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="What is compared with A.")],
    *,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Decode both files of codes by this model and compare the sound too.")
    ] = None,
    numerics: NumericsOption = None,
    require_token_exact: Annotated[
        bool, typer.Option("--require-token-exact", help="Fail unless every code is equal.")
    ] = False,
    min_code_match: Annotated[float | None, typer.Option(min=0, max=1, help="Least share of equal codes.")] = None,
    prefix_levels: Annotated[int, typer.Option(min=1, help="Levels, from the first, that the prefix match is over.")] = 8,
    min_prefix_match: Annotated[float | None, typer.Option(min=0, max=1, help="Least share of equal codes in them.")] = None,
    min_decode_psnr_db: Annotated[float | None, typer.Option(help="Least PSNR of the decoded sound; needs a model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two files of codes, or two of sound.

    Text is lines of "frame=N codes=a,b,...", whatever the file's name. Codes are compared over the levels and frames both have;
    shapes that differ are a difference. PSNR is relative to full scale, SNR to A. Exit status 1 where a requirement fails.
    """
    codes = _compare_codes(first, second)
    if codes is not None and min_decode_psnr_db is not None and model is None:
        raise SettingError("--min-decode-psnr-db", "no model", "--model, to decode the codes")
    if codes is None:
        sound: SoundComparison | None = compare_sounds(_read_audio(first), _read_audio(second))
    else:
        sound = None if model is None else _compare_decoded(first, second, CodecModel.open(model, numerics=numerics))
    required = {
        "token exact": 1.0 if require_token_exact else None,
        "code match": min_code_match,
        "prefix match": min_prefix_match,
        "decode PSNR": min_decode_psnr_db,
    }
    gates = _gates(required, codes, sound, prefix_levels)
    if as_json:
        print_json(_fields(codes, sound, prefix_levels, gates))
    else:
        _print(codes, sound, prefix_levels, gates)
    if not all(gate.passed for gate in gates):
        raise typer.Exit(1)


def _is_audio(path: str) -> bool:
    return path.lower().endswith(_AUDIO_SUFFIXES)


def _compare_codes(first: str, second: str) -> CodesComparison | None:
    """Compare two files of codes; None where both are audio."""
    if _is_audio(first) and _is_audio(second):
        return None
    for path in (first, second):
        if _is_audio(path):
            raise CodesFileError(path, "an audio file", "codes, as the other file has")
    return compare_code_sets(*(read_any_codes(path).codes for path in (first, second)))


def _compare_decoded(first: str, second: str, model: CodecModel) -> SoundComparison:
    documents = [read_any_codes(path) for path in (first, second)]
    for path, document in zip((first, second), documents, strict=True):
        require_levels(document, model.info.levels, path)
    return compare_sounds(*(decode_clip(model, document.codes) for document in documents))


def _gates(
    required: dict[str, float | None], codes: CodesComparison | None, sound: SoundComparison | None, prefix_levels: int
) -> list[Gate]:
    """Return the requirements that were made, each with what was found."""
    found = {}
    if codes is not None:
        found["token exact"] = float(codes.token_exact)
        found["code match"] = codes.code_match
        found["prefix match"] = codes.prefix_match(prefix_levels)
    if sound is not None:
        found["decode PSNR"] = sound.psnr_db
    gates = []
    for name, least in required.items():
        if least is not None:
            if name not in found:
                raise SettingError(_OPTIONS[name], "two audio files", "two files of codes")
            gates.append(Gate(name, least, found[name]))
    return gates


def _read_audio(path: str) -> npt.NDArray[np.float32]:
    with AudioReader(path) as reader:
        return np.concatenate([np.zeros(0, np.float32), *reader.pcm()])


def _fields(
    codes: CodesComparison | None, sound: SoundComparison | None, prefix_levels: int, gates: list[Gate]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"passed": all(gate.passed for gate in gates)}
    if codes is not None:
        fields["codes"] = {
            "shapes": [list(codes.expected_shape), list(codes.found_shape)],
            "token_exact": codes.token_exact,
            "code_match": codes.code_match,
            "prefix_levels": prefix_levels,
            "prefix_match": codes.prefix_match(prefix_levels),
            "level_match": codes.level_match,
            "frame_match": codes.frame_match,
            "first_difference": None if codes.first_difference is None else asdict(codes.first_difference),
        }
    if sound is not None:
        fields["sound"] = {name: _finite(value) for name, value in asdict(sound).items()}
    fields["gates"] = [{**asdict(gate), "found": _finite(gate.found), "passed": gate.passed} for gate in gates]
    return fields


def _finite(value: Any) -> Any:
    """JSON has no infinity: null stands for no error at all."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(codes: CodesComparison | None, sound: SoundComparison | None, prefix_levels: int, gates: list[Gate]) -> None:
    console = result_console()
    if codes is not None:
        _print_codes(console, codes, prefix_levels)
    if sound is not None:
        console.print(f"sound    {sound.expected_samples} and {sound.found_samples} samples, {_sound_difference(sound)}")
        console.print(f"         PSNR {sound.psnr_db:.1f} dB, SNR {sound.snr_db:.1f} dB")
    for gate in gates:
        style, word = ("green", "passed") if gate.passed else ("bold red", "FAILED")
        console.print(Text(f"{word}   {_requirement(gate)}", style=style))


def _requirement(gate: Gate) -> str:
    if gate.name == "token exact":
        return "token exact, as required" if gate.passed else "not token exact, which is required"
    return f"{gate.name} {_short(gate.found)}, at least {_short(gate.required)} required"


def _sound_difference(sound: SoundComparison) -> str:
    if sound.bit_exact:
        return "bit-identical"
    at = sound.first_difference_sample
    return "all in common bit-identical" if at is None else f"first difference at sample {at}"


def _print_codes(console: Console, codes: CodesComparison, prefix_levels: int) -> None:
    shapes = [f"{levels} levels x {frames} frames" for levels, frames in (codes.expected_shape, codes.found_shape)]
    console.print("codes    " + (shapes[0] if shapes[0] == shapes[1] else " and ".join(shapes)))
    prefix = codes.prefix_match(prefix_levels)
    shares = f"{_percent(codes.code_match)} of all, {_percent(prefix)} of the first {prefix_levels} levels"
    console.print("match    " + (shares if codes.matches.size else "no code in common"))
    console.print("first    " + ("no difference" if codes.first_difference is None else str(codes.first_difference)))
    if codes.token_exact or not codes.matches.size:
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for level, row in enumerate(codes.matches):
        table.add_row(f"level {level}", _percent(float(row.mean())), heat_strip(row))
    console.print(table)


def heat_strip(matches: npt.NDArray[np.bool_]) -> Text:
    """Draw one level's matches [frames] in time: full where all codes are equal, lower and redder the fewer are."""
    strip = Text()
    for part in np.array_split(matches, min(STRIP_COLUMNS, len(matches))):
        share = float(part.mean())
        strip.append("▁▂▃▄▅▆▇█"[int(share * 7)], style=next(style for least, style in _SHADES if share >= least))
    return strip


def _percent(share: float) -> str:
    """Never rounds what is not whole to 100 %."""
    return "100 %" if share == 1 else f"{min(share * 100, 99.99):.2f} %"


def _short(value: float) -> str:
    return f"{value:.6g}"
