"""What must be refused, each by its own name and close code, without harm to anyone else."""

from __future__ import annotations

import asyncio
import json
import struct

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip

FRAME = bytes(3840)
HUGE = np.full(1920, 3e38, "<f4").tobytes()


def text(**fields) -> str:
    return json.dumps(fields)


def float_samples(bad: float) -> bytes:
    samples = np.zeros(3000, "<f4")
    samples[2345] = bad
    return samples.tobytes()


REFUSALS = {
    "unknown setting": ("mode=encode&colour=red", [], "setting", 1008),
    "setting twice": ("levels=2&levels=3", [], "setting", 1008),
    "level zero": ("levels=0", [], "setting", 1008),
    "too many levels": ("levels=33", [], "setting", 1008),
    "levels in words": ("levels=eight", [], "setting", 1008),
    "unknown mode": ("mode=transcode", [], "setting", 1008),
    "rate too high": ("sample_rate=96001", [], "setting", 1008),
    "stereo decoding": ("mode=decode&channels=2", [], "setting", 1008),
    "other numerics": ("numerics=ggml", [], "setting", 1008),
    "free pace where it is not allowed": ("pace=free", [], "setting", 1008),
    "resume after a query": ("levels=1", [text(type="resume", token="x", last_sequence=-1)], "protocol", 1008),
    "resume without a sequence": ("", [text(type="resume", token="x")], "protocol", 1008),
    "resume with no token": ("", [text(type="resume", token="", last_sequence=-1)], "protocol", 1008),
    "resume with another thing": ("", [text(type="resume", token="x", last_sequence=-1)], "resume_refused", 1008),
    "ack of another epoch": ("levels=1", [FRAME, text(type="ack", sequence=0, epoch=1)], "protocol", 1008),
    "binary before hello": ("", [FRAME], "protocol", 1008),
    "flush before hello": ("", [text(type="flush")], "protocol", 1008),
    "hello with an unknown field": ("", [text(type="hello", color=1)], "setting", 1008),
    "hello with text for a number": ("", [text(type="hello", levels="8")], "setting", 1008),
    "hello twice": ("", [text(type="hello"), text(type="hello")], "protocol", 1008),
    "hello after a query": ("levels=1", [text(type="hello")], "protocol", 1008),
    "unknown type": ("levels=1", [text(type="stop")], "protocol", 1008),
    "no type": ("levels=1", ["{}"], "protocol", 1008),
    "type that is no text": ("levels=1", ['{"type": 1}'], "protocol", 1008),
    "no JSON": ("levels=1", ["flush"], "protocol", 1008),
    "no object": ("levels=1", ["[]"], "protocol", 1008),
    "JSON too deep": ("levels=1", ["[" * 60_000], "protocol", 1008),
    "field twice": ("levels=1", ['{"type":"ping","id":1,"id":2}'], "protocol", 1008),
    "NaN in JSON": ("levels=1", ['{"type":"ping","id":NaN}'], "protocol", 1008),
    "unknown field": ("levels=1", [text(type="flush", now=True)], "protocol", 1008),
    "ping id too long": ("levels=1", [text(type="ping", id="x" * 65)], "protocol", 1008),
    "ack of what was not sent": ("levels=1", [text(type="ack", sequence=0)], "protocol", 1008),
    "ack below zero": ("levels=1", [text(type="ack", sequence=-1)], "protocol", 1008),
    "text codes where binary is due": ("mode=decode&levels=2", [text(type="codes", codes=[1, 2])], "wrong_kind", 1003),
    "binary codes where text is due": ("mode=decode&levels=2&codes=json", [bytes(4)], "wrong_kind", 1003),
    "codes while encoding": ("codes=json&levels=1", [text(type="codes", codes=[1])], "wrong_kind", 1003),
    "codes short of a frame": ("mode=decode&levels=2", [bytes(6)], "payload", 1007),
    "odd bytes of codes": ("mode=decode&levels=1", [bytes(3)], "payload", 1007),
    "JSON codes of another length": ("mode=decode&levels=2&codes=json", [text(type="codes", codes=[1])], "payload", 1007),
    "JSON codes that are no numbers": ("mode=decode&levels=1&codes=json", [text(type="codes", codes=[True])], "payload", 1007),
    "code out of range": ("mode=decode&levels=2", [struct.pack("<4H", 1, 2, 3, 32)], "code_range", 1007),
    "JSON code out of range": ("mode=decode&levels=1&codes=json", [text(type="codes", codes=[-1])], "code_range", 1007),
    "half a sample at the end": ("levels=1", [bytes(3841), text(type="flush")], "payload", 1007),
    "half a stereo pair at the end": ("channels=2&levels=1", [bytes(2), text(type="flush")], "payload", 1007),
    "NaN": ("format=f32le&levels=1", [float_samples(np.nan)], "non_finite_input", 1007),
    "out of range": ("format=f32le&levels=1", [bytes(2 * 7680) + HUGE], "numeric_overflow", 1007),
    "resume in the query": ("resume_token=x", [], "resume_refused", 1008),
    "settings beside a resume": ("resume_token=x&levels=1", [], "protocol", 1008),
    "infinity": ("format=f32le&levels=1", [float_samples(np.inf)], "non_finite_input", 1007),
    "NaN before a resampler": ("format=f32le&levels=1&sample_rate=48000", [float_samples(np.nan)], "non_finite_input", 1007),
    "message too big": ("levels=1", [bytes(65_537)], "message_too_big", 1009),
    "message far too big": ("levels=1", [bytes(300_000)], "message_too_big", 1009),
    "text too big": ("levels=1", ['{"type":"ping","id":"' + "x" * 70_000], "message_too_big", 1009),
}


