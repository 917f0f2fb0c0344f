"""A stream of mode talk without a socket: its answers, its snapshot, and its reset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel, Sampling
from codec_core.errors import ModelContractError, SnapshotError
from server.codec_executor import CodecExecutor
from server.language import Language, TalkingEngine
from server.replay_window import Answer
from server.shared_secret import SharedSecret
from server.stream_maker import StreamMaker
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage, StreamSnapshot, pack_stream, unpack_stream
from server.stream_state import StreamState
from server.wire import Audio, Flush, Reset
from server.wire_messages import unpack_frame
from server.wire_settings import Offer, parse_settings
from tests.talk_models import direct_answer

KEY = SharedSecret("correct horse battery staple").key("stream snapshot")


@pytest.fixture(scope="module", params=["converses", "lags", "writes"])
def language(request: pytest.FixtureRequest, talk_model_path: Callable[..., Path], tiny_model: CodecModel) -> Language:
    return Language.open(talk_model_path(request.param, 32), tiny_model, 1, None)


class Talking:
    """A session and what it answered."""

    def __init__(self, state: StreamState, codec: CodecModel, language: Language) -> None:
        self.executor = CodecExecutor(TalkingEngine(codec, language.model))
        self.answers: list[Answer] = []
        self.session: StreamSession = StreamMaker(codec, self.executor, language).make(state, self.send)

    async def send(self, answer: Answer) -> None:
        self.answers.append(answer)

    def said(self) -> tuple[list[int], np.ndarray]:
        texts = [json.loads(answer.message) for answer in self.answers if isinstance(answer.message, str)]
        frames = [unpack_frame(answer.message)[1] for answer in self.answers if isinstance(answer.message, bytes)]
        return [text["token"] for text in texts if text["type"] == "text"], np.frombuffer(b"".join(frames), "<f4")

    def close(self) -> None:
        self.session.close()
        self.executor.close()


@pytest.fixture
def offer(tiny_model: CodecModel, language: Language) -> Offer:
    info = tiny_model.info
    return Offer(8, info.levels, info.codebook_entries, 1920, 24_000, info.numerics, language=language.offer())


@pytest.fixture
def talking(tiny_model: CodecModel, language: Language, offer: Offer) -> Iterator[Talking]:
    fields = {"mode": "talk", "format": "f32le", "seed": 3}
    talking = Talking(StreamState(parse_settings(fields, offer, from_text=False)), tiny_model, language)
    yield talking
    talking.close()


def sampling(language: Language) -> Sampling:
    offer = language.offer()
    return Sampling(offer.text_temperature, offer.text_top_k, offer.temperature, offer.top_k, seed=3)


async def test_it_says_what_the_library_says(talking, tiny_model, language, pcm) -> None:
    await talking.session.handle(Audio(pcm[: 9 * 1920 - 5].tobytes()))
    await talking.session.handle(Flush())
    padded = np.pad(pcm[: 9 * 1920 - 5], (0, 5))
    tokens, sound = direct_answer(tiny_model, language.model, padded, sampling(language))
    found = talking.said()
    assert found[0] == tokens
    assert np.array_equal(found[1], sound)
    sequences = [answer.sequence for answer in talking.answers if answer.sequence is not None]
    assert sequences == list(range(len(sequences)))


async def test_a_reset_is_a_new_stream(talking, pcm) -> None:
    said = []
    for _ in range(2):
        talking.answers.clear()
        await talking.session.handle(Audio(pcm[: 5 * 1920].tobytes()))
        said.append(talking.said())
        await talking.session.handle(Reset())
    assert said[0][0] == said[1][0]
    assert np.array_equal(said[0][1], said[1][1])


async def test_it_goes_on_from_a_snapshot(talking, tiny_model, language, offer, pcm) -> None:
    await talking.session.handle(Audio(pcm[:7_000].tobytes()))
    lineage = Lineage("00112233445566778899aabbccddeeff", 1.5)
    snapshot = StreamSnapshot(lineage, talking.session.capture(), [])
    blob = b"".join(pack_stream(snapshot, tiny_model.info.sha256, KEY))
    again = Talking(unpack_stream(blob, tiny_model.info.sha256, offer, KEY).state, tiny_model, language)
    for one in (talking, again):
        one.answers.clear()
        await one.session.handle(Audio(pcm[7_000:20_000].tobytes()))
    again.close()
    assert again.answers == talking.answers
    assert len(again.answers) > 4
    for place in (8, 60, len(blob) - 50, *range(100, len(blob), len(blob) // 40)):
        changed = bytearray(blob)
        changed[place] ^= 4
        with pytest.raises(SnapshotError):
            Talking(unpack_stream(bytes(changed), tiny_model.info.sha256, offer, KEY).state, tiny_model, language)


async def test_the_bytes_of_half_a_letter_are_kept(talking, tiny_model, language, offer) -> None:
    transcript = talking.session.talker._transcript
    transcript.stream.restore(b"\xc3")
    lineage = Lineage("00112233445566778899aabbccddeeff", 1.5)
    pieces = pack_stream(StreamSnapshot(lineage, talking.session.capture(), []), tiny_model.info.sha256, KEY)
    state = unpack_stream(b"".join(pieces), tiny_model.info.sha256, offer, KEY).state
    assert state.text_pending == b"\xc3"
    again = Talking(state, tiny_model, language)
    assert again.session.talker is not None
    assert again.session.talker._transcript.flush() == "\ufffd"
    again.close()


def test_a_snapshot_of_a_service_that_cannot_talk(tiny_model, offer) -> None:
    state = StreamState(parse_settings({"mode": "talk"}, offer, from_text=False))
    snapshot = StreamSnapshot(Lineage("00112233445566778899aabbccddeeff", 1.5), state, [])
    blob = b"".join(pack_stream(snapshot, tiny_model.info.sha256, KEY))
    with pytest.raises(SnapshotError, match="encoder"):
        unpack_stream(blob, tiny_model.info.sha256, offer, KEY)
    info = tiny_model.info
    silent = Offer(8, info.levels, info.codebook_entries, 1920, 24_000, info.numerics)
    with pytest.raises(SnapshotError, match="mode: found 'talk'"):
        unpack_stream(blob, info.sha256, silent, KEY)


async def test_a_snapshot_of_another_language_model(talking, tiny_model, talk_model_path) -> None:
    state = talking.session.capture()
    other = Language.open(talk_model_path("persona", 32), tiny_model, 1, None)
    with pytest.raises(SnapshotError):
        Talking(state, tiny_model, other)


def test_a_model_that_hears_nobody(talk_model_path, tiny_model) -> None:
    with pytest.raises(ModelContractError, match="none: it hears nobody"):
        Language.open(talk_model_path("reads_out", 32), tiny_model, 1, None)


def test_a_model_for_another_codec(talk_model_path, tiny_model) -> None:
    with pytest.raises(ModelContractError, match="found 1024, expected 32"):
        Language.open(talk_model_path("converses"), tiny_model, 1, None)
