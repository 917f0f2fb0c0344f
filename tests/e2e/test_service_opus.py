"""Opus against a real service: counts to the sample, codes those of the sound that it decodes to, refusals by name."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

import httpx
import numpy as np
import pytest
from websockets.asyncio.client import connect

from codec_core.client import LineOptions, Stream, StreamSettings
from codec_core.client.opus_sound import OpusReceiver, OpusSender
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import UnavailableError
from codec_core.ogg import OggOpusReader, OggOpusWriter
from codec_core.opus import OpusDecoder, OpusEncoder
from codec_core.opus_packets import OpusHead, PacketReader
from codec_core.pcm import PcmIntake, to_float32
from server.opus_format import SERIAL

LEVELS = 4
FORMS = ["opus", "opus-packets"]


@pytest.fixture(scope="session")
def short(speech):
    """A second of sound whose last frame is not whole."""
    return speech[: 24_000 + 777]


def messages_of(sound: np.ndarray, form: str) -> list[bytes]:
    sender = OpusSender(in_pages=form == "opus", sample_rate_hz=24_000)
    return [one.data for one in sender.push(to_float32(sound)) + sender.flush()]


def heard(messages: list[bytes], form: str) -> np.ndarray:
    """What the messages decode to, float32 at 24 kHz."""
    reader, decoder, intake = OggOpusReader() if form == "opus" else PacketReader(312), OpusDecoder(), PcmIntake(48_000)
    pieces = [intake.push(decoder.decode(one)) for message in messages for one in reader.push(message)]
    return np.concatenate([*pieces, intake.flush()])


def encoded(sound: np.ndarray, form: str) -> list[bytes]:
    """What a service should make of whole frames and a flush."""
    encoder = OpusEncoder()
    writer = OggOpusWriter(encoder.head, 24_000, SERIAL)
    packets = [encoder.encode(frame) for frame in [*sound.reshape(-1, 1920), np.zeros(1920, np.float32)]]
    if form == "opus-packets":
        return packets
    return [*map(writer.page, packets[:-1]), writer.page(packets[-1], end_samples=2 * len(sound))]


@pytest.mark.parametrize("form", FORMS)
async def test_codes_are_those_of_the_sound_that_was_meant(service, tiny_model, stream, short, form):
    messages = messages_of(short, form)
    whole = heard(messages, form)
    # Only Ogg can say where in its last packet the sound ends.
    assert len(whole) == (len(short) if form == "opus" else 1920 * len(messages) - 156)
    sent = messages if form == "opus-packets" else [b"".join(messages)[start : start + 333] for start in range(0, 9000, 333)]
    async with stream(service, f"format={form}&levels={LEVELS}") as client:
        assert (await client.until("ready"))["settings"]["sample_rate"] == 48_000
        for _ in range(2):  # after a flush another stream begins, and the codec goes on
            for message in filter(None, sent):
                await client.connection.send(message)
            await client.send("flush")
            flushed = await client.until("flushed")
    session = tiny_model.encoder(LEVELS)
    expected = [session.push(whole), session.flush(), session.push(whole), session.flush()]
    assert np.array_equal(client.codes(), np.concatenate(expected, axis=1))
    assert (flushed["received_samples"], flushed["samples"]) == (4 * len(whole), 2 * len(whole))


@pytest.mark.parametrize("form", FORMS)
async def test_sound_comes_back_to_the_sample(service, tiny_model, stream, short, form):
    codes = encode_clip(tiny_model, short, LEVELS)
    expected = decode_clip(tiny_model, np.concatenate([codes, codes], axis=1))
    receiver = OpusReceiver(in_pages=form == "opus", sample_rate_hz=24_000)
    async with stream(service, f"mode=decode&levels={LEVELS}&format={form}") as client:
        for _ in range(2):
            await client.connection.send(codes.T.astype("<u2").tobytes())
            await client.send("flush")
            flushed = await client.until("flushed")
    assert [header.kind for header, _ in client.frames] == [3] * len(client.frames)
    assert sum(header.width for header, _ in client.frames) == flushed["sent_samples"] == 2 * len(expected)
    back = np.concatenate([receiver.decode(payload, header.width) for header, payload in client.frames])
    assert len(back) == len(expected)
    # Beyond what Opus loses there is no difference: the same sound, encoded here, is the same bytes.
    sent = [payload for _, payload in client.frames]
    assert sent == [one for half in np.split(expected, 2) for one in encoded(half, form)]


@pytest.mark.parametrize("form", FORMS)
async def test_the_client_speaks_it_both_ways(service, tiny_model, short, form):
    settings = StreamSettings("echo", LEVELS, form, echo_codes=True)
    async with Stream(service.url, settings) as stream:
        frames = [frame async for frame in stream.run(np.array_split(short, 7))]
        counts = stream.flushed
        await stream.reset()
        again = [frame async for frame in stream.run([short])]
    codes = np.array([frame.codes for frame in frames if frame.codes is not None]).T
    assert np.array_equal(codes, encode_clip(tiny_model, heard(messages_of(short, form), form), LEVELS))
    sound = np.concatenate([frame.pcm for frame in frames if frame.pcm is not None])
    assert (len(sound), counts.sent_samples) == (1920 * counts.frames, 3840 * counts.frames)
    assert np.array_equal(codes, np.array([frame.codes for frame in again if frame.codes is not None]).T)


@pytest.mark.parametrize("form", FORMS)
async def test_a_lost_line_costs_nothing(service, tiny_model, stream, short, form):
    """The next connection goes on between two packets, with decoder and encoder as they were."""
    messages = messages_of(short, form)
    async with connect(service.stream_url(f"format={form}&levels={LEVELS}&mode=echo&echo_codes=on")) as first:
        ready = json.loads(await first.recv())
        for message in messages[:6]:
            await first.send(message)
        received = [await asyncio.wait_for(first.recv(), 20) for _ in range(6)]
        await first.send(messages[6][:50] if form == "opus" else messages[6])  # half a page is lost
        first.transport.abort()
    query = f"resume_token={ready['resume_token']}&last_sequence=5&epoch=0"
    async with connect(service.stream_url(query)) as second:
        position = json.loads(await second.recv())["position"]
        assert position % 3840 == 0
        for message in messages[position // 3840 :]:
            await second.send(message)
        await second.send('{"type": "flush"}')
        while isinstance(message := await asyncio.wait_for(second.recv(), 20), bytes):
            received.append(message)
    codes = [np.frombuffer(message[16:], "<u2") for message in received if message[1] == 1]
    assert np.array_equal(np.array(codes).T, encode_clip(tiny_model, heard(messages, form), LEVELS))
    async with stream(service, f"format={form}&levels={LEVELS}&mode=echo&echo_codes=on") as client:
        for message in messages:
            await client.connection.send(message)
        await client.send("flush")
        await client.until("flushed")
    assert [payload for _, payload in client.frames] == [message[16:] for message in received]


@contextlib.asynccontextmanager
async def relayed(service):
    """``(url, cut)``: a way to the service over which lines can be cut."""
    writers: list[asyncio.StreamWriter] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(4096):
                writer.write(data)
        writer.transport.abort()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(service.url.rpartition(":")[2])
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, far_writer))
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    def cut() -> None:
        for writer in writers:
            writer.transport.abort()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", cut
        cut()


@pytest.mark.parametrize("form", FORMS)
async def test_the_client_goes_on_over_another_line(service, tiny_model, short, form):
    settings = StreamSettings("echo", LEVELS, form, echo_codes=True)
    async with relayed(service) as (url, cut), Stream(url, settings, paced=True) as stream:
        frames = []
        async for frame in stream.run(np.array_split(short, 40)):
            frames.append(frame)
            if len(frames) in (4, 12):
                cut()
        assert stream.stats.resumes == 2
        assert sum(len(frame.pcm) for frame in frames if frame.pcm is not None) == 1920 * stream.flushed.frames
    codes = np.array([frame.codes for frame in frames if frame.codes is not None]).T
    assert np.array_equal(codes, encode_clip(tiny_model, heard(messages_of(short, form), form), LEVELS))


HOSTILE = {
    "no page": ("opus", [b"RIFF" + bytes(60)], "opus_data", 1007),
    "a page cut off by a flush": ("opus", [b"OggS"], "opus_data", 1007),
    "an empty packet": ("opus-packets", [b""], "opus_data", 1007),
    "a packet too long": ("opus-packets", [b"\x1b\x03"], "opus_data", 1007),
    "a packet of noise": ("opus-packets", [b"\xff\x41\xff"], "opus_data", 1007),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_bytes_end_their_own_stream_only(service, tiny_model, stream, short, name):
    form, messages, code, close_code = HOSTILE[name]
    good = messages_of(short[:5760], form)
    async with stream(service, f"format={form}&levels={LEVELS}") as bystander, stream(service, f"format={form}") as client:
        await bystander.connection.send(good[0])
        for message in messages:
            await client.connection.send(message)
        await client.send("flush")
        assert await client.closing() == (close_code, code)
        assert client.texts[-1]["expected"]
        for message in good[1:]:
            await bystander.connection.send(message)
        await bystander.send("flush")
        await bystander.until("flushed")
    assert np.array_equal(bystander.codes(), encode_clip(tiny_model, heard(good, form), LEVELS))


async def test_a_message_stands_for_a_minute_at_most(service, stream):
    """Five hundred packets of 120 ms are a few bytes each."""
    writer = OggOpusWriter(OpusHead(1, 0), 24_000, 1)
    data = b"".join(writer.page(b"\x1b\x02") for _ in range(501))
    async with stream(service, "format=opus") as client:
        await client.connection.send(data)
        assert await client.closing() == (1007, "payload")
    assert "60 s" in client.texts[-1]["expected"]


@pytest.mark.parametrize("query", ["format=opus&sample_rate=24000", "format=opus&channels=2", "format=opus&pre_skip=1"])
async def test_settings_that_make_no_sense_with_it_are_refused(service, stream, query):
    async with stream(service, query) as client:
        assert await client.closing() == (1008, "setting")


async def test_without_the_extra_the_service_names_it(start_service, tmp_path, monkeypatch, stream):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['av'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    service = start_service()
    async with stream(service, "format=opus") as client:
        assert await client.closing() == (1008, "not_offered")
    assert "mimi-server[opus]" in client.texts[-1]["expected"]
    async with stream(service, "levels=1") as client:
        assert (await client.until("ready"))["settings"]["format"] == "s16le"


async def test_a_process_that_is_gone_takes_opus_with_it(replica, short, tiny_model):
    """No snapshot is made of it. A client that has all its input begins again, and has the same answers."""
    service = replica()
    messages = messages_of(short, "opus")
    async with connect(service.stream_url(f"format=opus&levels={LEVELS}")) as connection:
        ready = json.loads(await connection.recv())
        assert "checkpoint_interval_ms" not in ready
        for message in messages[:5]:
            await connection.send(message)
        await connection.recv()
    assert service.stop() == 0
    other = replica()
    async with connect(other.stream_url(f"resume_token={ready['resume_token']}&last_sequence=0")) as connection:
        assert json.loads(await connection.recv())["code"] == "resume_refused"
    async with Stream(other.url, StreamSettings(levels=LEVELS, sample_format="opus"), LineOptions()) as stream:
        assert np.array_equal(await stream.convert(short), encode_clip(tiny_model, heard(messages, "opus"), LEVELS))


async def test_conversions_take_and_give_ogg_opus(service, short):
    data = b"".join(messages_of(short, "opus"))
    async with httpx.AsyncClient(base_url=service.url) as http:
        opus = {"content-type": "audio/ogg; codecs=opus", "accept": "application/octet-stream"}
        answer = await http.post("/v1/encode", params={"levels": LEVELS}, content=data, headers=opus)
        assert answer.headers["x-mimi-samples"] == str(len(short))
        codes = {"content-type": "application/octet-stream", "accept": "audio/ogg; codecs=opus"}
        answer = await http.post("/v1/decode", params={"levels": LEVELS}, content=answer.content, headers=codes)
    reader, decoder = OggOpusReader(), OpusDecoder()
    samples = sum(len(decoder.decode(one)) for one in reader.push(answer.content))
    assert samples == 2 * 1920 * -(-len(short) // 1920)
    assert answer.headers["content-type"] == "audio/ogg"


async def test_the_client_names_the_extra_too(service, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UnavailableError, match=r"mimi-server\[opus\]"):
        async with Stream(service.url, StreamSettings(sample_format="opus")):
            pass
