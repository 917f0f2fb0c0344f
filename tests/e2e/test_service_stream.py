"""The stream endpoint against the library, bit for bit: a real process, a real client."""

from __future__ import annotations

import asyncio

import httpx
import numpy as np
import pytest

from codec_core.clip import decode_clip, encode_clip
from codec_core.pcm import PcmIntake, to_int16
from server.sample_format import AudioOutlet, mulaw_decode, mulaw_encode
from server.wire_messages import KIND_CODES, KIND_PCM
from server.wire_settings import StreamSettings

FRAME_SAMPLES = 1920
LEVELS = 8


async def send_in_chunks(client, data: bytes, chunk_bytes: int) -> None:
    for start in range(0, len(data), chunk_bytes):
        await client.connection.send(data[start : start + chunk_bytes])


@pytest.mark.parametrize("chunk_bytes", [997, 3840, 3841, 65_536])
async def test_encode_equals_the_library_for_any_chunks(service, tiny_model, stream, speech, chunk_bytes):
    """ANCHORS A4, A5, B1: chunks of any size are one stream, and samples are all accounted for."""
    async with stream(service, f"mode=encode&levels={LEVELS}") as client:
        ready = await client.until("ready")
        await send_in_chunks(client, speech.tobytes(), chunk_bytes)
        await client.send("flush")
        flushed = await client.until("flushed")
    expected = encode_clip(tiny_model, speech, LEVELS)
    assert np.array_equal(client.codes(), expected)
    assert ready["settings"]["levels"] == LEVELS
    assert ready["model"]["sha256"] == tiny_model.info.sha256
    frames = expected.shape[1]
    assert [header for header, _ in client.frames] == [(1, 1, LEVELS, index, index * FRAME_SAMPLES) for index in range(frames)]
    assert flushed == {
        "type": "flushed",
        "frames": frames,
        "position": frames * FRAME_SAMPLES,
        "samples": len(speech),
        "padded_samples": frames * FRAME_SAMPLES - len(speech),
        "received_samples": len(speech),
        "sent_samples": 0,
        "flushes": 1,
    }


async def test_single_bytes_split_every_sample(service, tiny_model, stream, speech):
    piece = speech[:FRAME_SAMPLES]
    async with stream(service, "levels=4") as client:
        await send_in_chunks(client, piece.tobytes(), 1)
        await client.until("ready")
        await client.receive()
    assert np.array_equal(client.codes(), encode_clip(tiny_model, piece, 4))


async def test_a_frame_is_answered_before_the_next_is_sent(service, tiny_model, stream, speech):
    encoder = tiny_model.encoder(LEVELS)
    async with stream(service, f"levels={LEVELS}") as client:
        await client.until("ready")
        for start in range(0, 10 * FRAME_SAMPLES, FRAME_SAMPLES):
            frame = speech[start : start + FRAME_SAMPLES]
            await client.connection.send(frame.tobytes())
            _, payload = await client.receive()
            assert np.array_equal(np.frombuffer(payload, "<u2"), encoder.encode(frame))


@pytest.mark.parametrize("form", ["f32le", "s16le", "mulaw"])
async def test_decode_equals_the_library(service, tiny_model, stream, speech, form):
    """ANCHORS B3, B4, B5: the decoder keeps its state, so that there are no seams."""
    frames_a_message = {"f32le": 1, "s16le": 7, "mulaw": 40}[form]
    codes = encode_clip(tiny_model, speech, LEVELS)
    async with stream(service, f"mode=decode&levels={LEVELS}&format={form}") as client:
        await send_in_chunks(client, codes.T.astype("<u2").tobytes(), 2 * LEVELS * frames_a_message)
        await client.send("flush")
        flushed = await client.until("flushed")
    pcm = decode_clip(tiny_model, codes)
    expected = {"f32le": lambda: pcm, "s16le": lambda: to_int16(pcm), "mulaw": lambda: mulaw_encode(to_int16(pcm))}[form]()
    assert np.array_equal(client.pcm(expected.dtype.str), expected)
    assert flushed["samples"] == flushed["sent_samples"] == len(pcm)
    assert all(header.kind == 2 and header.width == 1 for header, _ in client.frames)


async def test_echo_is_decoded_encoding(service, tiny_model, stream, speech):
    async with stream(service, f"mode=echo&levels={LEVELS}&format=f32le") as client:
        await send_in_chunks(client, (speech.astype("<f4") / np.float32(32768)).tobytes(), 10_000)
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.pcm("<f4"), decode_clip(tiny_model, encode_clip(tiny_model, speech, LEVELS)))


