"""REST in motion: answers that are sent while they are made, peers that stall, and what all of them may hold."""

from __future__ import annotations

import asyncio
import io
import socket
import struct

import httpx
import numpy as np
import pytest
import soundfile

from codec_core.clip import decode_clip, encode_clip
from codec_core.codes_file import CodesDocument, serialize_codes
from codec_core.pcm import PcmIntake, to_int16
from server.sample_format import mulaw_decode

OCTETS = {"content-type": "application/octet-stream"}
HUGE = np.full(1920, 3e38, "<f4").tobytes()


def client_of(service) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=service.url, timeout=60)


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def load_when(http, condition) -> dict:
    for _ in range(1000):
        load = (await http.get("/v1/info")).json()["load"]
        if condition(load):
            return load
        await asyncio.sleep(0.02)
    raise AssertionError(f"this never came: {load}")


async def log_when(service, text: str) -> None:
    for _ in range(500):
        if text in service.log:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not in the log: {text}\n{service.log}")


@pytest.mark.parametrize(
    ("media", "container"),
    [("audio/flac", "FLAC"), ("audio/x-flac", "FLAC"), ("audio/ogg", "OGG"), ("application/ogg; q=0.9, audio/mpeg", "OGG")],
)
async def test_sound_in_other_containers(service, tiny_model, speech, media, container):
    codes = encode_clip(tiny_model, speech, 4)
    body = serialize_codes(CodesDocument(codes, len(speech)), "safetensors")
    headers = {"content-type": "application/x-safetensors", "accept": media}
    async with client_of(service) as http:
        answer = await http.post("/v1/decode", content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media.split(";")[0])
    assert answer.headers["content-length"] == str(len(answer.content))
    with soundfile.SoundFile(io.BytesIO(answer.content)) as file:
        assert (file.format, file.samplerate, file.channels, file.frames) == (container, 24_000, 1, len(speech))
        found = file.read(dtype="int16")
    expected = to_int16(decode_clip(tiny_model, codes))[: len(speech)]
    if container == "FLAC":
        assert np.array_equal(found, expected)
    else:
        assert np.corrcoef(found, expected)[0, 1] > 0.5


async def test_no_samples_fit_only_into_wav(service):
    async with client_of(service) as http:
        refused = await http.post("/v1/decode", headers={**OCTETS, "accept": "audio/flac"})
        assert code_of(refused) == (406, "not_acceptable")
        assert (await http.post("/v1/decode", headers=OCTETS)).content[:4] == b"RIFF"


