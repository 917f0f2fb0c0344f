"""A loaded model: opened once, immutable, shared by every session and thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core import _ext, model_cache, snapshot
from codec_core.errors import InputShapeError, InputTypeError, ModelAccessError, SettingError
from codec_core.model_source import chosen_isa, chosen_threads, file_at_rest, sha256_of
from codec_core.rows import code_rows, pcm_rows
from codec_core.session import DecoderSession, EncoderSession, Native, Session
from codec_core.session_base import all_entered
from codec_core.window import WindowStats, chosen_budget, stats_of

_PACKAGED_MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class ModelInfo:
    """What a loaded model is.

    ``levels`` are in the file, ``default_levels`` is what a session gets unless told otherwise; ``context_steps`` is how far
    attention reaches, in steps of half a frame; ``isa`` is the instruction set its kernels use; ``weights_bytes`` is the one
    packed copy in memory, or what of it is there under a budget; the state sizes are per session.
    """

    name: str
    path: str
    sha256: str
    weight_class: str
    numerics: str
    sample_rate_hz: int
    frame_samples: int
    frame_rate_hz: float
    levels: int
    default_levels: int
    codebook_entries: int
    context_steps: int
    isa: str
    threads: int
    weights_bytes: int
    encoder_state_bytes: int
    decoder_state_bytes: int


def resolve_model_path(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the file behind a model's name or path; a checkpoint is first converted into the cache.

    The name of a model embedded in the package (``default``), or of one that ``mimi pull`` fetched, wins over a file of that
    name; ``./default`` is the file.

    Raises:
        ModelAccessError: neither the name of a model nor a path, or a cache that cannot be written.
        CheckpointError, ModelContractError: a checkpoint that cannot be converted.

    """
    text = os.fspath(name_or_path)
    if text and os.sep not in text:
        for named in (_PACKAGED_MODELS / f"{text}.gguf", model_cache.pulled_path(text)):
            if named.is_file():
                return named
    if os.sep in text or Path(text).suffix or (text and Path(text).exists()):
        return model_cache.resolve(Path(text))
    names = ", ".join(sorted(path.stem for path in _PACKAGED_MODELS.glob("*.gguf")))
    raise ModelAccessError(
        "model", repr(text), f"the path of a model file or checkpoint, an embedded model ({names}), or one fetched by mimi pull"
    )


