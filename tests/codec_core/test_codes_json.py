"""Long documents, which are read and written in pieces, against Python's own parser."""

from __future__ import annotations

import json

import numpy as np
import pytest

from codec_core.codes_document import MOST_LEVELS, CodesDocument
from codec_core.codes_json import MOST_FIELDS, PIECE_CHARS, PIECE_CODES, codes_json_pieces, parse_codes_json
from codec_core.errors import CodesFileError

FRAMES = 3 * PIECE_CODES + 17


@pytest.fixture
def long_codes(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2048, (3, FRAMES), np.int32)


@pytest.mark.parametrize("frames", [0, 1, PIECE_CODES - 1, PIECE_CODES, PIECE_CODES + 1, FRAMES])
def test_pieces_are_short_and_make_one_object(long_codes: np.ndarray, frames: int) -> None:
    document = CodesDocument(long_codes[:, :frames], max(0, frames * 1920 - 5), {"model": "m"})
    pieces = list(codes_json_pieces(document))
    assert max(map(len, pieces)) <= 6 * PIECE_CODES
    fields = json.loads(b"".join(pieces))
    assert fields["codes"] == document.codes.tolist()
    assert (fields["levels"], fields["frames"], fields["samples"]) == (3, frames, document.samples)


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"separators": (" ,\n", ":")}])
def test_any_spelling_is_read(long_codes: np.ndarray, options: dict) -> None:
    text = json.dumps({"before": [1, {"codes": "]"}], "codes": long_codes.tolist(), "levels": 3, "samples": None}, **options)
    assert len(text) > 3 * PIECE_CHARS
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode(), f"\n {text} \t".encode()):
        assert np.array_equal(parse_codes_json(data, "body").codes, long_codes)


@pytest.mark.parametrize("bad", [-1, 65_536, 2**70, 1.0, True, None, "7", {}])
@pytest.mark.parametrize("frame", [0, FRAMES // 2, FRAMES - 1])
def test_a_bad_code_is_named_wherever_it_stands(long_codes: np.ndarray, bad: object, frame: int) -> None:
    rows = long_codes.tolist()
    rows[1][frame] = bad
    with pytest.raises(CodesFileError, match=rf"^body: codes\[1\]\[{frame}\]: found "):
        parse_codes_json(json.dumps({"codes": rows}).encode(), "body")


@pytest.mark.parametrize(
    "text",
    [
        '{"codes":[[1,2,]]}',
        '{"codes":[[,1]]}',
        '{"codes":[[1,,2]]}',
        '{"codes":[[1]],}',
        '{"codes":[[1],]}',
        '{"codes":[[1] [1]]}',
        '{"codes":[[1]]',
        '{"codes":[[1',
        '{"codes":[[1]]} {}',
        '{"codes":[[1]],"codes":[[1]]}',
        '{"codes":[[1]] "levels":1}',
        '{"codes":[[1,[2]]]}',
        '{"codes":[["]"]]}',
        "{codes:[[1]]}",
        "{1:[[1]]}",
        '{"note":"' + "x" * PIECE_CHARS + '","codes":[[1]]}',
        '{"codes":[[' + "1," * PIECE_CHARS + "]]}",
        '{"codes":[[' + "1" * 2 * PIECE_CHARS + "]]}",
        "{" + ",".join(f'"{n}":0' for n in range(MOST_FIELDS)) + ',"codes":[[1]]}',
    ],
)
def test_what_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(CodesFileError, match="found bytes that are no JSON object"):
        parse_codes_json(text.encode(), "body")


def test_too_many_levels_are_not_even_read() -> None:
    with pytest.raises(CodesFileError, match=f"more than {MOST_LEVELS} levels"):
        parse_codes_json(json.dumps({"codes": [[1]] * (MOST_LEVELS + 1)}).encode(), "body")


def test_the_first_level_says_how_long_the_others_are(long_codes: np.ndarray) -> None:
    rows = long_codes.tolist()
    del rows[2][-1]
    with pytest.raises(CodesFileError, match=rf"codes\[2\]: found {FRAMES - 1} frames, expected a list of {FRAMES} codes"):
        parse_codes_json(json.dumps({"codes": rows}).encode(), "body")
