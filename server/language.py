"""The language model of a service, for streams of mode ``talk``; and both models as one engine, whose steps are batched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_core import CodecModel, LanguageModel, Sampling
from codec_core.gguf_file import GgufFile
from codec_core.language_session import FREE, GREEDY, LanguageSession
from codec_core.talk import require_fitting
from codec_core.text_tokenizer import TextTokenizer
from server.batch_schedule import Array
from server.wire_settings import StreamSettings
from server.wire_talk import LanguageOffer


@dataclass(frozen=True)
class Language:
    """A language model, and the text tokenizer of its file, where it has one."""

    model: LanguageModel
    tokenizer: TextTokenizer | None

    @classmethod
    def open(cls, path: str | os.PathLike[str], codec: CodecModel, threads: int, ram_budget_bytes: int | None) -> Language:
        """Open a model's file.

        Raises:
            CodecError: the file is refused, or is of a model that does not go with the codec.

        """
        model = LanguageModel.open(path, threads, ram_budget_bytes)
        require_fitting(codec.info, model.info)
        # Snapshots name it, and reading the whole file is nothing for the event loop.
        model.info.digest.hexadecimal()
        return cls(model, TextTokenizer.from_file(GgufFile(path)))

    def offer(self) -> LanguageOffer:
        """Say what a client may ask of it."""
        info = self.model.info
        usual = Sampling() if info.own_levels else GREEDY
        return LanguageOffer(
            user_levels=info.user_levels,
            own_levels=info.own_levels,
            text_temperature=usual.text_temperature,
            text_top_k=usual.text_top_k,
            temperature=usual.temperature if info.own_levels else 0.0,
            top_k=usual.top_k if info.own_levels else 0,
        )

    def session(self, settings: StreamSettings) -> LanguageSession:
        """Make a session for a stream."""
        return self.model.session(
            Sampling(settings.text_temperature, settings.text_top_k, settings.temperature, settings.top_k, settings.seed)
        )


class TalkingEngine:
    """A codec and a language model: the engine of a service that talks.

    Args:
        codec: makes and takes codes.
        language: answers them.

    """

    def __init__(self, codec: CodecModel, language: LanguageModel) -> None:
        self.encode_batch = codec.encode_batch
        self.decode_batch = codec.decode_batch
        self._language = language

    def language_batch(self, sessions: Sequence[Any], codes: Array) -> Array:
        """Step int32 [B, user levels] to int32 [B, 1 + own levels]: text and codes; all FREE where there is nothing yet."""
        steps = self._language.step_batch(sessions, codes)
        rows = np.full((len(steps), 1 + self._language.info.own_levels), FREE, np.int32)
        for row, step in zip(rows, steps, strict=True):
            if step is not None:
                row[0] = step[0]
                row[1:] = step[1] if step[1] is not None else ()
        return rows
