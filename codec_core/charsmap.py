"""Checks the table that SentencePiece normalises text by: the library follows it without looking where it leads.

The table is a length (u32), a double-array trie of so many bytes (units of u32), and texts that end in NUL. A unit of the trie
says where its children lie; a child that ends a rule says where in the texts the replacement starts. In a damaged table either
may lie outside.
"""

from __future__ import annotations

import struct

import numpy as np

from codec_core.errors import CodecError

_UNITS_PER_BLOCK = 256
_LEAF = np.uint32(1 << 31)


def check_charsmap(table: bytes, *, error: type[CodecError], subject: str) -> None:
    """Refuse a table that leads outside itself. An empty one normalises nothing.

    Args:
        table: its bytes.
        error: class of the error.
        subject: what to call the table in errors.

    """
    if not table:
        return
    if len(table) < 4:
        raise error(subject, f"{len(table)} bytes", "at least 4")
    (trie_bytes,) = struct.unpack_from("<I", table)
    texts = table[4 + trie_bytes :]
    if trie_bytes == 0 or trie_bytes % (4 * _UNITS_PER_BLOCK) or 4 + trie_bytes >= len(table):
        raise error(f"{subject}: trie", f"{trie_bytes} of {len(table)} bytes", "blocks of 1024 bytes, and texts behind them")
    if texts[-1] != 0:
        raise error(f"{subject}: texts", f"byte {texts[-1]} at the end", "a NUL")
    units = np.frombuffer(table, "<u4", trie_bytes // 4, offset=4)
    is_leaf = (units & _LEAF) != 0
    # A unit's children lie in one block of 256, at its own place with the offset's bits flipped.
    offsets = (units >> np.uint32(10)).astype(np.int64) << ((units & np.uint32(1 << 9)) >> np.uint32(6)).astype(np.int64)
    children = (np.arange(len(units)) ^ offsets) | (_UNITS_PER_BLOCK - 1)
    outside = np.flatnonzero(~is_leaf & (children >= len(units)))
    if len(outside):
        raise error(f"{subject}: trie", f"unit {outside[0]}, which leads outside", f"places below {len(units)}")
    starts = units & ~_LEAF
    outside = np.flatnonzero(is_leaf & (starts >= len(texts)))
    if len(outside):
        raise error(f"{subject}: trie", f"text {starts[outside[0]]} of unit {outside[0]}", f"places below {len(texts)}")