async def wait_until_empty(service) -> None:
    async with httpx.AsyncClient(base_url=service.url) as http:
        for _ in range(200):
            if (await http.get("/v1/info")).json()["load"]["streams"] == 0:
                return
            await asyncio.sleep(0.02)
    raise AssertionError("a place stayed taken")


@pytest.mark.parametrize("name", REFUSALS)
async def test_refused_by_name(service, stream, name):
    query, messages, code, close_code = REFUSALS[name]
    async with stream(service, query) as client:
        for message in messages:
            await client.connection.send(message)
        closed = await client.closing()
    assert closed == (close_code, code)
    error = client.texts[-1]
    assert error["type"] == "error"
    assert error["code"] == code
    assert error["reason"]
    assert error["message"] == f"{error['subject']}: found {error['found']}, expected {error['expected']}"
    assert error["found"]
    assert error["expected"]
    assert "lane" not in error["message"]
    await wait_until_empty(service)


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("unknown setting", "'colour'"),
        ("code out of range", "codes[frame 1][level 1]"),
        ("NaN", "sample 2345"),
        ("out of range", "frame 2: state"),
        ("ping id too long", "ping.id"),
        ("half a sample at the end", "audio"),
    ],
)
async def test_a_refusal_says_where(service, stream, name, subject):
    query, messages, _, _ = REFUSALS[name]
    async with stream(service, query) as client:
        for message in messages:
            await client.connection.send(message)
        await client.closing()
    assert client.texts[-1]["subject"] == subject


async def test_what_came_before_is_answered_first(service, stream):
    async with stream(service, "levels=1&format=f32le") as client:
        await client.connection.send(bytes(5 * 7680))
        await client.connection.send(float_samples(np.nan))
        assert await client.closing() == (1007, "non_finite_input")
    assert len(client.frames) == 6


async def test_text_that_is_not_utf8(service, stream):
    async with stream(service, "levels=1") as client:
        await client.connection.send(b'{"type":"\xff"}', text=True)
        assert await client.closing() == (1007, "payload")
    await wait_until_empty(service)


async def test_random_bytes_never_break_the_service(service, stream, speech, tiny_model, rng):
    """ANCHORS G7: rogue clients."""
    words = ["{", "}", '"type"', ":", '"flush"', '"hello"', "[", "]", ",", "1e999", "null", '"codes"', "\\u0000", "ä"]
    for _ in range(60):
        query = rng.choice(["", "levels=1", "mode=decode&levels=3", "mode=echo&format=f32le", "format=mulaw&channels=2"])
        async with stream(service, str(query)) as client:
            try:
                for _ in range(int(rng.integers(1, 8))):
                    if rng.random() < 0.5:
                        await client.connection.send(rng.bytes(int(rng.integers(0, 5000))))
                    else:
                        await client.connection.send("".join(rng.choice(words, int(rng.integers(0, 12)))))
            except websockets.ConnectionClosed:
                pass
    await wait_until_empty(service)
    async with stream(service, "levels=8") as client:
        await client.connection.send(speech[:19_200].tobytes())
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech[:19_200], 8))


async def test_a_cut_connection_frees_its_place(service, stream):
    """ANCHORS E1, F1, G5: a disconnect at any moment."""
    for _ in range(5):
        async with stream(service, "levels=1") as client:
            await client.until("ready")
            await client.connection.send(FRAME * 10)
            client.connection.transport.abort()
    await wait_until_empty(service)


