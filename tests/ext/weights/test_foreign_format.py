"""What people pass by mistake where a GGUF file belongs is called by its name, with the remedy."""

import json
import struct

import pytest

from codec_core.errors import ModelFormatError

from .refusal import refused

SAFETENSORS = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


@pytest.mark.parametrize(
    ("content", "found", "remedy"),
    [
        (b"", "an empty file", "a GGUF file"),
        (b"<!DOCTYPE html><html>404</html>", "an HTML page", "download the file itself"),
        (b"\xef\xbb\xbf \n<HTML><body>", "an HTML page", "download the file itself"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a git-lfs pointer", "git lfs pull"),
        (struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(4), "a safetensors checkpoint", "mimi convert"),
        (b"PK\x03\x04" + bytes(60), "a zip archive (PyTorch checkpoints are zip archives)", "mimi convert"),
        (b"\x80\x02}q\x00.", "a Python pickle", "mimi convert"),
        (b"\x1f\x8b\x08" + bytes(20), "gzip data", "unpack"),
        (b"FUGG" + bytes(20), "a byte-swapped GGUF file", "little-endian"),
        (b"tjgg" + bytes(20), "a ggml file older than GGUF", "version 3"),
        (b"\xff\x00 \x7f", r"bytes '\xff\x00 \x7f'", "'GGUF'"),
        (b" \n\t ", r"bytes ' \x0a\x09 '", "'GGUF'"),
    ],
)
def test_foreign_file_is_named(tmp_path, content, found, remedy):
    error = refused(tmp_path, content, ModelFormatError)
    assert (error.subject, error.found) == ("file", found)
    assert remedy in error.expected
