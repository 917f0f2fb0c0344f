"""WAV headers: what one says the file holds, which libsndfile corrects silently where it ends early; and one to begin with."""

from __future__ import annotations

import struct
from typing import IO, Final

_FRAMES_OF_FIXED_SIZE: Final = (1, 3, 6, 7, 0xFFFE)
"""Format tags with one block per sample of all channels: PCM, float, A-law, mu-law, extensible."""
_LEAST_UNKNOWN_BYTES: Final = 0x7FFF0000
"""Programs that write to a pipe cannot know the size and state one near the largest of int32 or uint32."""
_MOST_CHUNKS: Final = 1000
_SAMPLE_BYTES: Final = 2
HEADER_BYTES: Final = 44
"""Of what :func:`wav_header` makes."""


def declared_wav_samples(file: IO[bytes]) -> int | None:
    """Return the samples per channel a WAV header declares; None where it is no WAV file, or the header does not know.

    Args:
        file: opened at its start; left anywhere.

    """
    head = file.read(12)
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return None
    block_bytes = 0
    for _ in range(_MOST_CHUNKS):
        chunk = file.read(8)
        if len(chunk) < 8:
            return None
        name, size = struct.unpack("<4sI", chunk)
        if name == b"data":
            known = block_bytes > 0 and 0 < size < _LEAST_UNKNOWN_BYTES
            return size // block_bytes if known else None
        start = file.tell()
        if name == b"fmt ":
            block_bytes = _block_bytes(file.read(min(size, 16)))
        file.seek(start + size + size % 2)
    return None


def wav_header(samples: int, sample_rate_hz: int) -> bytes:
    """Make the header of a WAV file, mono, 16 bits, whose ``samples`` follow; at most 4 GiB of them."""
    data_bytes = samples * _SAMPLE_BYTES
    form = struct.pack("<HHIIHH", 1, 1, sample_rate_hz, sample_rate_hz * _SAMPLE_BYTES, _SAMPLE_BYTES, 8 * _SAMPLE_BYTES)
    riff = struct.pack("<4sI4s", b"RIFF", HEADER_BYTES - 8 + data_bytes, b"WAVE")
    return riff + struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", data_bytes)


def _block_bytes(form: bytes) -> int:
    """Return the bytes of one sample of all channels; 0 where blocks are something else."""
    if len(form) < 16:
        return 0
    tag, _, _, _, block_bytes, _ = struct.unpack("<HHIIHH", form)
    return int(block_bytes) if tag in _FRAMES_OF_FIXED_SIZE else 0
