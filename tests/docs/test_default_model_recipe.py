"""The recipe of docs/default_model, from recordings to a model the engine runs, at a tiny scale.

Wants torch, which nothing else here does, and is skipped without it (CONTRIBUTING.md has the command).
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.clip import decode_clip, encode_clip
from codec_core.convert import convert_model

torch = pytest.importorskip("torch", reason="wants torch")
pytest.importorskip("safetensors.torch", reason="wants safetensors")

RECIPE = Path(__file__).parents[2] / "docs" / "default_model"
SIGNALS = Path(__file__).parents[1] / "golden" / "vectors" / "signals"
MODULES = [path.stem for path in RECIPE.glob("*.py")]
Command = Callable[..., None]


@pytest.fixture(scope="module")
def command() -> Iterator[Command]:
    """Runs a script of the recipe as from the command line, in this process: torch is loaded once."""
    sys.path.insert(0, str(RECIPE))

    def run(script: str, *arguments: object) -> None:
        before = sys.argv
        sys.argv = [f"{script}.py", *map(str, arguments)]
        try:
            importlib.import_module(script).main()
        finally:
            sys.argv = before

    yield run
    sys.path.remove(str(RECIPE))
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def data(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources of a few seconds, augmented and described."""
    folder = tmp_path_factory.mktemp("recipe")
    for source, signal in (("one", "speech10s"), ("two", "sample_2")):
        (folder / "sound" / source).mkdir(parents=True)
        shutil.copy(SIGNALS / f"{signal}.wav", folder / "sound" / source)
    (folder / "sound" / "weights.json").write_text(json.dumps({"one": 0.7, "two": 0.3}))
    command("shards", "augment", folder / "sound", folder / "data", "--variants", 3.5)
    command("shards", "describe", folder / "data", "--seconds", 6)
    return folder / "data"


@pytest.fixture(scope="module")
def runs(command: Command, data: Path) -> Path:
    """From nothing to a whole codec."""
    folder = data.parent / "runs"

    def phase(name: str, run: str, start: str | None = None) -> None:
        begin = ("--start", folder / start / "model.safetensors") if start else ()
        rest = ("--minutes", 0.04, "--batch", 2, "--save-seconds", 0)
        command("train", name, "--data", data, "--run", folder / run, *begin, *rest)

    phase("encoder", "encoder")
    phase("decoder", "decoder")
    phase("join", "joined", "encoder")
    phase("joint", "joint", "joined")
    command("quantiser", data, folder / "joint" / "model.safetensors", folder / "whole.safetensors", "--minutes", 0.2)
    return folder


def opened(checkpoint: Path) -> CodecModel:
    path = checkpoint.with_suffix(".gguf")
    convert_model(checkpoint, path, dtype="f16", codebooks="f16", matrices="f16", force=True)
    return CodecModel.open(path)


def test_what_is_trained_runs_in_the_engine(runs: Path):
    model = opened(runs / "whole.safetensors")
    assert (model.info.levels, model.info.default_levels, model.info.codebook_entries) == (32, 32, 1024)
    sound = decode_clip(model, encode_clip(model, np.sin(np.arange(9600) / 9).astype(np.float32)))
    assert np.isfinite(sound).all()


def test_the_engine_decodes_as_the_modules_do(runs: Path):
    """A part of the codes suffices: what is compared is names and shapes, not rounding."""
    checkpoint = importlib.import_module("checkpoint")
    codec = checkpoint.load(runs / "whole.safetensors").eval()
    convert_model(runs / "whole.safetensors", runs / "f32.gguf", force=True)
    codes = np.random.default_rng(3).integers(0, 1024, (32, 12))
    with torch.no_grad():
        rows = torch.from_numpy(codes.T.copy())
        expected = codec.decode(codec.latents(rows, torch.full((12,), 32), 1))[0, 0].numpy()
    found = decode_clip(CodecModel.open(runs / "f32.gguf"), codes)
    assert np.abs(found - expected).max() <= 1e-4 * max(1.0, float(np.abs(expected).max()))


def test_a_checkpoint_comes_back_from_its_model_file(runs: Path, command: Command):
    convert_model(runs / "whole.safetensors", runs / "again.gguf", force=True)
    command("checkpoint", runs / "again.gguf", runs / "again.safetensors")
    checkpoint = importlib.import_module("checkpoint")
    first, second = (checkpoint.load(runs / f"{name}.safetensors") for name in ("whole", "again"))
    state = second.state_dict()
    for name, value in first.state_dict().items():
        if not name.endswith("usage"):
            assert torch.allclose(value, state[name], rtol=1e-5, atol=1e-7), name


def test_a_wider_decoder_sounds_the_same(runs: Path, command: Command):
    command("widen", runs / "whole.safetensors", runs / "wide.safetensors", "--filters", 20)
    checkpoint = importlib.import_module("checkpoint")
    narrow, wide = (checkpoint.load(runs / f"{name}.safetensors").eval() for name in ("whole", "wide"))
    assert wide.sizes.decoder_filters == 20
    latents = torch.randn(1, narrow.sizes.dim, 8)
    with torch.no_grad():
        expected, found = narrow.decode(latents), wide.decode(latents)
    assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_adversarial_training_goes_on_after_it_was_ended(runs: Path, data: Path, command: Command, capsys):
    command("widen", runs / "whole.safetensors", runs / "wider.safetensors", "--filters", 18)
    opened(runs / "whole.safetensors")
    command("shards", "describe", data, "--model", runs / "whole.gguf")
    rest = ("--start", runs / "wider.safetensors", "--batch", 1, "--save-seconds", 0, "--judges", 8)
    for minutes in (0.1, 0.15):
        command("train", "adversarial", "--data", data, "--run", runs / "wide", "--minutes", minutes, *rest)
    assert "goes on at step" in capsys.readouterr().out
    model = opened(runs / "wide" / "model.safetensors")
    codes = encode_clip(model, np.sin(np.arange(5760) / 9).astype(np.float32))
    assert np.array_equal(
        codes, encode_clip(opened(runs / "whole.safetensors"), np.sin(np.arange(5760) / 9).astype(np.float32))
    )
