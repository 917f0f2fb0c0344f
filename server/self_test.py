"""What a service asks of its model before it serves: the same answers alone and in a batch; golden ones, if any are known."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel, LanguageModel
from codec_core.errors import CodecError, InternalError
from codec_core.language_session import FREE
from server.codec_executor import CodecExecutor

PASSED: Final = "passed"
FRAMES: Final = 3
DEFAULT_MODEL: Final = "711d8be6de518ccab3ed5835167841965b9ca087ed4e5fa098e3bf8fb0383a54"
GOLDEN: Final[dict[tuple[str, str], str]] = {
    (DEFAULT_MODEL, "kyutai"): "e516d8a2feac1ae10c62ff3582d8157b4405714ea495eb595587e73e36774916",
    (DEFAULT_MODEL, "ggml"): "f1fdba784938e34ab0d91374300311a4f51e918c5617072cef18d538bae9c19b",
    (DEFAULT_MODEL, "ggml-causal"): "f1fdba784938e34ab0d91374300311a4f51e918c5617072cef18d538bae9c19b",
}
"""By SHA-256 of the model's file and numerics: SHA-256 of the codes and samples that every machine makes of :func:`signal`."""


def signal(frame_samples: int) -> npt.NDArray[np.float32]:
    """Make the test's sound, float32 [FRAMES, frame_samples]: noise by integer arithmetic, the same on any machine."""
    states = np.arange(1, FRAMES * frame_samples + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    samples: npt.NDArray[np.float32] = (states >> np.uint64(48)).astype(np.float32) / np.float32(65_536) - np.float32(0.5)
    return samples.reshape(FRAMES, frame_samples)


async def run_self_test(executor: CodecExecutor, model: CodecModel) -> tuple[str, str]:
    """Encode and decode some frames of noise, alone and in a batch, and compare.

    Returns:
        the outcome, ``passed`` or what is wrong; and what is to be said of golden codes.

    """
    try:
        codes, sound = await _answers(executor, model)
        return PASSED, _compare_with_golden(model, codes, sound)
    except CodecError as error:
        return str(error), "not compared"


async def run_language_self_test(executor: CodecExecutor, model: LanguageModel) -> str:
    """Step a language model alone and in a batch, and compare; return the outcome, ``passed`` or what is wrong."""
    try:
        sessions = [model.session() for _ in range(3)]
        codes = np.arange(model.info.user_levels, dtype=np.int32) % model.info.codebook_entries
        for _ in range(FRAMES):
            alone = await executor.converse(sessions[0], codes)
            for step in model.step_batch(sessions[1:], np.stack([codes, codes])):
                again = [FREE] if step is None else [step[0], *(() if step[1] is None else step[1])]
                if again[0] != alone[0] or (step is not None and not np.array_equal(again, alone)):
                    raise InternalError("self-test", found="tokens that depend on the batch", expected="the same tokens")
        executor.retire(sessions[0])
    except CodecError as error:
        return str(error)
    return PASSED


async def _answers(executor: CodecExecutor, model: CodecModel) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    encoders, decoders = [model.encoder() for _ in range(3)], [model.decoder() for _ in range(3)]
    codes, sounds = [], []
    for pcm in signal(model.info.frame_samples):
        alone = await executor.encode(encoders[0], pcm)
        if not (model.encode_batch(encoders[1:], np.stack([pcm, pcm])) == alone).all():
            raise InternalError("self-test", found="codes that depend on the batch", expected="the same codes")
        sound = await executor.decode(decoders[0], alone)
        together = model.decode_batch(decoders[1:], np.stack([alone, alone]))
        if not (together == sound).all() or not np.isfinite(sound).all():
            raise InternalError("self-test", found="samples that depend on the batch", expected="the same samples")
        codes.append(alone)
        sounds.append(sound)
    return np.array(codes), np.array(sounds)


def _compare_with_golden(model: CodecModel, codes: npt.NDArray[Any], sound: npt.NDArray[Any]) -> str:
    golden = GOLDEN.get((model.info.sha256, model.info.numerics))
    if golden is None:
        return "none known of this model"
    found = hashlib.sha256(codes.astype("<i4").tobytes() + sound.astype("<f4").tobytes()).hexdigest()
    if found != golden:
        raise InternalError(
            "self-test", found=f"other codes and samples ({found[:12]})", expected=f"the golden ones ({golden[:12]})"
        )
    return "equal"
