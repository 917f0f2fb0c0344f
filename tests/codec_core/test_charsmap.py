"""The normaliser's table: the published ones pass, and none that passes leads outside itself."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from codec_core.charsmap import check_charsmap
from codec_core.errors import ModelContractError
from codec_core.sentencepiece_model import parse_model
from tests.lm_sources import train_tokenizer


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("tables")
    found = {}
    for rule in ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"):
        data = train_tokenizer(folder / "x.model", normalization_rule_name=rule).read_bytes()
        found[rule] = parse_model(data, error=ModelContractError, subject="x").charsmap
    return found


def check(table: bytes) -> None:
    check_charsmap(table, error=ModelContractError, subject="table")


def test_published_tables(tables: dict[str, bytes]) -> None:
    for table in tables.values():
        check(table)
    assert not tables["identity"]
    assert len({table for table in tables.values() if table}) == 4


def with_unit(table: bytes, place: int, unit: int) -> bytes:
    return table[: 4 + 4 * place] + struct.pack("<I", unit) + table[8 + 4 * place :]


def test_tables_that_lead_outside(tables: dict[str, bytes]) -> None:
    table = tables["nmt_nfkc"]
    (trie_bytes,) = struct.unpack_from("<I", table)
    units, texts = trie_bytes // 4, len(table) - 4 - trie_bytes
    for damaged, message in (
        (table[:3], "table: found 3 bytes, expected at least 4"),
        (struct.pack("<I", trie_bytes + 4) + table[4:], "table: trie: found"),
        (struct.pack("<I", 0) + table[4:], "table: trie: found 0 of"),
        (table[: 4 + trie_bytes], "texts behind them"),
        (table[:-1] + b"x", "table: texts: found byte 120 at the end, expected a NUL"),
        (with_unit(table, 5, units << 10), f"unit 5, which leads outside, expected places below {units}"),
        (with_unit(table, 5, 1 << 31 | texts), f"text {texts} of unit 5, expected places below {texts}"),
        (with_unit(table, units - 1, 0x7FFFFFFF), f"unit {units - 1}, which leads outside"),
    ):
        with pytest.raises(ModelContractError, match=message):
            check(damaged)


FOLLOWED = """
import json, sys
from pathlib import Path
from sentencepiece import SentencePieceProcessor
from codec_core.convert.tokenizer_source import ODD_TEXTS
from codec_core.sentencepiece_model import SentencePieceModel, build_model
model = json.loads(Path(sys.argv[1]).read_text())
for path in sorted(Path(sys.argv[1]).parent.glob("*.table")):
    try:
        processor = SentencePieceProcessor(model_proto=build_model(SentencePieceModel(**model, charsmap=path.read_bytes())))
        for text in ODD_TEXTS:
            processor.encode(text)
    except (RuntimeError, UnicodeDecodeError):
        pass
print("done")
"""


def test_the_library_survives_whatever_passes(tables: dict[str, bytes], rng: np.random.Generator, tmp_path: Path) -> None:
    """Tables with units that changed places, of which many still pass, are followed by the library in a process of its own."""
    table = tables["nmt_nfkc"]
    (trie_bytes,) = struct.unpack_from("<I", table)
    passed = 0
    for number in range(60):
        units = np.frombuffer(table, "<u4", trie_bytes // 4, offset=4).copy()
        first, second = rng.integers(0, 256 if number % 2 else len(units), (2, 4))
        units[first], units[second] = units[second], units[first]
        damaged = table[:4] + units.tobytes() + table[4 + trie_bytes :]
        try:
            check(damaged)
        except ModelContractError:
            continue
        (tmp_path / f"{number}.table").write_bytes(damaged)
        passed += 1
    assert passed > 5
    pieces = ["<unk>", "\u2581a", "b"]
    (tmp_path / "model.json").write_text(json.dumps({"pieces": pieces, "scores": [0, -1, -2], "types": [2, 1, 1]}))
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED, tmp_path / "model.json"], capture_output=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr[-2000:]
