"""``.model`` files: read as the library reads them, written again as the same tokenizer, and refused where they are damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from codec_core.errors import CheckpointError
from codec_core.protobuf_wire import bytes_field, fields_of, float_field, varint_field
from codec_core.sentencepiece_model import SentencePieceModel, build_model, parse_model
from tests.lm_sources import train_tokenizer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "x.model"
    return train_tokenizer(path, 380, byte_fallback=True, user_defined_symbols=["<system>"]).read_bytes()


def parse(data: bytes) -> SentencePieceModel:
    return parse_model(data, error=CheckpointError, subject="x.model")


def test_it_is_read_as_the_library_reads_it(data: bytes) -> None:
    model, theirs = parse(data), sentencepiece.SentencePieceProcessor(model_proto=data)
    assert model.pieces == [theirs.id_to_piece(place) for place in range(theirs.piece_size())]
    assert model.scores == [theirs.get_score(place) for place in range(theirs.piece_size())]
    assert model.model_type == "unigram"
    assert model.byte_fallback
    assert len(model.charsmap) > 100_000
    assert set(model.types) == {1, 2, 3, 4, 6}


def test_what_is_written_is_the_same_model(data: bytes) -> None:
    model = parse(data)
    again = build_model(model)
    assert parse(again) == model
    assert sentencepiece.SentencePieceProcessor(model_proto=again).piece_size() == len(model.pieces)


def test_special_pieces_of_other_names_and_places(tmp_path: Path) -> None:
    options = {"unk_id": 5, "bos_id": -1, "eos_id": 2, "unk_piece": "<what>", "eos_piece": "<end>", "unk_surface": "??"}
    data = train_tokenizer(tmp_path / "x.model", **options).read_bytes()
    model, theirs = parse(data), sentencepiece.SentencePieceProcessor(model_proto=data)
    assert model.special_ids == {"unknown": 5, "eos": 2, "padding": 3}
    assert (theirs.unk_id(), theirs.bos_id(), theirs.eos_id(), theirs.pad_id()) == (5, -1, 2, 3)
    assert (model.unknown_surface, model.pieces[2]) == ("??", "<end>")


def test_settings_that_have_no_place_in_a_model_file(data: bytes, tmp_path: Path) -> None:
    suffix = train_tokenizer(tmp_path / "x.model", treat_whitespace_as_suffix=True).read_bytes()
    with pytest.raises(CheckpointError, match=r"x\.model: treat_whitespace_as_suffix: found true, expected false"):
        parse(suffix)
    with pytest.raises(CheckpointError, match=r"x\.model: escape_whitespaces: found false, expected true"):
        parse(data + bytes_field(3, varint_field(5, 0)))


def test_a_message_in_parts(data: bytes) -> None:
    changed = data + bytes_field(3, varint_field(3, 0)) + bytes_field(2, varint_field(3, 2))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=changed)
    model = parse(changed)
    assert (model.model_type, model.add_dummy_prefix, model.charsmap) == ("bpe", False, parse(data).charsmap)
    again = sentencepiece.SentencePieceProcessor(model_proto=build_model(model))
    for text in ("kalo m\u00e9", " x7 \u304c"):
        assert again.encode(text) == theirs.encode(text)


PIECE = bytes_field(1, bytes_field(1, b"<unk>") + float_field(2, 0.0) + varint_field(3, 2))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.model: found no pieces"),
        (b"<!DOCTYPE html>", "x.model: found wire type 4 at byte 1|x.model"),
        (b"\x80" * 20, "a number that does not end at byte 0"),
        (PIECE[:-1], "x.model: found the end at byte"),
        (b"\x00\x00", "found field 0 at byte 1"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "bytes from byte 10"),
        (varint_field(1, 5), "x.model: piece 0: found a number, expected a message"),
        (bytes_field(1, bytes_field(1, b"\xff")), "x.model: piece 0: found bytes that are not UTF-8"),
        (bytes_field(1, varint_field(1, 5)), "x.model: piece 0: found a number, expected text"),
        (bytes_field(1, bytes_field(1, b"a") + varint_field(2, 5)), "piece 0: score: found another type, expected a float"),
        (PIECE + bytes_field(1, bytes_field(1, b"a") + varint_field(3, 9)), r"piece 1: type: found 9, expected 1 .. 6"),
        (PIECE + bytes_field(2, varint_field(3, 5)), r"model_type: found 5, expected 1 .. 4"),
        (PIECE + bytes_field(3, varint_field(2, 5)), "precompiled_charsmap: found a number, expected bytes"),
        (PIECE + bytes_field(5, bytes_field(2, b"rules")), "denormalizer_spec: found rules, expected none"),
    ],
)
def test_damage(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        parse(data)


def test_any_damage_at_all(data: bytes, rng: np.random.Generator) -> None:
    """Bytes that were changed or lost are an error, or a model that can be written; never anything else."""
    small = data[:3000]
    for _ in range(400):
        changed = bytearray(small[: rng.integers(1, len(small))])
        for place in rng.integers(0, len(changed), rng.integers(0, 4)):
            changed[place] = rng.integers(0, 256)
        try:
            model = parse(bytes(changed))
        except CheckpointError:
            continue
        assert parse(build_model(model)).pieces == model.pieces


def test_the_wire() -> None:
    numbers = [0, 1, 127, 128, 16384, (1 << 63) - 1, -1]
    message = b"".join(varint_field(3, number) for number in numbers) + float_field(4, -2.5) + bytes_field(500, b"x" * 300)
    found = list(fields_of(message, error=CheckpointError, subject="x"))
    assert [value for number, value in found if number == 3] == [number & (1 << 64) - 1 for number in numbers]
    assert found[-2:] == [(4, b"\x00\x00\x20\xc0"), (500, b"x" * 300)]


def test_settings_in_very_many_parts_take_no_longer(data: bytes) -> None:
    """Each part added to all before it would take hours."""
    filling = bytes_field(2, bytes_field(100, bytes(4 << 20)))
    assert parse(data + filling + bytes_field(2, varint_field(3, 2)) * 400_000).model_type == "bpe"