@pytest.mark.parametrize("form", ["binary", "json"])
async def test_an_echo_has_its_codes_beside_it_when_asked(service, tiny_model, stream, speech, form):
    async with stream(service, f"mode=echo&levels={LEVELS}&format=f32le&echo_codes=on&codes={form}") as client:
        await send_in_chunks(client, (speech.astype("<f4") / np.float32(32768)).tobytes(), 10_000)
        await client.send("flush")
        flushed = await client.until("flushed")
    expected = encode_clip(tiny_model, speech, LEVELS)
    order = [(2 * n + half, n * FRAME_SAMPLES) for n in range(flushed["frames"]) for half in (0, 1)]
    sound = [payload for header, payload in client.frames if header.kind == KIND_PCM]
    if form == "binary":
        codes = [np.frombuffer(payload, "<u2") for header, payload in client.frames if header.kind == KIND_CODES]
        assert [(header.sequence, header.position) for header, _ in client.frames] == order
    else:
        texts = [text for text in client.texts if text["type"] == "codes"]
        codes = [np.array(text["codes"]) for text in texts]
        assert [(text["sequence"], text["position"]) for text in texts] == order[::2]
        assert [(header.sequence, header.position) for header, _ in client.frames] == order[1::2]
    assert np.array_equal(np.array(codes).T, expected)
    assert np.array_equal(np.frombuffer(b"".join(sound), "<f4"), decode_clip(tiny_model, expected))


async def test_codes_as_json_in_both_directions(service, tiny_model, stream, speech):
    piece = speech[: 5 * FRAME_SAMPLES]
    codes = encode_clip(tiny_model, piece, 3)
    async with stream(service, "levels=3&codes=json") as client:
        await client.connection.send(piece.tobytes())
        await client.send("flush")
        await client.until("flushed")
    received = [text for text in client.texts if text["type"] == "codes"]
    assert [text["codes"] for text in received] == codes.T.tolist()
    assert [(text["sequence"], text["position"]) for text in received] == [(n, n * FRAME_SAMPLES) for n in range(5)]
    async with stream(service, "mode=decode&levels=3&codes=json&format=f32le") as client:
        for frame in codes.T.tolist():
            await client.send("codes", codes=frame)
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.pcm("<f4"), decode_clip(tiny_model, codes))


async def test_a_stream_goes_on_after_flush_at_the_next_frame(service, tiny_model, stream, speech):
    """ANCHORS B1, B2: nothing is dropped and nothing added."""
    first, second = speech[:2500], speech[2500:7000]
    encoder = tiny_model.encoder(LEVELS)
    expected = np.concatenate([encoder.push(first), encoder.flush(), encoder.push(second), encoder.flush()], axis=1)
    async with stream(service, f"levels={LEVELS}") as client:
        for piece in (first, second):
            await client.connection.send(piece.tobytes())
            await client.send("flush")
            flushed = await client.until("flushed")
    assert np.array_equal(client.codes(), expected)
    assert flushed["samples"] == 7000
    assert flushed["padded_samples"] == expected.shape[1] * FRAME_SAMPLES - 7000
    assert [header.sequence for header, _ in client.frames] == list(range(expected.shape[1]))


