"""How near decoded speech is to the original, by the measures this field uses. Needs the extra ``quality``.

All take float32 [samples] at 24 kHz, original and decoded of one length, and measure at the 16 kHz these measures are made for.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import UnavailableError
from codec_core.pcm import at_rate, to_int16

MEASURE_RATE_HZ: Final = 16_000
PACKAGES: Final = ("pystoi", "pesq", "pocketsphinx")
_RECOGNISER_PEAK: Final = 0.7
_RECOGNISER_SILENCE_SAMPLES: Final = MEASURE_RATE_HZ // 4

Float32Array = npt.NDArray[np.float32]


def require_measures(*, recogniser: bool) -> None:
    """Refuse at once what would fail after minutes of measuring.

    Args:
        recogniser: whether words are recognised, too.

    Raises:
        UnavailableError: a package is missing.

    """
    for package in PACKAGES if recogniser else PACKAGES[:2]:
        if importlib.util.find_spec(package) is None:
            raise UnavailableError(package, "not installed", "the extra 'quality': pip install 'mimi-server[quality]'")


def stoi(original: Float32Array, decoded: Float32Array) -> float:
    """Return short-time objective intelligibility, 0 .. 1."""
    import pystoi  # noqa: PLC0415

    first, second = (at_rate(sound, MEASURE_RATE_HZ) for sound in (original, decoded))
    return float(pystoi.stoi(first, second, MEASURE_RATE_HZ))


def pesq_wideband(original: Float32Array, decoded: Float32Array) -> float | None:
    """Return PESQ (ITU-T P.862.2), about 1 .. 4.6; None where it finds no speech."""
    import pesq  # noqa: PLC0415

    first, second = (at_rate(sound, MEASURE_RATE_HZ) for sound in (original, decoded))
    # It divides by the louder one's peak.
    if not first.any() and not second.any():
        return None
    value = float(pesq.pesq(MEASURE_RATE_HZ, first, second, "wb", on_error=pesq.PesqError.RETURN_VALUES))
    return None if value < 0 else value


class Recogniser:
    """A small recogniser of English: pocketsphinx, with the model its package carries."""

    def __init__(self) -> None:
        import pocketsphinx  # noqa: PLC0415

        self._decoder: Any = pocketsphinx.Decoder(loglevel="FATAL", samprate=float(MEASURE_RATE_HZ))

    def words(self, sound: Float32Array) -> list[str]:
        """Return what it hears; the same sound gives the same words at any loudness."""
        peak = max(1e-3, float(np.abs(sound).max(initial=0)))
        silence = np.zeros(_RECOGNISER_SILENCE_SAMPLES, np.float32)
        speech = at_rate(sound * np.float32(_RECOGNISER_PEAK / peak), MEASURE_RATE_HZ)
        self._decoder.start_utt()
        self._decoder.process_raw(to_int16(np.concatenate([silence, speech, silence])).tobytes(), full_utt=True)
        self._decoder.end_utt()
        heard = self._decoder.hyp()
        return heard.hypstr.split() if heard else []


def word_errors(expected: Sequence[str], found: Sequence[str]) -> int:
    """Return the fewest words to replace, insert or delete that make one of the other."""
    row = list(range(len(found) + 1))
    for number, word in enumerate(expected, start=1):
        above, row[0] = row[:], number
        for place, other in enumerate(found):
            row[place + 1] = min(above[place + 1] + 1, row[place] + 1, above[place] + (word != other))
    return row[-1]
