"""Training data on disk and in memory.

    python shards.py augment SOURCE_FOLDER DATA --variants 3
        DATA/sound/NAME.npy: int16 at 24 kHz, whole frames
    python shards.py describe DATA [--model mimi-mini.gguf]
        DATA/codes/NAME.npz: codes [frames, levels], latents [frames, 96]

Without a model `describe` fits analytic latents and a quantiser on them first (DATA/start.pt); with one its own codes are
stored, and a decoder can be trained from them with its encoder at rest. Each folder in SOURCE_FOLDER is a shard; `weights.json`
there says how often each is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path

import features
import numpy as np
import quantiser
import soundfile
import torch
from augment import RATE_HZ, Sound, augment, trim
from codec import FRAME_SAMPLES
from torch import Tensor

PIECE_SAMPLES = 12 * RATE_HZ
LEAST_SAMPLES = RATE_HZ // 5
AUDIBLE_RMS = 0.004
DESCRIBED_FRAMES = 1200


def augment_folder(folder: Path, variants: float, rng: np.random.Generator) -> Sound:
    """Return all variants of a folder's files in a row: int16 [samples], whole frames."""
    pieces = []
    for path in sorted(folder.rglob("*.wav")):
        sound = soundfile.read(path, dtype="float32")[0]
        if len(sound) < LEAST_SAMPLES or np.abs(sound).max() < 0.003:
            continue
        sound = trim(sound)
        for _ in range(int(variants) + int(rng.random() < variants % 1)):
            for start in range(0, len(sound), PIECE_SAMPLES):
                piece = sound[start : start + PIECE_SAMPLES]
                if len(piece) >= LEAST_SAMPLES:
                    pieces.append((augment(piece, rng) * 32767).astype(np.int16))
    whole = np.concatenate([np.zeros(0, np.int16), *pieces])
    return whole[: len(whole) // FRAME_SAMPLES * FRAME_SAMPLES]


def augment_all(source: Path, data: Path, variants: float, seed: int) -> None:
    """Make a shard of every folder that has none yet."""
    (data / "sound").mkdir(parents=True, exist_ok=True)
    for number, folder in enumerate(
        sorted(path for path in source.iterdir() if path.is_dir() and not path.name.startswith("."))
    ):
        path = data / "sound" / f"{folder.name}.npy"
        if path.exists():
            continue
        sound = augment_folder(folder, variants, np.random.default_rng([seed, number]))
        np.save(path, sound)
        print(f"{folder.name}: {len(sound) / RATE_HZ / 3600:.2f} h", flush=True)
    weights = json.loads((source / "weights.json").read_text())
    (data / "weights.json").write_text(json.dumps(weights) + "\n")


def sound_paths(data: Path) -> list[Path]:
    """Return the shards."""
    return sorted((data / "sound").glob("*.npy"))


def as_float(sound: np.ndarray) -> Sound:
    """int16 -> float32."""
    return sound.astype(np.float32) / np.float32(32768)


def describe_by_model(data: Path, model_path: str) -> None:
    """Store the codes a model gives."""
    from codec_core import CodecModel  # noqa: PLC0415 - the first steps of a training need no engine
    from codec_core.clip import encode_clip  # noqa: PLC0415

    model = CodecModel.open(model_path)
    _store(data, lambda sound: {"codes": encode_clip(model, sound).T.astype(np.int16)})


def describe_by_analysis(data: Path, seconds: float) -> None:
    """Fit the analytic latents and their quantiser, and store both for every frame."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    basis = features.fit_basis(_excerpts(data, seconds / 2, rng))
    latents = np.concatenate([features.analytic_latents(sound, basis) for sound in _excerpts(data, seconds, rng)])
    halves = quantiser.fit(torch.from_numpy(latents))
    torch.save({"basis": basis, "quantizer": halves.state_dict()}, data / "start.pt")

    def described(sound: Sound) -> dict[str, np.ndarray]:
        found = features.analytic_latents(sound, basis)
        codes = quantiser.analytic_codes(halves, torch.from_numpy(found))
        return {"latents": found.astype(np.float16), "codes": codes.numpy().astype(np.int16)}

    _store(data, described)


def _excerpts(data: Path, seconds: float, rng: np.random.Generator) -> list[Sound]:
    """Return eight pieces of each shard, ``seconds`` of it altogether."""
    found = []
    for path in sound_paths(data):
        sound = np.load(path, mmap_mode="r")
        samples = min(int(seconds * RATE_HZ / 8), len(sound)) // FRAME_SAMPLES * FRAME_SAMPLES
        for _ in range(8):
            start = int(rng.integers(max(1, (len(sound) - samples) // FRAME_SAMPLES))) * FRAME_SAMPLES
            found.append(as_float(sound[start : start + samples]))
    return found


def _store(data: Path, describe: Callable[[Sound], dict[str, np.ndarray]]) -> None:
    (data / "codes").mkdir(exist_ok=True)
    for path in sound_paths(data):
        sound, step = np.load(path), DESCRIBED_FRAMES * FRAME_SAMPLES
        parts = [describe(as_float(sound[start : start + step])) for start in range(0, len(sound), step)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        np.savez(data / "codes" / f"{path.stem}.npz", **joined)
        print(f"{path.stem}: {len(sound) // FRAME_SAMPLES} frames", flush=True)


class Crops:
    """Random crops of whole frames, at least a quarter of them audible."""

    def __init__(self, data: Path, device: torch.device) -> None:
        self.device = device
        weights = json.loads((data / "weights.json").read_text())
        self.names = [path.stem for path in sound_paths(data)]
        self.weights = [weights[name] for name in self.names]
        self.sound = {path.stem: np.load(path) for path in sound_paths(data)}
        described = {name: dict(np.load(data / "codes" / f"{name}.npz")) for name in self.names}
        self.codes = {name: held["codes"] for name, held in described.items()}
        self.latents = {name: held.get("latents") for name, held in described.items()}
        self.audible = {
            name: np.sqrt((as_float(sound).reshape(-1, FRAME_SAMPLES) ** 2).mean(1)) > AUDIBLE_RMS
            for name, sound in self.sound.items()
        }

    def draw(self, count: int, frames: int, least_audible: float = 0.25) -> tuple[Tensor, Tensor, Tensor | None]:
        """Sound [count, samples], codes [count * frames, levels], analytic latents [count, 96, frames] or None."""
        places = [self._place(frames, least_audible) for _ in range(count)]
        sound = np.stack([self.sound[n][i * FRAME_SAMPLES : (i + frames) * FRAME_SAMPLES] for n, i in places])
        codes = np.concatenate([self.codes[n][i : i + frames] for n, i in places]).astype(np.int64)
        latents = None
        if self.latents[self.names[0]] is not None:
            rows = np.stack([self.latents[n][i : i + frames] for n, i in places]).astype(np.float32)
            latents = torch.from_numpy(rows).transpose(1, 2).to(self.device)
        return torch.from_numpy(as_float(sound)).to(self.device), torch.from_numpy(codes).to(self.device), latents

    def _place(self, frames: int, least_audible: float) -> tuple[str, int]:
        while True:
            name = random.choices(self.names, self.weights)[0]  # noqa: S311
            start = random.randrange(len(self.codes[name]) - frames)  # noqa: S311
            if self.audible[name][start : start + frames].mean() > least_audible:
                return name, start


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("augment")
    one.add_argument("source", type=Path)
    one.add_argument("data", type=Path)
    one.add_argument("--variants", type=float, default=3.0)
    one.add_argument("--seed", type=int, default=0)
    two = commands.add_parser("describe")
    two.add_argument("data", type=Path)
    two.add_argument("--model")
    two.add_argument("--seconds", type=float, default=800.0, help="of each shard, to fit analytic latents on")
    settings = parser.parse_args()
    if settings.command == "augment":
        augment_all(settings.source, settings.data, settings.variants, settings.seed)
    elif settings.model:
        describe_by_model(settings.data, settings.model)
    else:
        describe_by_analysis(settings.data, settings.seconds)


if __name__ == "__main__":
    main()
