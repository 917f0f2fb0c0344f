"""REST against the library: every form in and out, and every refusal in the one shape."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import struct

import httpx
import numpy as np
import pytest
import soundfile

from codec_core.clip import decode_clip, encode_clip
from codec_core.codes_file import CodesDocument, parse_codes, serialize_codes
from codec_core.pcm import PcmIntake, to_int16
from server.sample_format import mulaw_encode

LEVELS = 4
OCTETS = {"content-type": "application/octet-stream"}
JSON = {"content-type": "application/json"}
AUDIO_FORMS = {
    "WAV": "audio/wav",
    "FLAC": "audio/flac",
    "OGG": "audio/ogg",
    "OPUS": "audio/opus",
    "MP3": "audio/mpeg",
    "AIFF": "audio/aiff",
    "AU": "audio/basic",
}
CODES_FORMS = {
    "json": "application/json",
    "npy": "application/x-npy",
    "mimi": "application/x-mimi",
    "safetensors": "application/x-safetensors",
}


@pytest.fixture
async def http(service):
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as client:
        yield client


def audio_file(samples, rate: int, form: str) -> bytes:
    stream = io.BytesIO()
    container, subtype = ("OGG", "OPUS") if form == "OPUS" else (form, None)
    soundfile.write(stream, samples, rate, format=container, subtype=subtype)
    return stream.getvalue()


def expected_codes(tiny_model, file: bytes, levels: int):
    samples, rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
    intake = PcmIntake(rate, samples.shape[1], "float32")
    pcm = np.concatenate([intake.push(samples), intake.flush()])
    return encode_clip(tiny_model, pcm, levels), len(pcm)


def raw(codes) -> bytes:
    return codes.T.astype("<u2").tobytes()


def wav_samples(answer: httpx.Response):
    samples, rate = soundfile.read(io.BytesIO(answer.content), dtype="int16")
    assert rate == 24_000
    return samples


async def refusal(answer: httpx.Response, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["reason"]
    assert error["message"].startswith(f"{error['subject']}: found ")
    assert "/tmp" not in answer.text
    return error


@pytest.mark.parametrize("form", AUDIO_FORMS)
async def test_audio_files_in(http, tiny_model, speech, form):
    file = audio_file(speech, 24_000, form)
    answer = await http.post(f"/v1/encode?levels={LEVELS}", content=file, headers={"content-type": AUDIO_FORMS[form]})
    codes, samples = expected_codes(tiny_model, file, LEVELS)
    body = answer.json()
    assert (answer.status_code, body["levels"], body["frames"], body["samples"]) == (200, *codes.shape, samples)
    assert body["codes"] == codes.tolist()
    assert body["provenance"]["model_sha256"] == tiny_model.info.sha256


async def test_any_rate_and_channels_in(http, tiny_model, speech):
    file = audio_file(np.stack([speech, speech[::-1], speech], axis=1), 44_100, "WAV")
    answer = await http.post("/encode", content=file, headers={"content-type": "audio/x-wav; codecs=1"})
    assert answer.json()["codes"] == expected_codes(tiny_model, file, tiny_model.info.default_levels)[0].tolist()


@pytest.mark.parametrize(
    ("query", "make"),
    [
        ("", lambda speech: speech.tobytes()),
        ("&format=s16le&sample_rate=24000&channels=1", lambda speech: speech.tobytes()),
        ("&format=f32le", lambda speech: (speech.astype("<f4") / np.float32(32768)).tobytes()),
        ("&channels=2", lambda speech: np.repeat(speech, 2).tobytes()),
    ],
)
async def test_raw_pcm_in(http, tiny_model, speech, query, make):
    headers = {"content-type": "application/octet-stream", "accept": "application/octet-stream"}
    answer = await http.post(f"/v1/encode?levels={LEVELS}{query}", content=make(speech), headers=headers)
    assert answer.content == raw(encode_clip(tiny_model, speech, LEVELS))
    assert answer.headers["x-mimi-samples"] == str(len(speech))


async def test_raw_mulaw_in_chunks_of_the_transport(http, speech):
    async def pieces():
        squeezed = mulaw_encode(speech).tobytes()
        for start in range(0, len(squeezed), 333):
            yield squeezed[start : start + 333]

    headers = {"content-type": "application/octet-stream"}
    answer = await http.post("/v1/encode?format=mulaw&sample_rate=8000&levels=1", content=pieces(), headers=headers)
    assert answer.json()["samples"] == pytest.approx(3 * len(speech), abs=1)


@pytest.mark.parametrize("form", CODES_FORMS)
async def test_codes_out_and_back_in(http, tiny_model, speech, form):
    file = audio_file(speech, 24_000, "WAV")
    headers = {"content-type": "audio/wav", "accept": CODES_FORMS[form]}
    answer = await http.post(f"/v1/encode?levels={LEVELS}", content=file, headers=headers)
    assert answer.headers["content-type"] == CODES_FORMS[form]
    document = parse_codes(answer.content, form)
    codes = encode_clip(tiny_model, speech, LEVELS)
    assert np.array_equal(document.codes, codes)
    sound = await http.post("/v1/decode", content=answer.content, headers={"content-type": CODES_FORMS[form]})
    assert (sound.status_code, sound.headers["content-type"]) == (200, "audio/wav")
    samples = wav_samples(sound)
    whole = to_int16(decode_clip(tiny_model, codes))
    assert np.array_equal(samples, whole if document.samples is None else whole[: len(speech)])
    assert (len(samples) == len(speech)) == (form in ("json", "safetensors"))


async def test_raw_codes_in_and_fewer_levels_than_the_body_has(http, tiny_model, speech):
    codes = encode_clip(tiny_model, speech, LEVELS)
    answer = await http.post(f"/decode?levels={LEVELS}", content=raw(codes), headers=OCTETS)
    assert np.array_equal(wav_samples(answer), to_int16(decode_clip(tiny_model, codes)))
    body = serialize_codes(CodesDocument(codes), "npy")
    answer = await http.post("/v1/decode?levels=2", content=body, headers={"content-type": "application/x-npy"})
    assert np.array_equal(wav_samples(answer), to_int16(decode_clip(tiny_model, codes[:2])))


async def test_nothing_in_nothing_out(http):
    headers = {"content-type": "application/octet-stream"}
    answer = await http.post("/v1/encode?levels=3", content=b"", headers=headers)
    assert answer.json()["codes"] == [[], [], []]
    answer = await http.post("/v1/decode", content=b"", headers=headers)
    assert len(wav_samples(answer)) == 0


def wav_with_nan() -> bytes:
    stream = io.BytesIO()
    samples = np.zeros(5000, np.float32)
    samples[1234] = np.nan
    soundfile.write(stream, samples, 24_000, format="WAV", subtype="FLOAT")
    return stream.getvalue()


HUGE = np.full(1920, 3e38, "<f4").tobytes()
REFUSALS = [
    ("/v1/encode", b"RIFF", {"content-type": "audio/wav"}, 422, "audio_file"),
    ("/v1/encode", b"", {"content-type": "audio/wav"}, 422, "audio_file"),
    ("/v1/encode", b"{}", JSON, 415, "unsupported_media"),
    ("/v1/encode", b"xx", {}, 415, "unsupported_media"),
    ("/v1/encode", b"xx", {**OCTETS, "accept": "text/html"}, 406, "not_acceptable"),
    ("/v1/encode", b"xxx", OCTETS, 400, "payload"),
    ("/v1/encode?colour=red", b"", OCTETS, 400, "setting"),
    ("/v1/encode?mode=decode", b"", OCTETS, 400, "setting"),
    ("/v1/encode?levels=99", b"", OCTETS, 400, "setting"),
    ("/v1/encode?levels=1&levels=2", b"", OCTETS, 400, "setting"),
    ("/v1/encode?sample_rate=16000", b"RIFF", {"content-type": "audio/wav"}, 400, "setting"),
    ("/v1/encode?format=s16le", b"fLaC", {"content-type": "audio/flac"}, 400, "setting"),
    ("/v1/encode?channels=1", b"RIFF", {"content-type": "audio/wav"}, 400, "setting"),
    ("/v1/encode?format=f32le", HUGE, OCTETS, 422, "numeric_overflow"),
    ("/v1/encode?format=opus", b"", OCTETS, 501, "not_offered"),
    ("/v1/encode?numerics=ggml", b"", OCTETS, 400, "setting"),
    ("/v1/decode?levels=2", bytes(3), OCTETS, 422, "codes_file"),
    ("/v1/decode?levels=2", struct.pack("<4H", 1, 2, 3, 32), OCTETS, 422, "code_range"),
    ("/v1/decode", b'{"codes":[[1],[1,2]]}', JSON, 422, "codes_file"),
    ("/v1/decode", b'{"codes":[[1],[32]]}', JSON, 422, "code_range"),
    ("/v1/decode", b'{"codes":[[1],[1e9]]}', JSON, 422, "codes_file"),
    ("/v1/decode?levels=3", b'{"codes":[[1],[1]]}', JSON, 400, "setting"),
    ("/v1/decode", json.dumps({"codes": [[1]] * 33}).encode(), JSON, 422, "codes_file"),
    ("/v1/decode", b"[" * 100_000, JSON, 422, "codes_file"),
    ("/v1/decode", b"\x93NUMPY", {"content-type": "application/x-npy"}, 422, "codes_file"),
    ("/v1/decode", b"MIMI\xff\xff\xff\xff", {"content-type": "application/x-mimi"}, 422, "codes_file"),
    ("/v1/decode", bytes(8), {"content-type": "application/x-safetensors"}, 422, "codes_file"),
    ("/v1/decode", b"", {**OCTETS, "accept": "audio/mpeg"}, 406, "not_acceptable"),
    ("/v1/nothing", b"", {}, 404, "not_found"),
    ("/healthz", b"", {}, 405, "method"),
    ("/v1/encode", b"", {**OCTETS, "origin": "http://evil.example"}, 403, "forbidden_origin"),
    ("/v1/encode", b"", {**OCTETS, "origin": "http://["}, 403, "forbidden_origin"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case[0]} {case[4]}")
async def test_refused_by_name(http, case):
    path, body, headers, status, code = case
    await refusal(await http.post(path, content=body, headers=headers), status, code)


@pytest.mark.parametrize("name", ["\ud800", "A" * 300_000], ids=["surrogate", "long"])
async def test_a_hostile_tensor_name_is_refused_in_few_words(http, name):
    header = json.dumps({name: {"dtype": "XX", "shape": [1], "data_offsets": [0, 1]}}).encode()
    body = struct.pack("<Q", len(header)) + header + bytes(1)
    answer = await http.post("/v1/decode", content=body, headers={"content-type": "application/x-safetensors"})
    await refusal(answer, 422, "codes_file")
    assert len(answer.content) < 3_000


async def test_refusals_say_where(http):
    error = await refusal(
        await http.post("/v1/decode", content=b'{"codes":[[1,2],[3,40]]}', headers=JSON),
        422,
        "code_range",
    )
    assert (error["subject"], error["found"], error["expected"]) == ("codes[level 1][frame 1]", "40", "0 .. 31")
    error = await refusal(
        await http.post("/v1/encode", content=wav_with_nan(), headers={"content-type": "audio/wav"}), 422, "non_finite_input"
    )
    assert "1234" in error["subject"]
    error = await refusal(
        await http.post("/v1/encode?format=f32le", content=bytes(3 * 7680) + HUGE, headers=OCTETS), 422, "numeric_overflow"
    )
    assert error["subject"] == "frame 3: state"
    answer = await http.post("/v1/encode?sample_rate=16000", headers={"content-type": "audio/wav"})
    error = await refusal(answer, 400, "setting")
    assert (error["subject"], error["found"]) == ("sample_rate", "'16000'")


async def test_caps_on_bodies_clips_and_conversions(start_service):
    service = start_service(
        "--max-body-bytes", "20000", "--max-clip-ms", "400", "--max-conversions", "1", "--body-timeout-ms", "700"
    )
    async with httpx.AsyncClient(base_url=service.url) as http:
        await refusal(await http.post("/v1/encode", content=bytes(20_001), headers=OCTETS), 413, "body_too_large")
        await refusal(await http.post("/v1/encode", content=bytes(2_000_000), headers=OCTETS), 413, "body_too_large")
        assert (await http.post("/v1/encode?levels=1", content=bytes(19_200), headers=OCTETS)).status_code == 200
        await refusal(await http.post("/v1/encode?levels=1", content=bytes(19_202), headers=OCTETS), 413, "body_too_large")
        await refusal(await http.post("/v1/decode?levels=1", content=bytes(12), headers=OCTETS), 413, "body_too_large")

        async def stalls():
            yield bytes(100)
            await asyncio.sleep(3)

        stalled = asyncio.create_task(http.post("/v1/encode", content=stalls(), headers=OCTETS))
        await asyncio.sleep(0.2)
        # What is not there yet takes no place.
        assert (await http.post("/v1/encode", content=bytes(100), headers=OCTETS)).status_code == 200
        await refusal(await stalled, 408, "body_timeout")


async def load_when(http, condition) -> dict:
    for _ in range(500):
        load = (await http.get("/v1/info")).json()["load"]
        if condition(load):
            return load
        await asyncio.sleep(0.02)
    raise AssertionError(f"this never came: {load}")


async def test_a_client_that_hangs_up_ends_its_conversion(start_service):
    """ANCHORS G6: nothing is computed for who is gone."""
    service = start_service("--model", "default")
    host, port = service.url.removeprefix("http://").split(":")
    body = bytes(24_000 * 2 * 600)
    fields = {"Host": host, "Content-Type": "application/octet-stream", "Content-Length": len(body)}
    head = "POST /v1/encode HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    with socket.create_connection((host, int(port))) as connection:
        await asyncio.to_thread(connection.sendall, head.encode() + body)
        async with httpx.AsyncClient(base_url=service.url) as http:
            load = await load_when(http, lambda load: load["frames"] >= 20)
            assert load["conversions"] == 1
            connection.close()
            load = await load_when(http, lambda load: load["conversions"] == 0)
    assert load["frames"] < 7000
    assert "Traceback" not in service.log


async def test_probes_and_facts(http, tiny_model):
    assert (await http.get("/healthz")).json() == {"status": "alive"}
    ready = await http.get("/readyz")
    checks = dict.fromkeys(("self_test", "draining", "headroom", "engine"), "ok")
    assert (ready.status_code, ready.json()) == (
        200,
        {"ready": True, "self_test": "passed", "draining": False, "checks": checks},
    )
    facts = (await http.get("/v1/info")).json()
    assert facts["model"]["sha256"] == tiny_model.info.sha256
    assert "path" not in facts["model"]
    paths = (await http.get("/openapi.json")).json()["paths"]
    assert set(paths) == {"/v1/encode", "/v1/decode", "/v1/token", "/healthz", "/readyz", "/metrics", "/v1/info"}
