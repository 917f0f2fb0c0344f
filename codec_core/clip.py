"""Whole clips: a loop over a session, so that a clip and a stream are one code path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core.model import CodecModel
from codec_core.rows import code_rows, pcm_rows

Progress = Callable[[int, int], None]
"""Called with (frames done, frames in all) after each frame."""


def encode_clip(
    model: CodecModel, pcm: ArrayLike, levels: int | None = None, progress: Progress | None = None
) -> NDArray[np.int32]:
    """Encode a clip: float32 or int16 [samples] at 24 kHz -> int32 [levels, frames], the last frame padded with zeros."""
    samples = pcm_rows(pcm)
    session = model.encoder(levels)
    frame_samples = model.info.frame_samples
    frames = -(-samples.size // frame_samples)
    columns = []
    for index in range(frames):
        columns.append(session.push(samples[index * frame_samples : (index + 1) * frame_samples]))
        if progress:
            progress(index + 1, frames)
    columns.append(session.flush())
    return np.concatenate(columns, axis=1)


def decode_clip(model: CodecModel, codes: ArrayLike, progress: Progress | None = None) -> NDArray[np.float32]:
    """Decode a clip: integers [levels, frames] -> float32 [frames * frame_samples], not clipped."""
    rows = code_rows(codes)
    session = model.decoder(rows.shape[0] if rows.ndim else None)
    frames = rows.shape[1] if rows.ndim == 2 else 1
    pieces = [np.empty(0, np.float32)]
    for index in range(frames):
        pieces.append(session.push(rows[:, index : index + 1] if rows.ndim == 2 else rows))
        if progress:
            progress(index + 1, frames)
    return np.concatenate(pieces)
