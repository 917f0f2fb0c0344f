"""One file for each incident that other loaders of this kind have had: what overflowed there is refused here, by name.

``docs/security.md`` lists them, and ``tests/docs/test_security.py`` holds the two together.
"""

from __future__ import annotations

import resource
import struct
from collections.abc import Callable

import pytest

from codec_core.errors import ModelContractError, ModelFormatError, SnapshotError
from tests.ext.weights.gguf_bytes import F32, STRING, GgufFile, Key, Tensor, array, string
from tests.ext.weights.refusal import refused

MOST_GROWTH_KIB = 64 << 10


def lying(*tensors: tuple[tuple[int, ...], int | None]) -> GgufFile:
    """A file of one weight, and beside it tensors that claim a shape and a place."""
    claims = [Tensor(f"t{index}", dims, F32, b"", offset=offset) for index, (dims, offset) in enumerate(tensors)]
    return GgufFile(tensors=[Tensor("first", (8,), F32, bytes(32)), *claims])


def of_rank(rank: int) -> GgufFile:
    file = GgufFile(tensors=[Tensor("t", (1,), F32, bytes(32))])
    file.tensors[0].rank = rank
    return file


INCIDENTS: dict[str, tuple[Callable[[], GgufFile], str]] = {
    # More dimensions than the fixed array for them.
    "CVE-2024-21802": (lambda: of_rank(1000), "rank"),
    # Count times size of an array's elements wraps to little.
    "CVE-2024-21825": (lambda: GgufFile(keys=[array("a", STRING, (1 << 60) + 1, string("x"))]), "key 'a' count"),
    # Number of tensors times the size of a record wraps to little.
    "CVE-2024-21836": (lambda: GgufFile(tensor_count=(1 << 64) // 88 + 1), "tensor count"),
    # A string's length and its terminator wrap to nothing.
    "CVE-2024-23496": (lambda: GgufFile(keys=[Key("a", STRING, string("v", (1 << 64) - 1))]), "key 'a'"),
    # Number of keys times the size of a pair wraps to little.
    "CVE-2024-23605": (lambda: GgufFile(key_count=(1 << 64) // 48 + 1), "key count"),
    # Sizes of tensors, each of them possible, whose sum wraps.
    "CVE-2025-53630": (lambda: lying(*(((1 << 60,), None) for _ in range(4))), "offset"),
    # Strides of a shape wrap, though the number of its elements does not show it.
    "CVE-2026-33298": (lambda: lying(((1152, (1 << 42) + 1, 1 << 12), None)), "dims"),
    # The sum is checked, but not with what aligning adds to it.
    "CVE-2026-27940": (lambda: lying((((1 << 61) - 1,), 32), ((8,), 32)), "offset"),
    # A shape, or a place, that reaches past the end of the file.
    "CVE-2026-7482": (lambda: lying(((1 << 20,), 32)), "offset"),
}


@pytest.mark.parametrize("incident", INCIDENTS)
def test_a_file_of_its_class_is_refused_and_takes_no_memory(tmp_path, incident):
    make, subject = INCIDENTS[incident]
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refused(tmp_path, make(), ModelFormatError)
    assert subject in error.subject
    assert error.found
    assert error.expected
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < MOST_GROWTH_KIB


def test_a_file_that_does_not_lie_is_read_to_its_end(tmp_path):
    """So that each of them is refused for its lie: without it the file is well-formed, and no codec."""
    assert refused(tmp_path, lying(), ModelContractError).subject == "file"


SAVED_STATE = "CVE-2026-43629"
"""Restoring a saved state: sizes in it decide what is written."""


@pytest.mark.parametrize("position", [1, 77, 1 << 31, 1 << 32, 1 << 62, (1 << 64) - 1])
def test_a_saved_state_cannot_say_how_much_is_written(tiny_model, position):
    session = tiny_model.encoder(8)
    before = session.native.save_state()
    for state in (struct.pack("<Q", position) + before[8:], struct.pack("<Q", position), before + bytes(4), before[:-1]):
        with pytest.raises(SnapshotError):
            session.native.load_state(state)
        assert session.native.save_state() == before
