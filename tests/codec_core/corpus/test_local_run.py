"""Whole runs: codes are those of ``mimi encode``, and nothing but sources and settings shows in the bytes."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.audio_file import AudioReader
from codec_core.cli.encode import encode_file
from codec_core.corpus.tally import Counts
from codec_core.data import Corpus
from codec_core.errors import SettingError

from .audio_files import sound

MakeCorpus = Callable[..., tuple[Corpus, Counts]]


def alone(model: CodecModel, path: Path, channel: int | None = None) -> tuple[np.ndarray, int]:
    """Codes and samples as ``mimi encode`` gives them."""
    with AudioReader(path, channel=channel) as reader:
        return encode_file(model, reader, 8, lambda _done, _all: None)


def test_two_hundred_mixed_files(
    mixed_files: tuple[list[Path], list[Path]], make_corpus: MakeCorpus, tiny_model: CodecModel, tmp_path: Path
):
    good, bad = mixed_files
    corpus, counts = make_corpus([good[0].parent], tmp_path / "out", shard_size=30, lanes=16)
    found = {row.facts.source: row for row in corpus.rows()}
    assert sorted(found) == sorted(map(str, good))
    for path in good:
        codes, samples = alone(tiny_model, path)
        row = found[str(path)]
        assert np.array_equal(row.codes, codes), path
        assert (row.facts.samples, row.facts.frames * 1920 - row.facts.trim_samples) == (samples, samples)
    assert sorted(error.source for error in corpus.errors()) == sorted(map(str, bad))
    assert {error.code for error in corpus.errors()} == {"audio_file", "non_finite_input", "numeric_overflow"}
    assert (counts.rows, counts.errors, counts.done, counts.shards) == (173, 27, 200, 7)
    assert counts.frames >= sum(row.facts.frames for row in found.values())


@pytest.mark.parametrize("form", ["npy", "parquet", "webdataset", "safetensors"])
def test_batches_and_workers_do_not_show(form: str, few_files: Path, make_corpus: MakeCorpus, contents, tmp_path: Path):
    for name, workers, lanes in (("a", 1, 1), ("b", 3, 2), ("c", 2, 16)):
        make_corpus([few_files], tmp_path / name, workers=workers, lanes=lanes, form=form, shard_size=3)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")


def test_a_run_continues_where_another_was_cut(few_files: Path, make_corpus: MakeCorpus, contents, tmp_path: Path):
    make_corpus([few_files], tmp_path / "a", shard_size=2)
    whole = contents(tmp_path / "a")
    (tmp_path / "a" / "ledger" / "shard-000001.json").unlink()
    (tmp_path / "a" / "shard-000002.npy").write_bytes(b"cut")
    (tmp_path / "a" / "errors.jsonl").unlink()
    corpus, counts = make_corpus([few_files], tmp_path / "a", shard_size=2)
    assert contents(tmp_path / "a") == whole
    assert (counts.done, counts.already_done, counts.shards) == (8, 4, 4)
    assert corpus.is_complete


def test_a_complete_corpus_is_not_made_again(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    make_corpus([few_files], tmp_path / "a")
    _, counts = make_corpus([few_files], tmp_path / "a")
    assert (counts.frames, counts.already_done, counts.errors) == (0, 8, 1)


@pytest.mark.parametrize(("name", "value"), [("levels", 4), ("shard_size", 3), ("form", "parquet"), ("channels", "0")])
def test_other_settings_want_another_folder(name: str, value: object, few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    make_corpus([few_files], tmp_path / "a")
    with pytest.raises(SettingError, match="another corpus wants another folder"):
        make_corpus([few_files], tmp_path / "a", **{name: value})


def test_other_inputs_want_another_folder(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    make_corpus([few_files], tmp_path / "a")
    (few_files / "9.wav").write_bytes((few_files / "0.wav").read_bytes())
    with pytest.raises(SettingError, match="the same list of inputs"):
        make_corpus([few_files], tmp_path / "a")


def test_more_levels_than_the_model_has(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    with pytest.raises(SettingError, match="levels: found 33"):
        make_corpus([few_files], tmp_path / "a", levels=33)
    assert not (tmp_path / "a").exists()


def test_channels(tmp_path: Path, make_corpus: MakeCorpus, tiny_model: CodecModel):
    stereo = tmp_path / "stereo.wav"
    soundfile.write(stereo, sound(5000, 2, 1), 24000)
    soundfile.write(tmp_path / "mono.wav", sound(3000, 1, 2), 24000)
    split, _ = make_corpus([stereo, tmp_path / "mono.wav"], tmp_path / "split", channels="split")
    places = [(Path(row.facts.source).stem, row.facts.channel) for row in split.rows()]
    assert places == [("stereo", 0), ("stereo", 1), ("mono", 0)]
    for row in list(split.rows())[:2]:
        assert np.array_equal(row.codes, alone(tiny_model, stereo, row.facts.channel)[0])
    second, counts = make_corpus([stereo, tmp_path / "mono.wav"], tmp_path / "second", channels="1")
    assert (counts.rows, counts.errors) == (1, 1)
    assert np.array_equal(second.row(0).codes, alone(tiny_model, stereo, 1)[0])


def test_members_of_a_tar_are_as_the_files(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        for path in sorted(few_files.iterdir()):
            tar.add(path, path.name)
    from_tar, _ = make_corpus([tmp_path / "in.tar"], tmp_path / "a")
    from_files, _ = make_corpus([few_files], tmp_path / "b")
    for one, other in zip(from_tar.rows(), from_files.rows(), strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert one.facts.source_sha256 == other.facts.source_sha256
        assert one.facts.member == Path(other.facts.source).name
    assert [error.member for error in from_tar.errors()] == ["3-bad.wav"]


def test_fields_of_a_manifest_stay_with_the_codes(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    (few_files / "list.jsonl").write_text('{"path": "5.wav", "text": "five"}\n{"path": "none.wav"}\n')
    corpus, _ = make_corpus([few_files / "list.jsonl"], tmp_path / "a")
    assert [json.loads(row.facts.fields) for row in corpus.rows()] == [{"text": "five"}]
    assert [error.message.partition(": ")[2] for error in corpus.errors()] == ["found no such file, expected an audio file"]
