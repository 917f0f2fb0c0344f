"""Verification finds what was changed: in a shard, in the ledger, in a source."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.corpus.ledger import file_facts
from codec_core.corpus.tally import Counts
from codec_core.corpus.verify import verify_corpus
from codec_core.data import Corpus
from codec_core.errors import SettingError

MakeCorpus = Callable[..., tuple[Corpus, Counts]]


@pytest.fixture
def corpus(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path) -> Corpus:
    return make_corpus([few_files], tmp_path / "corpus", shard_size=3)[0]


def findings(corpus: Corpus, model: CodecModel, sample: int = 100) -> list[str]:
    result = verify_corpus(corpus, model, sample, 0)
    return [f"{Path(finding.subject).name}: {finding.detail}" for finding in result.findings]


def test_nothing_is_wrong(corpus: Corpus, tiny_model: CodecModel):
    result = verify_corpus(corpus, tiny_model, 100, 0)
    assert (result.files, result.rows, result.findings) == (6, 7, ())
    assert verify_corpus(corpus, tiny_model, 3, 5).rows == 3


def test_members_of_tars_and_single_channels(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path, tiny_model: CodecModel):
    soundfile.write(few_files / "8.wav", np.random.default_rng(1).standard_normal((4000, 2)) / 9, 24000)
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        tar.add(few_files / "8.wav", "8.wav")
        tar.add(few_files / "0.wav", "0.wav")
    corpus, _ = make_corpus([tmp_path / "in.tar"], tmp_path / "out", channels="split")
    assert verify_corpus(corpus, tiny_model, 9, 0).findings == ()
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        tar.add(few_files / "0.wav", "0.wav")
    assert findings(corpus, tiny_model)[0].startswith("in.tar:8.wav: audio_file: ")


def test_changed_bytes_of_a_shard(corpus: Corpus, tiny_model: CodecModel):
    path = corpus.folder.path / "shard-000001.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert findings(corpus, tiny_model) == ["shard-000001.npy: its bytes are not those that were written"]
    path.unlink()
    assert findings(corpus, tiny_model) == ["shard-000001.npy: No such file or directory"]


def test_codes_that_were_never_the_sources(corpus: Corpus, tiny_model: CodecModel):
    """The ledger agrees with the shard, but one row's codes are another's."""
    ledger = corpus.folder.path / "ledger" / "shard-000000.json"
    path = corpus.folder.path / "shard-000000.npy"
    codes = np.load(path)
    codes[2, 5] ^= 1
    np.save(path, codes)
    other = file_facts(path, path.name)
    old = next(file for file in corpus.ledger[0].files if file.name == path.name)
    ledger.write_text(ledger.read_text().replace(old.sha256, other.sha256))
    found = findings(Corpus(corpus.folder.path), tiny_model)
    assert len(found) == 1
    assert found[0].startswith("0.wav: codes, frame 2, level 5: expected ")


def test_a_changed_source_and_a_missing_one(corpus: Corpus, few_files: Path, tiny_model: CodecModel):
    soundfile.write(few_files / "0.wav", np.zeros(2000), 24000)
    (few_files / "5.wav").unlink()
    assert findings(corpus, tiny_model) == [
        "0.wav: the source has changed since it was encoded",
        f"5.wav: audio_file: {few_files / '5.wav'}: found no such file, expected an audio file",
    ]


def test_an_unfinished_run(corpus: Corpus, tiny_model: CodecModel):
    (corpus.folder.path / "errors.jsonl").unlink()
    assert findings(corpus, tiny_model) == ["corpus: the run was not finished; the same command continues it"]


def test_another_model_is_refused(corpus: Corpus, default_model: CodecModel, tiny_model_path: Path):
    with pytest.raises(SettingError, match="the model of the corpus, mimi-synth-tiny"):
        verify_corpus(corpus, default_model, 1, 0)
    with pytest.raises(SettingError, match="kyutai"):
        verify_corpus(corpus, CodecModel.open(tiny_model_path, numerics="ggml"), 1, 0)
