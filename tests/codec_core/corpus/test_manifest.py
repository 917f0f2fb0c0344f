"""Manifests in CSV and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_core.corpus.manifest import manifest_sources
from codec_core.errors import AudioFileError


def sources(path: Path, text: str | bytes):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(manifest_sources(path))


@pytest.mark.parametrize("field", ["path", "file_name", "audio_filepath"])
def test_paths_start_at_the_manifest_and_other_fields_are_kept(tmp_path: Path, field: str):
    csv = sources(tmp_path / "a.csv", f'{field},text,speaker\nx/1.wav,"one, two",s1\n/abs/2.wav,three,s2\n')
    rows = [{field: "x/1.wav", "text": "one, two", "speaker": "s1"}, {field: "/abs/2.wav", "text": "three", "speaker": "s2"}]
    json_text = "\n\n".join(map(json.dumps, rows))
    assert csv == sources(tmp_path / "a.jsonl", json_text)
    assert [source.path for source in csv] == [str(tmp_path / "x" / "1.wav"), "/abs/2.wav"]
    assert csv[0].fields == '{"speaker":"s1","text":"one, two"}'


def test_a_row_of_a_path_alone_has_no_fields(tmp_path: Path):
    assert sources(tmp_path / "a.jsonl", '{"path": "1.wav"}')[0].fields is None


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path):
    assert len(sources(tmp_path / "a.csv", "\ufeffpath\n1.wav\n")) == 1


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "path,text\n1.wav\n", "line 2"),
        ("a.csv", "path\n1.wav,more\n", "line 2"),
        ("a.csv", 'path\n"1.wav\n', "unexpected end"),
        ("a.csv", "wav\n1.wav\n", "line 2"),
        ("a.jsonl", '{"path": "1.wav"}\nnonsense\n', "line 2"),
        ("a.jsonl", "[1]\n", "line 1"),
        ("a.jsonl", '{"path": 7}\n', "line 1"),
        ("a.jsonl", '{"path": ""}\n', "line 1"),
        ("a.jsonl", '{"path": "a\\u0000b"}\n', "line 1"),
        ("a.jsonl", b'{"path": "\xff"}\n', "UTF-8"),
    ],
)
def test_a_row_that_names_no_file_is_refused_by_its_line(tmp_path: Path, name: str, text: str | bytes, line: str):
    with pytest.raises(AudioFileError, match=line):
        sources(tmp_path / name, text)


def test_a_manifest_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(AudioFileError, match="No such file"):
        list(manifest_sources(tmp_path / "none.csv"))
