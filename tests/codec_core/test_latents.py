"""The continuous side of the quantiser: latents of a stream, latents of codes, codebooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from codec_core import CodecModel
from codec_core.errors import (
    CodeRangeError,
    InputShapeError,
    InputTypeError,
    NonFiniteInputError,
    SessionClosedError,
    SettingError,
)


def observed(model: CodecModel, pcm: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes [levels, frames], latents before quantisation and in the decoder [dim, frames], as an observer sees them."""
    seen: dict[str, list[np.ndarray]] = {"encoder.downsample": [], "decoder.latent": []}

    def observe(name: str, values: np.ndarray) -> None:
        if name in seen:
            seen[name].append(values[0, 0])

    encoder, decoder, codes = model.encoder(levels), model.decoder(levels), []
    for frame in pcm.reshape(-1, 1920):
        codes.append(encoder.encode(frame, observe))
        decoder.decode(codes[-1], observe)
    return np.stack(codes, axis=1), *(np.stack(values, axis=1) for values in seen.values())


@pytest.mark.parametrize("levels", [1, 8, 32])
def test_latents_are_the_stages_of_the_step(tiny_model: CodecModel, pcm: np.ndarray, levels: int):
    codes, before, after = observed(tiny_model, pcm[: 1920 * 7], levels)
    found_codes, latents = tiny_model.encoder(levels).latents(pcm[: 1920 * 7])
    assert np.array_equal(found_codes, codes)
    assert np.array_equal(latents.view(np.uint32), before.view(np.uint32))
    assert np.array_equal(tiny_model.decode_latents(codes).view(np.uint32), after.view(np.uint32))


def test_chunks_do_not_show(tiny_model: CodecModel, pcm: np.ndarray, rng: np.random.Generator):
    whole = tiny_model.encoder(8).latents(pcm, final=True)
    session, parts, at = tiny_model.encoder(8), [], 0
    while at < len(pcm):
        size = int(rng.integers(0, 5000))
        parts.append(session.latents(pcm[at : at + size]))
        at += size
    parts.append(session.latents([], final=True))
    for index in range(2):
        assert np.array_equal(np.concatenate([part[index] for part in parts], axis=1), whole[index])
    other = tiny_model.encoder(8)
    assert np.array_equal(np.concatenate([other.push(pcm), other.flush()], axis=1), whole[0])


def test_many_frames_of_codes_at_once(tiny_model: CodecModel, rng: np.random.Generator):
    codes = rng.integers(0, tiny_model.info.codebook_entries, (8, 200))
    whole = tiny_model.decode_latents(codes)
    one_by_one = [tiny_model.decode_latents(codes[:, at : at + 1]) for at in range(200)]
    assert np.array_equal(whole, np.concatenate(one_by_one, axis=1))
    assert tiny_model.decode_latents(codes[:, :0]).shape == (len(whole), 0)


def test_no_frame_gives_empty_arrays(tiny_model: CodecModel):
    codes, latents = tiny_model.encoder(8).latents(np.zeros(100, np.float32))
    assert (codes.shape, latents.shape) == ((8, 0), (16, 0))


def test_a_refused_call_did_not_happen(tiny_model: CodecModel, pcm: np.ndarray):
    session, untouched = tiny_model.encoder(8), tiny_model.encoder(8)
    for one in (session, untouched):
        one.push(pcm[:3000])
    with pytest.raises(NonFiniteInputError):
        session.latents(np.array([0.0, np.nan], np.float32))
    with pytest.raises(Exception, match="of frame 3"):
        session.latents(np.concatenate([pcm[:4000], np.full(1920, 3e38, np.float32)]))
    assert session.pending_samples == 1080
    assert np.array_equal(session.latents(pcm[3000:9000])[1], untouched.latents(pcm[3000:9000])[1])
    session.close()
    with pytest.raises(SessionClosedError):
        session.latents(pcm)


def test_codebooks_are_the_checkpoints(tiny_checkpoint: Path, tiny_gguf: Path):
    model = CodecModel.open(tiny_gguf)
    tensors = load_file(tiny_checkpoint)
    for level, name in ((0, "rvq_first.vq.layers.0"), (1, "rvq_rest.vq.layers.0"), (31, "rvq_rest.vq.layers.30")):
        stem = f"quantizer.{name}._codebook"
        usage = np.maximum(tensors[f"{stem}.cluster_usage"], 1e-5)
        assert np.array_equal(model.codebook(level), tensors[f"{stem}.embedding_sum"] / usage[:, None]), name
    with pytest.raises(SettingError, match="level: found 32"):
        model.codebook(32)
    with pytest.raises(SettingError):
        model.codebook(-1)


def test_arrays_own_their_memory_and_are_handed_on_without_a_copy(tiny_model: CodecModel, pcm: np.ndarray):
    codes, latents = tiny_model.encoder(8).latents(pcm[:4000])
    for array in (latents, tiny_model.decode_latents(codes), tiny_model.codebook(3)):
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert np.from_dlpack(array).ctypes.data == array.ctypes.data
        assert np.frombuffer(memoryview(array), np.float32).ctypes.data == array.ctypes.data


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (np.zeros(8, np.int32), InputShapeError),
        (np.zeros((8, 1)), InputTypeError),
        (np.zeros((33, 1), np.int32), SettingError),
        (np.zeros((0, 1), np.int32), SettingError),
        (np.full((8, 3), 32), CodeRangeError),
        (np.full((8, 3), -1), CodeRangeError),
    ],
)
def test_codes_that_are_none(tiny_model: CodecModel, codes: np.ndarray, error: type[Exception]):
    with pytest.raises(error):
        tiny_model.decode_latents(codes)


def test_a_code_out_of_range_is_named(tiny_model: CodecModel):
    codes = np.zeros((8, 5), np.int32)
    codes[6, 3] = 99
    with pytest.raises(CodeRangeError, match=r"code at level 6 of frame 3: found 99, expected 0 \.\. 31"):
        tiny_model.decode_latents(codes)