async def test_a_flood_of_empty_fragments_is_refused(start_service, stream):
    """ANCHORS G9: queues have a number set by us."""
    service = start_service("--max-queued-messages", "100")
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        masked_and_empty = bytes([0x80, 0, 0, 0, 0])
        client.connection.transport.write(bytes([0x02]) + masked_and_empty + (bytes([0x00]) + masked_and_empty) * 20_000)
        assert await client.closing() == (1008, "message_flood")
    assert client.texts[-1]["code"] == "message_flood"


def masked(payload: bytes, first_byte: int = 0x82) -> bytes:
    return bytes([first_byte, 0x80 | len(payload), 0, 0, 0, 0]) + payload


@pytest.mark.parametrize("limit", ["16", "4096"])
async def test_many_small_messages_at_once_wait_and_are_answered(start_service, stream, limit):
    service = start_service("--max-queued-messages", limit)
    frames = 600
    close = masked(b'{"type":"close"}', 0x81)
    async with stream(service, "mode=decode&levels=1") as client:
        await client.until("ready")
        client.connection.transport.write((masked(b"") * 10 + masked(bytes(2))) * frames + close)
        assert await client.closing() == (1000, "done")
    assert len(client.frames) == frames


@pytest.mark.parametrize("kind", ["reset", "flush", "ping"])
async def test_too_many_control_messages_are_refused(start_service, stream, kind):
    service = start_service("--max-control-messages-per-s", "1")
    async with stream(service, "levels=1") as client:
        for _ in range(8):
            await client.send(kind)
        assert await client.closing() == (1008, "control_rate")
    answers = [message for message in client.texts if message["type"] in ("reset_done", "flushed", "pong")]
    assert len(answers) == 4


async def test_an_unknown_subprotocol_is_refused_by_name(service):
    try:
        async with websockets.connect(service.stream_url("levels=1"), subprotocols=["mimi.v9"]) as connection:
            assert json.loads(await connection.recv())["code"] == "not_offered"
    except websockets.InvalidHandshake:
        pass


@pytest.mark.parametrize(
    ("origin", "served"), [(None, True), ("own", True), ("http://evil.example", False), ("null", False), ("http://[", False)]
)
async def test_pages_of_other_origins_are_refused_before_the_handshake(service, origin, served):
    """ANCHORS 3.4: the Origin of a page is looked at."""
    own = service.url if origin == "own" else origin
    if served:
        async with websockets.connect(service.stream_url("levels=1"), origin=own) as connection:
            assert json.loads(await connection.recv())["type"] == "ready"
        return
    with pytest.raises(websockets.InvalidStatus) as refusal:
        async with websockets.connect(service.stream_url("levels=1"), origin=own):
            pass
    assert refusal.value.response.status_code == 403
    assert json.loads(refusal.value.response.body)["error"]["code"] == "forbidden_origin"
    assert "stream refused: forbidden_origin" in service.log
    assert "ERROR" not in service.log


@pytest.mark.parametrize("path", ["/", "/stream", "/v1/stream/", "/v1/info", "/web/studio.js"])
async def test_a_handshake_to_another_path_is_refused_by_name(service, path):
    with pytest.raises(websockets.InvalidStatus) as refusal:
        await websockets.connect(f"ws{service.url[4:]}{path}")
    answer = refusal.value.response
    error = json.loads(answer.body)["error"]
    assert (answer.status_code, error["code"]) == (404, "not_found")
    assert error["message"] == f"path: found '{path}', expected /v1/stream"
    assert "ERROR" not in service.log


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_request_to_the_stream_is_told_what_it_is_for(service, method):
    async with httpx.AsyncClient(base_url=service.url) as http:
        answer = await http.request(method, "/v1/stream")
    error = answer.json()["error"]
    assert (answer.status_code, answer.headers["upgrade"], error["code"]) == (426, "websocket", "upgrade_required")
    assert error["message"] == f"request: found a plain {method}, expected a WebSocket handshake, ws://HOST:PORT/v1/stream"


async def test_allowed_origins_are_served(start_service):
    service = start_service("--allowed-origins", "http://one.example, http://two.example")
    async with websockets.connect(service.stream_url("levels=1"), origin="http://two.example") as connection:
        assert json.loads(await connection.recv())["type"] == "ready"
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(service.stream_url("levels=1"), origin="http://three.example")
