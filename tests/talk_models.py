"""Language models in miniature that fit a codec, with a text tokenizer: made by the project's own generator and converter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from codec_core import CodecModel, LanguageModel, Sampling
from codec_core.convert import convert_language_model
from codec_core.synth_lm import LM_CONFIGS
from tests.lm_sources import train_tokenizer, write_checkpoint

KINDS: Final[dict[str, dict[str, Any]]] = {
    "converses": LM_CONFIGS["a"],
    "lags": LM_CONFIGS["h"],
    "writes": LM_CONFIGS["s"] | {"stt_config": {"audio_delay_seconds": 0.5, "audio_silence_prefix_seconds": 0.25}},
    "reads_out": LM_CONFIGS["c"],
    "persona": LM_CONFIGS["a"]
    | {"n_q": 16, "dep_q": 16, "model_type": "personaplex", "delays": [0, *[0, *[1] * 7] * 2], "context": 96},
}
"""What each of them does: moshiko, one with a delay of two steps, speech recognition, text to speech, PersonaPlex."""


def write_talk_model(folder: Path, kind: str, codebook_entries: int) -> Path:
    """Write a model's GGUF file for a codec of so many codes a codebook."""
    folder.mkdir()
    LM_CONFIGS[kind] = KINDS[kind] | {"card": codebook_entries}
    try:
        checkpoint = write_checkpoint(folder / f"{kind}.safetensors", kind)
    finally:
        del LM_CONFIGS[kind]
    tokenizer = train_tokenizer(folder / "words.model", KINDS[kind]["text_card"])
    convert_language_model(checkpoint, folder / f"{kind}.gguf", tokenizer=tokenizer)
    checkpoint.unlink()
    return folder / f"{kind}.gguf"


def direct_answer(
    codec: CodecModel, language: LanguageModel, pcm: np.ndarray, sampling: Sampling | None = None
) -> tuple[list[int], np.ndarray]:
    """Text tokens and sound of a model that hears whole frames, int16 or float32: the library's calls, one after the other."""
    info = language.info
    encoder, session = codec.encoder(info.user_levels), language.session(sampling)
    decoder = codec.decoder(info.own_levels) if info.own_levels else None
    tokens, sounds = [], [np.empty(0, np.float32)]
    for index, frame in enumerate(pcm.reshape(-1, codec.info.frame_samples)):
        codes = encoder.encode(frame)
        if index == 0:
            session.step(codes)
        step = session.step(codes)
        if step is not None:
            tokens.append(step[0])
            if decoder is not None:
                sounds.append(decoder.decode(step[1]))
    return tokens, np.concatenate(sounds)
