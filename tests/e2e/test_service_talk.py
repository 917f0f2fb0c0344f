"""Mode talk of a running service, with the embedded codec: the bits of the library's calls, whatever happens to the line."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from codec_core import LanguageModel, Sampling
from codec_core.client import Stream, StreamSettings
from codec_core.pcm import to_int16
from codec_core.talk import Transcript
from codec_core.text_tokenizer import TextTokenizer
from server.wire_messages import KIND_PCM
from tests.talk_models import direct_answer

FRAME_SAMPLES = 1920
FRAMES = 8
QUERY = "mode=talk&format=f32le&seed=9"


@pytest.fixture(scope="module")
def language(talk_model_path) -> LanguageModel:
    return LanguageModel.open(talk_model_path("converses"))


@pytest.fixture(scope="module")
def tokenizer(talk_model_path) -> TextTokenizer:
    return TextTokenizer.open(talk_model_path("converses"))


@pytest.fixture(scope="module")
def talking(run_service, talk_model_path, tmp_path_factory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("talking")
    options = ("--language-model", str(talk_model_path("converses")))
    with run_service(folder, "default", *options) as service:
        yield service
        assert service.stop() == 0
        assert "Traceback" not in service.log


@pytest.fixture
def question(speech: np.ndarray) -> np.ndarray:
    """Frames and a bit, float32, as a client sends them."""
    return (speech[: (FRAMES - 1) * FRAME_SAMPLES + 100] / 32_768).astype("<f4")


def whole(question: np.ndarray) -> np.ndarray:
    return np.pad(question, (0, -len(question) % FRAME_SAMPLES))


class Answers:
    """What the library makes of a question: tokens, text and sound."""

    def __init__(self, codec: Any, language: LanguageModel, tokenizer: TextTokenizer | None, question: np.ndarray) -> None:
        self.tokens, self.sound = direct_answer(codec, language, whole(question), Sampling(seed=9))
        transcript = Transcript(tokenizer, 3)
        self.pieces = [transcript.push(token) for token in self.tokens]

    def require(self, texts: list[dict[str, Any]], sound: np.ndarray) -> None:
        said = [text for text in texts if text["type"] == "text"]
        assert [text["token"] for text in said] == self.tokens
        assert [text["text"] for text in said] == self.pieces
        assert np.array_equal(sound, self.sound)


@pytest.fixture
def answers(default_model, language, tokenizer, question) -> Answers:
    return Answers(default_model, language, tokenizer, question)


class TalkingClient:
    """Keeps texts and sound in the order of their sequence numbers; comes back where it is told to."""

    def __init__(self, resuming: Callable[..., Any], question: np.ndarray, query: str = QUERY) -> None:
        self.client = resuming(query, question.tobytes(), 4)
        keep = self.client.receive

        async def receive(connection: Any) -> Any:
            message = await keep(connection)
            if isinstance(message, dict) and message["type"] == "text":
                assert message["sequence"] == self.client.last_sequence + 1, "an answer was skipped or came twice"
                self.client.last_sequence = message["sequence"]
            return message

        self.client.receive = receive


async def test_text_and_sound_are_those_of_the_library(talking, stream, question, answers) -> None:
    async with stream(talking, QUERY) as client:
        ready = await client.until("ready")
        assert (
            ready["settings"] | {"mode": "talk", "levels": 4, "seed": 9, "temperature": 0.8, "top_k": 250} == ready["settings"]
        )
        assert (ready["settings"]["text_temperature"], ready["settings"]["text_top_k"]) == (0.7, 25)
        assert (ready["language_model"]["user_levels"], ready["language_model"]["own_levels"]) == (4, 4)
        assert ready["delay_samples"] == FRAME_SAMPLES
        data = question.tobytes()
        for start in range(0, len(data), 3001):
            await client.connection.send(data[start : start + 3001])
        await client.send("flush")
        flushed = await client.until("flushed")
        assert (flushed["frames"], flushed["samples"], flushed["sent_samples"]) == (
            FRAMES,
            len(question),
            FRAMES * FRAME_SAMPLES,
        )
        answers.require(client.texts, client.pcm("<f4"))
        said = [text for text in client.texts if text["type"] == "text"]
        assert [(text["sequence"], text["position"]) for text in said] == [(2 * i, i * FRAME_SAMPLES) for i in range(FRAMES)]
        expected = [(KIND_PCM, 2 * i + 1, i * FRAME_SAMPLES) for i in range(FRAMES)]
        assert [(header.kind, header.sequence, header.position) for header, _ in client.frames] == expected


async def test_a_reset_begins_the_conversation_anew(talking, stream, question, answers) -> None:
    async with stream(talking, QUERY) as client:
        await client.until("ready")
        await client.connection.send(question[: 3 * FRAME_SAMPLES + 50].tobytes())
        await client.send("reset")
        await client.until("reset_done")
        client.frames.clear()
        client.texts.clear()
        await client.connection.send(question.tobytes())
        await client.send("flush")
        await client.until("flushed")
        answers.require(client.texts, client.pcm("<f4"))
        assert client.texts[0]["sequence"] == 0


async def test_many_conversations_at_a_time(talking, stream, question, *, default_model, language, tokenizer) -> None:
    async def converse(samples: np.ndarray) -> tuple[list[dict[str, Any]], np.ndarray]:
        async with stream(talking, QUERY) as client:
            await client.until("ready")
            await client.connection.send(samples.tobytes())
            await client.send("flush")
            await client.until("flushed")
            return client.texts, client.pcm("<f4")

    questions = [np.roll(question, 997 * index) for index in range(5)]
    for samples, found in zip(questions, await asyncio.gather(*map(converse, questions)), strict=True):
        Answers(default_model, language, tokenizer, samples).require(*found)


async def test_a_lost_connection_goes_on(talking, resuming, question, answers) -> None:
    client = TalkingClient(resuming, question).client
    await client.travel(talking, 5, end=7_000)
    await client.travel(talking, 12, by_query=True)
    flushed = await client.finish(talking)
    assert flushed["frames"] == FRAMES
    answers.require(client.texts, client.pcm("<f4"))
    assert [ready["resumed"] for ready in client.readies] == [False, True, True]


async def test_a_stream_moves_to_another_process(replica, resuming, question, answers, *, talk_model_path, tmp_path) -> None:
    options = ("--model", "default", "--language-model", str(talk_model_path("converses")))
    client = TalkingClient(resuming, question).client
    first = replica(*options)
    connection = await client.open(first)
    await client.send(connection, 9_000)
    checkpoint = await client.until(connection, "checkpoint")
    assert checkpoint["position"] > 0
    first.process.send_signal(signal.SIGTERM)
    assert (await client.until(connection, "error"))["code"] == "draining"
    await connection.wait_closed()
    assert first.process.wait(timeout=60) == 0
    assert len(list((tmp_path / "store").glob("*.stream"))) == 1
    second = replica(*options)
    await client.finish(second)
    answers.require(client.texts, client.pcm("<f4"))
    assert "Traceback" not in first.log + second.log


async def test_the_client_library(talking, question, answers) -> None:
    settings = StreamSettings("talk", sample_format="f32le", seed=9)
    async with Stream(talking.url.replace("http", "ws"), settings) as stream:
        frames = [frame async for frame in stream.run([question[:5_000], question[5_000:]])]
        assert stream.ready.language_model is not None
        assert stream.stats.answered_frames == FRAMES
        assert stream.stats.lag_ms == 0
    assert [frame.token for frame in frames if frame.token is not None] == answers.tokens
    assert [frame.text for frame in frames if frame.text is not None] == answers.pieces
    assert np.array_equal(np.concatenate([frame.pcm for frame in frames if frame.pcm is not None]), answers.sound)


def test_the_command(talking, question, answers, tmp_path) -> None:
    soundfile.write(tmp_path / "in.wav", question, 24_000, subtype="FLOAT")
    command = [
        str(Path(sys.executable).with_name("mimi")),
        "stream",
        "in.wav",
        "-o",
        "out.wav",
        "--talk",
        "--seed",
        "9",
        "--json",
    ]
    command += ["--url", talking.url.replace("http", "ws")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(done.stdout)
    assert (result["mode"], result["text"]) == ("talk", "".join(answers.pieces).strip())
    written, _ = soundfile.read(tmp_path / "out.wav", dtype="int16")
    assert np.array_equal(written, to_int16(answers.sound)[: len(question)])


async def test_it_is_described_and_counted(talking, language) -> None:
    async with httpx.AsyncClient(base_url=talking.url) as http:
        info = (await http.get("/v1/info")).json()
        metrics = (await http.get("/metrics")).text
        assert (await http.get("/readyz")).json()["ready"]
    assert info["protocol"]["modes"] == ["encode", "decode", "echo", "talk"]
    assert info["language_model"]["sha256"] == language.info.sha256
    assert (info["language_model"]["own_levels"], info["language_model"]["tokenizer_pieces"] > 50) == (4, True)
    assert info["load"]["talking"] == 0
    assert f'sha256="{language.info.sha256}"' in next(
        line for line in metrics.splitlines() if line[:19] == "mimi_language_info{"
    )
    (frames,) = re.findall(r'^mimi_frames_total\{step="language"\} (\S+)', metrics, re.MULTILINE)
    assert float(frames) > FRAMES


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("mode=talk&levels=8", "setting", "found 8, expected 4"),
        ("mode=talk&temperature=x", "setting", "0, or 0.001 .. 1000"),
        ("mode=talk&temperature=0.0001", "setting", "0, or 0.001 .. 1000"),
        ("mode=talk&seed=4294967296", "setting", "a whole number from 0 to 4294967295"),
        ("mode=echo&seed=1", "setting", "expected 0"),
        ("mode=encode&temperature=0.5", "setting", "expected 0"),
    ],
)
async def test_settings_are_refused_by_name(talking, stream, query, code, message) -> None:
    async with stream(talking, query) as client:
        error = await client.until("error")
        assert error["code"] == code
        assert message in error["message"]
        assert (await client.closing())[0] == 1008


async def test_a_service_without_a_language_model_says_so(service, stream) -> None:
    async with stream(service, "mode=talk") as client:
        error = await client.until("error")
    assert (error["code"], error["subject"]) == ("not_offered", "mode")
    assert "--language-model" in error["expected"]


async def test_a_model_that_only_writes(run_service, stream, question, *, talk_model_path, default_model, tmp_path) -> None:
    path = talk_model_path("writes")
    options = ("--language-model", str(path), "--max-talk-sessions", "1")
    with run_service(tmp_path, "default", *options) as service:
        async with stream(service, "mode=talk&format=f32le") as client:
            ready = await client.until("ready")
            assert (ready["language_model"]["own_levels"], ready["settings"]["text_temperature"]) == (0, 0)
            async with stream(service, "mode=talk") as second:
                assert (await second.until("error"))["code"] == "capacity"
            async with stream(service, "mode=encode") as third:
                await third.until("ready")
            await client.connection.send(question.tobytes())
            await client.send("flush")
            assert (await client.until("flushed"))["sent_samples"] == 0
        tokens, _ = direct_answer(default_model, LanguageModel.open(path), whole(question))
        assert [text["token"] for text in client.texts if text["type"] == "text"] == tokens
        assert not client.frames
        async with stream(service, "mode=talk&temperature=0.5") as client:
            assert (await client.until("error"))["subject"] == "temperature"
