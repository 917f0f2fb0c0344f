"""Audio of all kinds, good and bad, and corpora made of it by the tiny model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.corpus.ledger import CorpusFolder
from codec_core.corpus.local_run import run_locally
from codec_core.corpus.plan import find_sources, make_plan
from codec_core.corpus.settings import CorpusSettings
from codec_core.corpus.tally import Counts, Tally
from codec_core.data import Corpus

from .audio_files import BAD_KINDS, FORMATS, RATES_HZ, sound, write_bad


@pytest.fixture(scope="session")
def mixed_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    """200 files, (good, bad): four formats, eight rates, one channel and two, of up to a second; 27 are bad, in nine ways."""
    folder = tmp_path_factory.mktemp("mixed")
    good, bad = [], []
    generator = np.random.default_rng(3)
    for at in range(173):
        path = folder / f"{at:03d}-good.{FORMATS[at % 4]}"
        rate = RATES_HZ[at % 8]
        samples = int(generator.integers(1, rate))
        soundfile.write(path, sound(samples, 1 + at // 8 % 2, at), rate)
        good.append(path)
    for at in range(27):
        path = folder / f"{at * 7:03d}-bad.{'flac' if at % 9 == 4 else 'wav'}"
        write_bad(path, BAD_KINDS[at % 9], at)
        bad.append(path)
    return good, bad


@pytest.fixture
def few_files(tmp_path: Path) -> Path:
    """A folder of seven good files, of 1 to 9 frames, and a bad one among them."""
    folder = tmp_path / "few"
    folder.mkdir()
    for at, samples in enumerate((1920 * 4 + 5, 1, 1920, 17000, 960, 7000, 1920 * 2)):
        soundfile.write(folder / f"{at}.wav", sound(samples, 1, at), 24000)
    write_bad(folder / "3-bad.wav", "nan", 0)
    return folder


MakeCorpus = Callable[..., tuple[Corpus, Counts]]


@pytest.fixture
def make_corpus(tiny_model: CodecModel) -> MakeCorpus:
    """make(inputs, output, workers=, lanes=, **settings): a corpus, and what was counted."""

    def make(
        inputs: Sequence[str | Path], output: Path, *, workers: int = 2, lanes: int = 3, **settings: object
    ) -> tuple[Corpus, Counts]:
        chosen = CorpusSettings(**({"form": "npy", "levels": 8} | settings))
        plan = make_plan(tiny_model, find_sources([str(one) for one in inputs], chosen, output), chosen)
        tally = Tally(len(plan.sources))
        run_locally(tiny_model, plan, CorpusFolder(output), tally, workers=workers, lanes=lanes)
        return Corpus(output), tally.counts()

    return make


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """contents(folder): every file in it by its path."""

    def read(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return read
