"""A model against golden vectors: stage by stage, code by code, and the sound.

``ggml`` and ``ggml-causal`` numerics must give the published bits. ``kyutai`` numerics must give the published codes, stages
within a relative RMS error of 1e-4 and sound of at least 100 dB SNR; digests, where a folder has them, pin its bits as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.difference import (
    Difference,
    compare_closely,
    compare_codes,
    compare_digests,
    compare_sound,
    compare_steps,
    digest_rows,
    relative_rms,
)
from codec_core.errors import CodesFileError
from codec_core.model import CodecModel
from codec_core.verify.vectors import SignalVectors, StageVectors

LARGEST_RELATIVE_RMS: Final = 1e-4
LEAST_SNR_DB: Final = 100.0

Stages = dict[str, npt.NDArray[np.float32]]
"""float32 [channels, steps of one frame] by name, in the order they were computed."""


def is_bit_exact(numerics: str) -> bool:
    """Tell whether the vectors of these numerics hold bits rather than close values."""
    return numerics != "kyutai"


def has_codes(signal: SignalVectors, numerics: str) -> bool:
    """Tell whether there are codes to compare."""
    return signal.array(f"{numerics}_codes") is not None


def has_sound(signal: SignalVectors, numerics: str) -> bool:
    """Tell whether there is sound to compare."""
    kinds = (signal.array(f"{numerics}_{kind}") for kind in ("pcm", "pcm_digests"))
    return has_codes(signal, numerics) and any(array is not None for array in kinds)


def check_codes(model: CodecModel, signal: SignalVectors) -> Difference | None:
    """Encode the signal, with its last frame padded where that is known, and compare its codes."""
    numerics = model.info.numerics
    expected = _required(signal, f"{numerics}_codes")
    session = model.encoder(expected.shape[0])
    found = session.push(signal.pcm[: expected.shape[1] * model.info.frame_samples])
    if difference := _compare_codes(signal, numerics, expected, found):
        return difference
    flushed = signal.array(f"{numerics}_codes_flushed")
    if flushed is None:
        return None
    rest = session.push(signal.pcm[expected.shape[1] * model.info.frame_samples :])
    return compare_codes(flushed, np.concatenate([found, rest, session.flush()], axis=1))


def check_sound(model: CodecModel, signal: SignalVectors) -> Difference | None:
    """Decode the signal's codes and compare the sound, by its bits, their digests or its SNR."""
    numerics, frame_samples = model.info.numerics, model.info.frame_samples
    codes = _required(signal, f"{numerics}_codes")
    pcm, digests = signal.array(f"{numerics}_pcm"), signal.array(f"{numerics}_pcm_digests")
    found = model.decoder(codes.shape[0]).push(codes)
    difference = None
    if pcm is not None and is_bit_exact(numerics):
        difference = compare_sound(pcm, found, frame_samples)
    elif pcm is not None:
        difference = _compare_snr(pcm, found)
    if difference is None and digests is not None:
        rows = digest_rows(found.reshape(-1, frame_samples))
        difference = compare_digests("sound", digests, rows)
    return difference


def check_stages(model: CodecModel, signal: SignalVectors, stages: StageVectors) -> Difference | None:
    """Encode and decode the first frames and compare every stage; names the first that differs."""
    codes = _required(signal, f"{model.info.numerics}_codes")
    return compare_stages(stages, observed_stages(model, signal.pcm, codes), is_bit_exact(model.info.numerics))


def observed_stages(model: CodecModel, pcm: npt.NDArray[Any], codes: npt.NDArray[Any]) -> Iterator[Stages]:
    """Encode the frames of ``pcm`` beside decoding those of ``codes``; yield all stages of each."""
    encoder, decoder = model.encoder(codes.shape[0]), model.decoder(codes.shape[0])
    for frame in range(codes.shape[1]):
        stages: Stages = {}
        start = frame * model.info.frame_samples
        encoder.encode(pcm[start : start + model.info.frame_samples], _collector(stages))
        decoder.decode(codes[:, frame], _collector(stages))
        yield stages


def compare_stages(stages: StageVectors, observed: Iterator[Stages], bit_exact: bool) -> Difference | None:
    """Compare as many frames as the vectors have; names the first frame's first stage that differs."""
    for frame, found in enumerate(observed):
        if missing := sorted(set(stages.names()) ^ set(found)):
            return Difference(missing[0], "a stage of both", "a stage of one only")
        for name, values in found.items():
            if difference := _compare_stage(stages, name, values, frame, bit_exact):
                return difference
        if frame + 1 == _frames_of(stages, found):
            break
    return None


def _frames_of(stages: StageVectors, found: Stages) -> int:
    """How many frames the vectors have, told by a stage of which every step is kept."""
    name = next(name for name in stages.names() if stages.steps(name) is None)
    return int(stages.values(name).shape[1]) // int(found[name].shape[1])


def _compare_stage(
    stages: StageVectors, name: str, values: npt.NDArray[np.float32], frame: int, bit_exact: bool
) -> Difference | None:
    first, last = frame * values.shape[1], (frame + 1) * values.shape[1]
    kept, digests = stages.steps(name), stages.digests(name)
    stored = stages.values(name)
    steps = np.arange(stored.shape[1]) if kept is None else kept
    of_frame = (steps >= first) & (steps < last)
    expected = stored[:, of_frame]
    places = steps[of_frame] - first
    if not bit_exact:
        difference = compare_closely(name, expected, values[:, places], frame, LARGEST_RELATIVE_RMS)
    else:
        difference = compare_steps(name, expected, values[:, places], frame)
    if difference is not None and difference.step is not None:
        return replace(difference, step=int(places[difference.step]))
    if difference is None and digests is not None:
        return compare_digests(name, digests[first:last], digest_rows(values.T), frame)
    return difference


def _compare_codes(
    signal: SignalVectors, numerics: str, expected: npt.NDArray[Any], found: npt.NDArray[Any]
) -> Difference | None:
    """Compare codes as strictly as the folder says: a trained model's last levels have near-ties."""
    alternative = signal.array(f"{numerics}_codes_second")
    exact_levels, share = signal.array("exact_levels"), signal.array("least_code_match")
    difference = compare_codes(expected, found, alternative)
    if difference is None or difference.differing is None or share is None or is_bit_exact(numerics):
        return difference
    if 1 - difference.differing / expected.size < float(share):
        return difference
    first = slice(int(exact_levels) if exact_levels is not None else 0)
    return compare_codes(expected[first], found[first], None if alternative is None else alternative[first])


def _compare_snr(expected: npt.NDArray[np.float32], found: npt.NDArray[np.float32]) -> Difference | None:
    if expected.shape != found.shape:
        return Difference("sound", f"{len(expected)} samples", f"{len(found)} samples")
    error = relative_rms(expected, found)
    snr_db = -20 * float(np.log10(error)) if error else float("inf")
    if snr_db >= LEAST_SNR_DB:
        return None
    return Difference("sound", f"an SNR of at least {LEAST_SNR_DB:g} dB", f"{snr_db:.1f} dB")


def _required(signal: SignalVectors, name: str) -> npt.NDArray[Any]:
    array = signal.array(name)
    if array is None:
        raise CodesFileError(f"{signal.name}.npz", "other arrays", f"one named {name}")
    return array


def _collector(stages: Stages) -> Callable[[str, npt.NDArray[np.float32]], None]:
    def collect(name: str, values: npt.NDArray[np.float32]) -> None:
        stages[name] = np.ascontiguousarray(values[0].T)

    return collect