@pytest.mark.parametrize(("media", "header"), [("application/octet-stream", b""), ("application/x-mimi", b"MIMI\x08\0\0\0")])
async def test_frames_come_while_later_ones_are_made(start_service, default_model, media, header):
    service = start_service("--model", "default", "--spool-memory-bytes", "1000")
    # A quarter of an hour, of which the first second is awaited: too long to be done before anyone can look.
    frames = 900 * 25 // 2
    squeezed = np.random.default_rng(3).integers(0, 256, frames * 640, np.uint8)
    query, headers = "levels=8&format=mulaw&sample_rate=8000", {**OCTETS, "accept": media}
    async with (
        client_of(service) as http,
        http.stream("POST", f"/v1/encode?{query}", content=squeezed.tobytes(), headers=headers) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["x-mimi-samples"] == str(1920 * frames)
        assert answer.headers["x-mimi-frames"] == str(frames)
        assert int(answer.headers["content-length"]) == len(header) + 16 * frames
        received = b""
        async for piece in answer.aiter_raw():
            received += piece
            if len(received) >= len(header) + 16 * 12:
                break
        load = (await http.get("/v1/info")).json()["load"]
        assert (load["conversions"], load["frames"] < frames) == (1, True)
    async with client_of(service) as http:
        await load_when(http, lambda load: (load["conversions"], load["spooled_bytes"]) == (0, 0))
    assert received.startswith(header)
    pcm = PcmIntake(8_000, 1, "int16").push(mulaw_decode(squeezed[: 640 * 30]))
    found = np.frombuffer(received[len(header) :][: 16 * 12], "<u2").reshape(-1, 8).T
    assert np.array_equal(found, encode_clip(default_model, pcm[: 1920 * 12], 8))


async def test_a_client_that_does_not_read_keeps_no_place_and_is_cut(start_service, speech):
    service = start_service("--max-conversions", "1", "--send-timeout-ms", "700")
    host, port = service.url.removeprefix("http://").split(":")
    body = struct.pack("<H", 3) * 5000
    fields = {"Host": host, "Content-Type": OCTETS["content-type"], "Content-Length": len(body)}
    head = "POST /v1/decode?levels=1 HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(head.encode() + body)
        async with client_of(service) as http:
            await load_when(http, lambda load: load["conversions"] == 1)
            await load_when(http, lambda load: load["conversions"] == 0)
            assert (await http.post("/v1/encode", content=speech.tobytes(), headers=OCTETS)).status_code == 200
            await log_when(service, "an answer was cut off: too_slow")
            await load_when(http, lambda load: load["spooled_bytes"] == 0)


async def test_what_fails_after_the_first_frame_is_cut_off(service):
    body = bytes(7680 * 100) + HUGE
    async with client_of(service) as http:
        for media in ("application/octet-stream", "application/x-mimi"):
            with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
                await http.post("/v1/encode?format=f32le&levels=1", content=body, headers={**OCTETS, "accept": media})
        answer = await http.post("/v1/encode?format=f32le&levels=1", content=body, headers=OCTETS)
    assert code_of(answer) == (422, "numeric_overflow")
    await log_when(service, "an answer was cut off: numeric_overflow: frame 100")


async def test_every_place_taken(start_service):
    service = start_service("--model", "default", "--max-conversions", "1", "--retry-after-ms", "3100")
    async with client_of(service) as http:
        first = asyncio.create_task(http.post("/v1/encode", content=bytes(48_000 * 60), headers=OCTETS))
        await load_when(http, lambda load: load["conversions"] == 1)
        busy = await http.post("/v1/encode", content=bytes(100), headers=OCTETS)
        assert code_of(busy) == (503, "capacity")
        assert (busy.headers["retry-after"], busy.json()["error"]["retry_after_ms"]) == ("4", 3100)
        first.cancel()
        await load_when(http, lambda load: load["conversions"] == 0)


@pytest.mark.parametrize("memory", ["0", "1048576"])
async def test_bodies_and_answers_share_a_budget(start_service, speech, memory):
    """ANCHORS D6: memory and disk have a bound."""
    service = start_service("--max-spool-bytes", "200000", "--spool-memory-bytes", memory)
    codes = struct.pack("<H", 3) * 60
    async with client_of(service) as http:
        refused = await http.post("/v1/encode", content=bytes(200_001), headers=OCTETS)
        assert code_of(refused) == (503, "capacity")
        assert refused.json()["error"]["subject"] == "spool"
        squeezed = await http.post("/v1/decode?levels=1", content=codes, headers={**OCTETS, "accept": "audio/ogg"})
        assert squeezed.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post("/v1/decode?levels=1", content=codes, headers=OCTETS)
        assert (await http.post("/v1/encode", content=speech.tobytes(), headers=OCTETS)).status_code == 200
        await load_when(http, lambda load: load["spooled_bytes"] == 0)
    await log_when(service, "an answer was cut off: capacity: spool")


async def test_a_body_is_refused_by_what_it_declares(start_service):
    service = start_service("--max-body-bytes", "20000")
    host, port = service.url.removeprefix("http://").split(":")
    head = (
        f"POST /v1/encode HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/octet-stream\r\n"
        "Content-Length: 20001\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        await asyncio.to_thread(connection.sendall, head.encode())
        answer = await asyncio.to_thread(connection.recv, 65_536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    async with client_of(service) as http:
        for coding, status in (("gzip", 415), ("Identity", 200)):
            answer = await http.post("/v1/encode", content=bytes(200), headers={**OCTETS, "content-encoding": coding})
            assert answer.status_code == status
            assert status == 200 or answer.json()["error"]["subject"] == "Content-Encoding"


@pytest.mark.parametrize("media", ["application/json", "application/octet-stream"])
async def test_a_recording_that_ends_early_is_told(service, speech, media):
    file = io.BytesIO()
    soundfile.write(file, speech, 24_000, format="WAV")
    headers = {"content-type": "audio/wav", "accept": media}
    async with client_of(service) as http:
        whole = await http.post("/v1/encode", content=file.getvalue(), headers=headers)
        cut = await http.post("/v1/encode", content=file.getvalue()[:48_044], headers=headers)
    assert "x-mimi-warning" not in whole.headers
    assert cut.headers["x-mimi-warning"] == f"the file ends early: 24000 of {len(speech)} samples"
    assert cut.headers["x-mimi-samples"] == "24000"
