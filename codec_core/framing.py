"""Chunks of any length to frames of exactly one length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from codec_core.errors import InputShapeError, InputTypeError, SettingError

Float32Array = npt.NDArray[np.float32]


class FrameAccumulator:
    """Collects float32 mono samples and hands them out in whole frames.

    Each sample is copied once, whatever the size of the chunks. Not for use by two threads at once.
    """

    def __init__(self, frame_samples: int) -> None:
        """Start empty.

        Args:
            frame_samples: length of a frame, 1 or more (1920 for Mimi).

        Raises:
            SettingError: less than 1.

        """
        if frame_samples < 1:
            raise SettingError("frame_samples", f"{frame_samples}", "1 or more")
        self.frame_samples = frame_samples
        self._buffer = np.zeros(frame_samples, np.float32)
        self._pending_samples = 0

    @property
    def pending_samples(self) -> int:
        """Samples of the unfinished frame, 0 .. frame_samples - 1."""
        return self._pending_samples

    def push(self, chunk: Float32Array) -> Float32Array:
        """Add samples ``[n]``, n >= 0; return the frames that are now whole, ``[frames, frame_samples]``, frames >= 0.

        Raises:
            InputTypeError: not float32.
            InputShapeError: not one-dimensional. After either the accumulator is as it was.

        """
        _check(chunk)
        total = self._pending_samples + len(chunk)
        if total < self.frame_samples:
            self._buffer[self._pending_samples : total] = chunk
            self._pending_samples = total
            return np.empty((0, self.frame_samples), np.float32)
        whole = total - total % self.frame_samples
        frames = np.empty(whole, np.float32)
        frames[: self._pending_samples] = self._buffer[: self._pending_samples]
        taken = whole - self._pending_samples
        frames[self._pending_samples :] = chunk[:taken]
        self._pending_samples = total - whole
        self._buffer[: self._pending_samples] = chunk[taken:]
        return frames.reshape(-1, self.frame_samples)

    def flush(self) -> Float32Array:
        """Return the unfinished frame padded with zeros, ``[1, frame_samples]``, or ``[0, frame_samples]`` if there is none."""
        pending = self._pending_samples
        self._pending_samples = 0
        frames = np.zeros((1 if pending else 0, self.frame_samples), np.float32)
        if pending:
            frames[0, :pending] = self._buffer[:pending]
        return frames

    def clear(self) -> None:
        """Forget the unfinished frame."""
        self._pending_samples = 0

    def pending(self) -> Float32Array:
        """Return a copy of the unfinished frame's samples, ``[pending_samples]``, for a snapshot."""
        return self._buffer[: self._pending_samples].copy()

    def restore(self, pending: Float32Array) -> None:
        """Replace the unfinished frame by samples that :meth:`pending` returned.

        Raises:
            InputTypeError: not float32.
            InputShapeError: not one-dimensional, or a whole frame or more. After either the accumulator is as it was.

        """
        _check(pending)
        if len(pending) >= self.frame_samples:
            raise InputShapeError("pending", f"{len(pending)} samples", f"less than a frame of {self.frame_samples}")
        self._buffer[: len(pending)] = pending
        self._pending_samples = len(pending)


def _check(samples: npt.NDArray[np.float32]) -> None:
    if samples.dtype != np.float32:
        raise InputTypeError("samples", str(samples.dtype), "float32")
    if samples.ndim != 1:
        raise InputShapeError("samples", f"{samples.ndim} dimensions", "1 dimension")
