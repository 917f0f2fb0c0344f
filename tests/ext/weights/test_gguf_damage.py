"""Damage of every kind to a good file is either harmless or refused with an error of our own tree; never a crash or a hang."""

import random

import pytest

from codec_core import _ext
from codec_core.errors import CodecError, ModelFormatError

from .gguf_bytes import GgufFile, tiny_model
from .refusal import refused

SEED = 7
ROUNDS = 400


def section_ends(file: GgufFile) -> list[tuple[str, int]]:
    ends, position = [], 0
    for name, part in file.sections():
        position += len(part)
        ends.append((name, position))
    return ends


def test_truncation_at_every_section_boundary(tmp_path):
    file = tiny_model()
    content = file.to_bytes()
    for name, end in section_ends(file):
        for cut in (end - 1, end, end + 1):
            if cut <= len(content) - 32:  # the last tensor may lack its padding
                error = refused(tmp_path, content[:cut], ModelFormatError)
                assert error.subject, (name, cut)


def test_truncation_names_where_the_file_ends(tmp_path):
    file = tiny_model()
    content = file.to_bytes()
    error = refused(tmp_path, content[:20], ModelFormatError)
    assert (error.subject, error.found, error.expected) == (
        "key count",
        "the end of the file at byte 20",
        "8 bytes from byte 16",
    )
    error = refused(tmp_path, content[:-64], ModelFormatError)
    assert error.subject == f"tensor '{file.tensors[-1].name}' offset"


@pytest.mark.parametrize("half", [False, True])
def test_random_damage(tmp_path, half):
    print(f"seed {SEED}")
    source = random.Random(SEED)
    file = tiny_model(half)
    content = file.to_bytes()
    header_bytes = next(end for name, end in section_ends(file) if name == "padding")
    path = tmp_path / "model.gguf"
    refusals = 0
    for _ in range(ROUNDS):
        damaged = bytearray(content)
        for _ in range(source.choice((1, 1, 2, 8))):
            place = source.randrange(header_bytes if source.random() < 0.8 else len(damaged))
            damaged[place] = source.choice((0, 0xFF, damaged[place] ^ (1 << source.randrange(8)), source.randrange(256)))
        if source.random() < 0.3:
            del damaged[source.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            _ext.inspect_model(str(path))
        except CodecError:
            refusals += 1
    assert refusals > ROUNDS // 2