class CodecModel:
    """A Mimi model ready to serve sessions. Made by :meth:`open`; safe to use from any thread."""

    def __init__(self, native: _ext.CodecModel, info: ModelInfo) -> None:
        self._native = native
        self.info = info

    @classmethod
    def open(
        cls,
        path_or_name: str | os.PathLike[str],
        numerics: str | None = None,
        threads: int | None = None,
        ram_budget_bytes: int | None = None,
    ) -> CodecModel:
        """Read, check and pack a GGUF model file.

        Args:
            path_or_name: the path of a model file; or the name of an embedded model (``default``) or of a pulled one; or a
                checkpoint, which is converted once, into the cache (see :mod:`codec_core.model_cache`).
            numerics: ``kyutai``, ``ggml`` or ``ggml-causal`` (moshi.cpp with its attention mask corrected past 10 s); None
                takes what the file asks for.
            threads: threads one step may use, the caller's included; None takes ``MIMI_THREADS``, else 1. No result depends
                on it.
            ram_budget_bytes: most bytes of weights in memory; None takes ``MIMI_RAM_BUDGET``, else no limit. Under a budget
                that is smaller than the weights, layers are read again and again from the file, which must stay as it is; the
                results are the same. Sessions and scratch come on top. See ``docs/tensor_window.md``.

        The instruction set is the best this machine has, or the one ``MIMI_ISA`` names (``scalar``, ``avx2``, ``avx512``,
        ``avx512_vnni``).

        Raises:
            ModelAccessError, ModelFormatError, ModelContractError, CheckpointError: the file is refused.
            SettingError: an argument outside its legal values, or a budget that is too small, naming the least.
            UnavailableError: legal, but not on this machine or in this version.

        """
        budget = chosen_budget(ram_budget_bytes)
        path = resolve_model_path(path_or_name)
        with file_at_rest(path):
            native = _ext.CodecModel.open(os.fspath(path), numerics or "", chosen_isa(), chosen_threads(threads), budget)
            info = _describe(native, path)
        return cls(native, info)

    def __repr__(self) -> str:
        info = self.info
        return f"<CodecModel {info.name}: {info.weight_class}, {info.numerics} numerics, {info.levels} levels, {info.isa}>"

    @property
    def window_stats(self) -> WindowStats | None:
        """Counters of the tensor window; None where all weights are resident."""
        return stats_of(self._native)

    def encoder(self, levels: int | None = None) -> EncoderSession:
        """Return a new stream from PCM to codes of ``levels`` (1 .. ``info.levels``; None: ``info.default_levels``)."""
        return EncoderSession(self._native, self.info, levels)

    def decoder(self, levels: int | None = None) -> DecoderSession:
        """Return a new stream from codes of ``levels`` to PCM."""
        return DecoderSession(self._native, self.info, levels)

    def encode_batch(self, sessions: Sequence[EncoderSession], pcm: ArrayLike) -> NDArray[np.int32]:
        """Encode one frame of each session in one pass over the weights.

        Args:
            sessions: distinct sessions of this model with the same number of levels.
            pcm: float32 or int16 [sessions, frame_samples], each row the next frame of its session, past whatever its
                ``push`` still holds back.

        Returns:
            int32 [sessions, levels], bit-equal to encoding one by one.

        Raises:
            CodecError: as :meth:`EncoderSession.encode`, or a session of another model or direction; no session has moved.

        """
        natives = [self._own(session, EncoderSession, lane) for lane, session in enumerate(sessions)]
        frames = pcm_rows(pcm)
        _require_rows("PCM", frames, len(natives))
        with all_entered(sessions):
            return _ext.encode_batch(natives, frames)

    def decode_batch(self, sessions: Sequence[DecoderSession], codes: ArrayLike) -> NDArray[np.float32]:
        """Decode one frame of each session in one pass: int [sessions, levels] -> float32 [sessions, frame_samples]."""
        natives = [self._own(session, DecoderSession, lane) for lane, session in enumerate(sessions)]
        rows = code_rows(codes)
        _require_rows("codes", rows, len(natives))
        with all_entered(sessions):
            return _ext.decode_batch(natives, rows)

    def decode_latents(self, codes: ArrayLike) -> NDArray[np.float32]:
        """Return what the decoder makes of codes before it upsamples: the projected sum of their codewords.

        Args:
            codes: integers [levels, frames], 1 .. ``info.levels`` of them; frames do not know of one another.

        Returns:
            float32 [dim, frames], with memory of its own.

        Raises:
            InputShapeError, InputTypeError, CodeRangeError, SettingError.

        """
        rows = code_rows(codes)
        if rows.ndim != 2:
            raise InputShapeError("codes", str(list(rows.shape)), "[levels, frames]")
        return np.ascontiguousarray(_ext.decode_latents(self._native, np.ascontiguousarray(rows.T)).T)

    def codebook(self, level: int) -> NDArray[np.float32]:
        """Return a copy of a level's codewords, float32 [codebook_entries, width]: in the quantiser's space, unprojected.

        Args:
            level: 0 .. ``info.levels`` - 1; 0 is the semantic one.

        Raises:
            SettingError: the model has no such level.

        """
        if not 0 <= level < self.info.levels:
            raise SettingError("level", str(level), f"0 .. {self.info.levels - 1}")
        return _ext.codebook(self._native, level)

    def _own(self, session: Session[Native], kind: type[Session[Native]], lane: int) -> Native:
        """Return the engine's side of a session of this model and direction."""
        if not isinstance(session, kind):
            raise InputTypeError(f"session {lane}", type(session).__name__, kind.__name__)
        if session.info is not self.info:
            raise SettingError(f"session {lane}", f"one of model {session.info.name!r}", "a session made by this model")
        return session.native

    def restore_encoder(self, blob: bytes) -> EncoderSession:
        """Continue an encoder session from :meth:`EncoderSession.snapshot`, bit for bit.

        Raises:
            SnapshotError: damaged, or of another model, numerics or direction.

        """
        content = snapshot.unpack(blob, self.info, "encoder")
        session = self.encoder(content.levels)
        session.restore_parts(content)
        return session

    def restore_decoder(self, blob: bytes) -> DecoderSession:
        """Continue a decoder session from :meth:`DecoderSession.snapshot`, bit for bit."""
        content = snapshot.unpack(blob, self.info, "decoder")
        session = self.decoder(content.levels)
        session.restore_parts(content)
        return session


def _require_rows(what: str, rows: NDArray[np.float32] | NDArray[np.int32], sessions: int) -> None:
    if rows.ndim != 2 or rows.shape[0] != sessions:
        raise InputShapeError(what, f"{list(rows.shape)}", f"one row for each of {sessions} sessions")


def _describe(native: _ext.CodecModel, path: Path) -> ModelInfo:
    return ModelInfo(
        name=native.name or path.stem,
        path=os.fspath(path),
        sha256=sha256_of(path),
        weight_class=native.weight_class,
        numerics=native.numerics,
        sample_rate_hz=native.sample_rate_hz,
        frame_samples=native.frame_samples,
        frame_rate_hz=native.frame_rate_hz,
        levels=native.levels,
        default_levels=native.default_levels,
        codebook_entries=native.codebook_entries,
        context_steps=native.context_steps,
        isa=native.isa,
        threads=native.threads,
        weights_bytes=native.weights_bytes,
        encoder_state_bytes=native.encoder_state_bytes,
        decoder_state_bytes=native.decoder_state_bytes,
    )