@pytest.mark.parametrize("mode", ["encode", "decode", "echo"])
async def test_reset_is_a_new_stream(service, tiny_model, stream, speech, mode):
    """ANCHORS A13: a session that is used again is as good as new."""
    codes = encode_clip(tiny_model, speech, LEVELS)
    data = codes.T.astype("<u2").tobytes() if mode == "decode" else speech.tobytes()
    async with stream(service, f"mode={mode}&levels={LEVELS}") as client:
        await client.until("ready")
        runs = []
        for epoch in (1, 2):
            client.frames.clear()
            await send_in_chunks(client, data[: len(data) // 2 + 1 - len(data) // 2 % 2] if mode != "decode" else data, 16_000)
            await client.send("reset")
            assert await client.until("reset_done") == {"type": "reset_done", "epoch": epoch}
            runs.append(list(client.frames))
    assert runs[0] == runs[1]
    assert runs[0][0][0].sequence == 0
    assert len(runs[0]) > 10


async def test_ping_is_answered_in_its_turn_and_ack_is_taken(service, stream, speech):
    async with stream(service, "levels=2") as client:
        await client.connection.send(speech[: 2 * FRAME_SAMPLES].tobytes())
        await client.send("ping", id="a")
        assert (await client.until("pong"))["id"] == "a"
        assert len(client.frames) == 2
        await client.send("ack", sequence=1)
        await client.send("ping")
        assert (await client.until("pong"))["id"] is None


async def test_hello_carries_the_same_settings(service, tiny_model, stream, speech):
    """ANCHORS A6, F2, F5: each stream has settings of its own, and is told all of them."""
    async with stream(service) as client:
        await client.send("hello", mode="encode", levels=5, format="f32le", numerics=tiny_model.info.numerics)
        ready = await client.until("ready")
        assert ready["settings"] == {
            "mode": "encode",
            "levels": 5,
            "format": "f32le",
            "sample_rate": 24000,
            "channels": 1,
            "codes": "binary",
            "echo_codes": "off",
            "numerics": tiny_model.info.numerics,
            "pace": "real",
            "stats": "off",
            "pre_skip": 0,
            **dict.fromkeys(("seed", "text_temperature", "text_top_k", "temperature", "top_k"), 0),
        }
        await send_in_chunks(client, (speech.astype("<f4") / np.float32(32768)).tobytes(), 50_000)
        await client.send("close")
        assert await client.closing() == (1000, "done")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, 5)[:, : len(speech) // FRAME_SAMPLES])


async def test_stereo_at_another_rate_equals_the_library(service, tiny_model, stream, speech):
    """ANCHORS B9, B11: any rate that a microphone has."""
    stereo = np.stack([speech, speech[::-1]], axis=1)
    intake = PcmIntake(44_100, 2, "int16")
    expected = encode_clip(tiny_model, np.concatenate([intake.push(stereo), intake.flush()]), LEVELS)
    async with stream(service, f"levels={LEVELS}&sample_rate=44100&channels=2") as client:
        await send_in_chunks(client, stereo.tobytes(), 4_099)
        await client.send("flush")
        flushed = await client.until("flushed")
    assert np.array_equal(client.codes(), expected)
    assert flushed["received_samples"] == len(stereo)


async def test_mulaw_in_equals_its_expansion(service, tiny_model, stream, speech):
    squeezed = mulaw_encode(speech)
    intake = PcmIntake(8_000, 1, "int16")
    expected = encode_clip(tiny_model, np.concatenate([intake.push(mulaw_decode(squeezed)), intake.flush()]), LEVELS)
    async with stream(service, f"levels={LEVELS}&sample_rate=8000&format=mulaw") as client:
        await send_in_chunks(client, squeezed.tobytes(), 160)
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.codes(), expected)


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000, 96_000])
async def test_decoded_audio_at_another_rate_keeps_its_length(service, tiny_model, stream, speech, rate):
    """ANCHORS B2, B8, B9: a resampler that is late with its samples loses none."""
    codes = encode_clip(tiny_model, speech, 2)
    settings = StreamSettings("decode", 2, "f32le", rate, 1, "binary", "off", tiny_model.info.numerics)
    outlet = AudioOutlet(settings)
    pcm = decode_clip(tiny_model, codes).reshape(-1, FRAME_SAMPLES)
    expected = b"".join([outlet.push(frame) for frame in pcm] + [outlet.flush()])
    async with stream(service, f"mode=decode&levels=2&format=f32le&sample_rate={rate}") as client:
        await client.connection.send(codes.T.astype("<u2").tobytes())
        await client.send("flush")
        flushed = await client.until("flushed")
    assert client.pcm("<f4").tobytes() == expected
    assert flushed["sent_samples"] == len(expected) // 4
    assert abs(flushed["sent_samples"] - flushed["samples"] * rate / 24_000) <= 1
    assert [header.sequence for header, _ in client.frames] == list(range(len(client.frames)))


async def test_eight_streams_at_once_share_batches_and_nothing_else(service, tiny_model, stream, speech):
    """ANCHORS A1, A9, A11: who else is in a batch never shows."""

    async def one(index: int) -> None:
        mode = ("encode", "decode", "echo", "encode")[index % 4]
        mine = np.roll(speech, 4321 * index)
        codes = encode_clip(tiny_model, mine, LEVELS)
        async with stream(service, f"mode={mode}&levels={LEVELS}&format={'f32le' if mode == 'decode' else 's16le'}") as client:
            data = codes.T.astype("<u2").tobytes() if mode == "decode" else mine.tobytes()
            await send_in_chunks(client, data, 4_000 + index)
            await client.send("flush")
            await client.until("flushed")
        if mode == "encode":
            assert np.array_equal(client.codes(), codes)
        elif mode == "decode":
            assert np.array_equal(client.pcm("<f4"), decode_clip(tiny_model, codes))
        else:
            assert np.array_equal(client.pcm("<i2"), to_int16(decode_clip(tiny_model, codes)))

    async with httpx.AsyncClient(base_url=service.url) as http:
        before = (await http.get("/v1/info")).json()["load"]
        await asyncio.gather(*(one(index) for index in range(8)))
        load = (await http.get("/v1/info")).json()["load"]
    assert load["largest_batch"] > 1
    assert load["refused_frames"] == before["refused_frames"]


async def test_the_subprotocol_is_confirmed_and_nothing_is_compressed(service, stream):
    """ANCHORS D1, F2: no memory for compression that does not compress."""
    async with stream(service, "levels=1", subprotocols=["mimi.v1"], compression="deflate") as client:
        await client.until("ready")
        assert client.connection.subprotocol == "mimi.v1"
        assert client.connection.protocol.extensions == []


async def test_the_embedded_model_serves_too_and_clipping_is_told_once(start_service, default_model, stream, speech):
    service = start_service("--model", "default")
    async with stream(service) as client:
        await client.send("hello")
        await client.connection.send(speech[: 6 * FRAME_SAMPLES].tobytes())
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.codes(), encode_clip(default_model, speech[: 6 * FRAME_SAMPLES]))
    square = np.where(np.arange(8 * FRAME_SAMPLES) // 80 % 2, 32_767, -32_768).astype("<i2")
    async with stream(service, "mode=echo") as client:
        await client.connection.send(square.tobytes())
        await client.send("flush")
        await client.until("flushed")
    assert [text["code"] for text in client.texts if text["type"] == "warning"] == ["clipping"]
    assert np.abs(client.pcm("<i2").astype(int)).max() >= 32_767
