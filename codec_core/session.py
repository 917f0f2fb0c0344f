"""One stream in one direction: an encoder or a decoder session; :mod:`codec_core.session_base` has what they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core import _ext
from codec_core.errors import InputShapeError
from codec_core.framing import FrameAccumulator
from codec_core.pcm import require_finite
from codec_core.rows import checked_levels, code_rows, pcm_rows
from codec_core.session_base import Native, Session, StageObserver
from codec_core.snapshot import SnapshotContent, pack

if TYPE_CHECKING:
    from codec_core.model import ModelInfo

__all__ = ["DecoderSession", "EncoderSession", "Native", "Session", "StageObserver"]


class EncoderSession(Session[_ext.EncoderSession]):
    """A stream from 24 kHz mono PCM to codes. Made by :meth:`codec_core.CodecModel.encoder`."""

    direction = "encoder"

    def __init__(self, model: _ext.CodecModel, info: ModelInfo, levels: int | None) -> None:
        super().__init__(_ext.EncoderSession(model, checked_levels(levels, info)), info)
        self._model = model
        self._accumulator = FrameAccumulator(info.frame_samples)

    @property
    def pending_samples(self) -> int:
        """Samples of :meth:`push` that do not fill a frame yet, 0 .. 1919."""
        return self._accumulator.pending_samples

    def encode(self, pcm: ArrayLike, observer: StageObserver | None = None) -> NDArray[np.int32]:
        """Encode exactly one frame, past whatever :meth:`push` still holds back.

        Args:
            pcm: float32 (full scale -1 .. 1) or int16 [frame_samples].
            observer: sees every stage of the step.

        Returns:
            int32 [levels].

        Raises:
            InputShapeError, InputTypeError, NonFiniteInputError, NumericOverflowError, SessionBusyError, SessionClosedError.

        """
        frame = pcm_rows(pcm)
        if frame.shape != (self.info.frame_samples,):
            raise InputShapeError("PCM", str(list(frame.shape)), f"[{self.info.frame_samples}]: one frame")
        with self.entered():
            return self._encode_frame(frame, observer)

    def push(self, chunk: ArrayLike) -> NDArray[np.int32]:
        """Take PCM of any length and encode the frames it completes.

        Args:
            chunk: float32 or int16 [n], n >= 0.

        Returns:
            int32 [levels, frames], frames >= 0. How a stream is cut into chunks never shows.

        Raises:
            CodecError: as :meth:`encode`; the chunk was then not taken.

        """
        samples = pcm_rows(chunk)
        require_finite(samples)
        with self.entered(), self._keeping_what_is_pending():
            return self._encode_frames(self._accumulator.push(samples))

    def flush(self) -> NDArray[np.int32]:
        """Pad the unfinished frame with zeros and encode it: int32 [levels, 1], or [levels, 0] where there is none."""
        with self.entered(), self._keeping_what_is_pending():
            return self._encode_frames(self._accumulator.flush())

    def latents(self, chunk: ArrayLike, *, final: bool = False) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """As :meth:`push`, and give also the latents that the codes were chosen for, before quantisation.

        Args:
            chunk: float32 or int16 [n], n >= 0.
            final: whether to encode the unfinished frame too, as :meth:`flush`.

        Returns:
            int32 [levels, frames] and float32 [dim, frames], each with memory of its own.

        """
        samples = pcm_rows(chunk)
        require_finite(samples)
        with self.entered(), self._keeping_what_is_pending():
            frames = self._accumulator.push(samples)
            if final:
                frames = np.concatenate([frames, self._accumulator.flush()])
            nothing = _ext.decode_latents(self._model, np.empty((0, self.levels), np.int32))
            rows: list[NDArray[np.float32]] = [nothing]
            codes = self._encode_frames(frames, rows)
        return codes, np.ascontiguousarray(np.concatenate(rows).T)

    def reset(self) -> None:
        """Become as a new session, bit for bit; what :meth:`push` held back is dropped."""
        with self.entered():
            self.native.reset()
            self._accumulator.clear()

    def snapshot(self) -> bytes:
        """Return the whole state, the unfinished frame of :meth:`push` included; see :mod:`codec_core.snapshot`."""
        with self.entered():
            content = SnapshotContent(self.levels, self._accumulator.pending(), self.native.save_state())
        return pack(self.info, self.direction, content)

    def restore_parts(self, content: SnapshotContent) -> None:
        """Take over what a snapshot held (used by :meth:`codec_core.CodecModel.restore_encoder`)."""
        with self.entered():
            self.native.load_state(content.state)
            self._accumulator.restore(content.pending)

    @contextmanager
    def _keeping_what_is_pending(self) -> Iterator[None]:
        """Put the unfinished frame back where a call fails."""
        pending = self._accumulator.pending()
        try:
            yield
        except BaseException:
            self._accumulator.restore(pending)
            raise

    def _encode_frames(
        self, frames: NDArray[np.float32], latents: list[NDArray[np.float32]] | None = None
    ) -> NDArray[np.int32]:
        """Encode whole frames, all or none; append the latent of each, [1, dim], where a list is given."""
        codes = np.empty((self.levels, len(frames)), np.int32)
        if not len(frames):
            self.native.require_open()
        with self._all_or_nothing(len(frames)):
            for index, frame in enumerate(frames):
                codes[:, index] = self._encode_frame(frame) if latents is None else self._encode_latent(frame, latents)
        return codes

    def _encode_frame(self, frame: NDArray[np.float32], observer: StageObserver | None = None) -> NDArray[np.int32]:
        with self._naming_the_frame():
            codes: NDArray[np.int32] = _ext.encode_batch([self.native], frame[np.newaxis], observer)[0]
        return codes

    def _encode_latent(self, frame: NDArray[np.float32], latents: list[NDArray[np.float32]]) -> NDArray[np.int32]:
        with self._naming_the_frame():
            codes, latent = _ext.encode_batch_with_latents([self.native], frame[np.newaxis])
        latents.append(latent)
        chosen: NDArray[np.int32] = codes[0]
        return chosen


class DecoderSession(Session[_ext.DecoderSession]):
    """A stream from codes to 24 kHz mono PCM. Made by :meth:`codec_core.CodecModel.decoder`."""

    direction = "decoder"

    def __init__(self, model: _ext.CodecModel, info: ModelInfo, levels: int | None) -> None:
        super().__init__(_ext.DecoderSession(model, checked_levels(levels, info)), info)

    def decode(self, codes: ArrayLike, observer: StageObserver | None = None) -> NDArray[np.float32]:
        """Decode exactly one frame.

        Args:
            codes: integers [levels], each 0 .. codebook_entries - 1.
            observer: sees every stage of the step.

        Returns:
            float32 [frame_samples], nominally -1 .. 1, not clipped.

        Raises:
            InputShapeError, InputTypeError, CodeRangeError, NumericOverflowError, SessionBusyError, SessionClosedError.

        """
        frame = code_rows(codes)
        if frame.shape != (self.levels,):
            raise InputShapeError("codes", str(list(frame.shape)), f"[{self.levels}]: one frame")
        with self.entered():
            return self._decode_frame(frame, observer)

    def push(self, codes: ArrayLike) -> NDArray[np.float32]:
        """Decode several frames.

        Args:
            codes: integers [levels, frames], frames >= 0.

        Returns:
            float32 [frames * frame_samples].

        Raises:
            CodecError: as :meth:`decode`; no frame was then decoded.

        """
        rows = code_rows(codes)
        if rows.ndim != 2 or rows.shape[0] != self.levels:
            raise InputShapeError("codes", str(list(rows.shape)), f"[{self.levels}, frames]")
        pcm = np.empty((rows.shape[1], self.info.frame_samples), np.float32)
        if not len(pcm):
            self.native.require_open()
        with self.entered(), self._all_or_nothing(len(pcm)):
            for index, frame in enumerate(np.ascontiguousarray(rows.T)):
                pcm[index] = self._decode_frame(frame)
        return pcm.reshape(-1)

    def _decode_frame(self, frame: NDArray[np.int32], observer: StageObserver | None = None) -> NDArray[np.float32]:
        with self._naming_the_frame():
            pcm: NDArray[np.float32] = _ext.decode_batch([self.native], frame[np.newaxis], observer)[0]
        return pcm

    def reset(self) -> None:
        """Become as a new session, bit for bit."""
        with self.entered():
            self.native.reset()

    def snapshot(self) -> bytes:
        """Return the whole state; see :mod:`codec_core.snapshot`."""
        with self.entered():
            content = SnapshotContent(self.levels, np.empty(0, np.float32), self.native.save_state())
        return pack(self.info, self.direction, content)

    def restore_parts(self, content: SnapshotContent) -> None:
        """Take over what a snapshot held (used by :meth:`codec_core.CodecModel.restore_decoder`)."""
        with self.entered():
            self.native.load_state(content.state)
