"""Any order of messages, legal or not, against a running service: its answers are those of a model built on the library.

The model is a few lines beside each rule: what the library computes for the same input, in the order in which it is owed.
Answers are read late, so that messages meet in the service as they would from a client that does not wait.
"""

from __future__ import annotations

import contextlib
import json
import struct
import time
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from codec_core.pcm import to_int16
from server.status_map import CLOSE_DONE, STATUS_MAP
from server.wire_messages import KIND_PCM, pack_codes, pack_frame

FRAME_SAMPLES = 1920
ENTRIES = 32
ASIDE = {"warning", "checkpoint", "stats"}
"""What may come at any time."""
DTYPES = {"s16le": np.dtype("<i2"), "f32le": np.dtype("<f4")}


def text(**fields: object) -> str:
    return json.dumps(fields)


ILLEGAL = {
    "setting": [],
    "protocol": [text(type="hello"), text(type="stop"), "{}", "[]", "{", text(type="flush", now=1), text(type="ping", id=[])],
    "wrong_kind": [text(type="codes", codes=[0])],
    "message_too_big": [bytes(70_000), " " * 70_000],
}


class StreamMachine(RuleBasedStateMachine):
    """One connection and its model."""

    service: Any
    model: Any

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.owed: list[bytes | dict[str, Any]] = []
        self.ending: tuple[int, str] | None = (CLOSE_DONE, "not opened yet")

    @precondition(lambda self: not self.is_open)
    @rule(
        mode=st.sampled_from(["encode", "decode", "echo"]),
        levels=st.integers(1, 4),
        form=st.sampled_from(["s16le", "f32le"]),
        codes=st.sampled_from(["binary", "json"]),
        in_hello=st.booleans(),
    )
    def open(self, mode: str, levels: int, form: str, codes: str, in_hello: bool) -> None:
        fields: dict[str, Any] = {"mode": mode, "levels": levels, "format": form, "codes": codes}
        self.stack.close()
        query = "" if in_hello else "&".join(f"{name}={value}" for name, value in fields.items())
        self.socket: ClientConnection = self.stack.enter_context(connect(self.service.stream_url(query)))
        if in_hello:
            self.socket.send(text(type="hello", **fields))
        self.mode, self.levels, self.dtype, self.codes = mode, levels, DTYPES[form], codes
        self.owed, self.ending = [{"type": "ready"}], None
        self.epoch = 0
        self.start()

    def start(self) -> None:
        self.encoder = self.model.encoder(self.levels)
        self.decoder = self.model.decoder(self.levels)
        self.split = b""
        self.frames = self.sequence = self.padded = self.received = 0

    def owe_codes(self, codes: np.ndarray) -> None:
        for frame in codes.T:
            position = self.frames * FRAME_SAMPLES
            values = [int(code) for code in frame]
            if self.mode == "echo":
                self.owe_pcm(frame, position)
            elif self.codes == "json":
                self.owed.append({"type": "codes", "sequence": self.sequence, "position": position, "codes": values})
            else:
                self.owed.append(pack_codes(self.sequence, position, values))
            self.frames += 1
            self.sequence += 1

    def owe_pcm(self, codes: np.ndarray, position: int) -> None:
        pcm = self.decoder.decode(codes)
        samples = to_int16(pcm) if self.dtype.kind == "i" else pcm
        self.owed.append(pack_frame(KIND_PCM, 1, self.sequence, position, samples.astype(self.dtype).tobytes()))

    def refuse(self, code: str) -> None:
        self.owed.append({"type": "error", "code": code, "reason": STATUS_MAP[code].reason})
        self.ending = (STATUS_MAP[code].close_code, code)
        self.settle()

    @property
    def is_open(self) -> bool:
        return self.ending is None

    @precondition(lambda self: self.is_open and self.mode != "decode")
    @rule(seed=st.integers(0, 2**32 - 1), samples=st.integers(0, 5000), more_bytes=st.integers(0, 3))
    def send_audio(self, seed: int, samples: int, more_bytes: int) -> None:
        noise = np.random.default_rng(seed).normal(0, 0.1, samples + 1)
        scaled = noise * 32_768 if self.dtype.kind == "i" else noise
        # Bytes of a sample whose rest may come with the next message.
        data = scaled[:samples].astype(self.dtype).tobytes() + bytes(more_bytes % self.dtype.itemsize)
        self.socket.send(data)
        data = self.split + data
        whole = len(data) - len(data) % self.dtype.itemsize
        pcm = np.frombuffer(data[:whole], self.dtype)
        self.split = data[whole:]
        if not np.isfinite(pcm).all():
            self.refuse("non_finite_input")
            return
        self.received += len(pcm)
        self.owe_codes(self.encoder.push(pcm))

    @precondition(lambda self: self.is_open and self.mode == "decode")
    @rule(
        frames=st.lists(st.lists(st.integers(0, ENTRIES - 1), min_size=4, max_size=4), max_size=4),
        is_bad=st.sampled_from([0] * 9 + [1]),
    )
    def send_codes(self, frames: list[list[int]], is_bad: int) -> None:
        rows = [frame[: self.levels] for frame in frames]
        if is_bad and rows:
            rows[-1][-1] = ENTRIES
        if self.codes == "json":
            rows = rows[-1:]
            for row in rows:
                self.socket.send(text(type="codes", codes=row))
        else:
            self.socket.send(b"".join(struct.pack(f"<{self.levels}H", *row) for row in rows))
        if is_bad and rows:
            self.refuse("code_range")
            return
        for row in rows:
            self.owe_pcm(np.array(row, np.int32), self.frames * FRAME_SAMPLES)
            self.frames += 1
            self.sequence += 1

    @precondition(lambda self: self.is_open)
    @rule()
    def flush(self) -> None:
        self.socket.send(text(type="flush"))
        if self.split:
            self.refuse("payload")
            return
        if self.mode != "decode":
            pending = self.encoder.pending_samples
            self.padded += FRAME_SAMPLES - pending if pending else 0
            self.owe_codes(self.encoder.flush())
        position = self.frames * FRAME_SAMPLES
        self.owed.append(
            {
                "type": "flushed",
                "frames": self.frames,
                "position": position,
                "samples": position - self.padded,
                "padded_samples": self.padded,
                "received_samples": self.received,
                "sent_samples": 0 if self.mode == "encode" else position,
            }
        )

    @precondition(lambda self: self.is_open)
    @rule()
    def reset(self) -> None:
        self.socket.send(text(type="reset"))
        self.epoch += 1
        self.start()
        self.owed.append({"type": "reset_done", "epoch": self.epoch})

    @precondition(lambda self: self.is_open)
    @rule(id=st.none() | st.text(max_size=64) | st.integers(-(2**53) + 1, 2**53 - 1))
    def ping(self, id: str | int | None) -> None:  # noqa: A002 - the protocol's word
        self.socket.send(text(type="ping", id=id))
        self.owed.append({"type": "pong", "id": id})

    @precondition(lambda self: self.is_open)
    @rule(behind=st.integers(-1, 3))
    def acknowledge(self, behind: int) -> None:
        sequence = self.sequence - 1 - behind
        if sequence < 0 and behind >= 0:
            return
        self.socket.send(text(type="ack", sequence=max(sequence, 0)))
        if sequence >= self.sequence:
            self.refuse("protocol")

    @precondition(lambda self: self.is_open)
    @rule(illegal=st.sampled_from([(code, message) for code, messages in ILLEGAL.items() for message in messages]))
    def send_what_is_not_legal(self, illegal: tuple[str, str | bytes]) -> None:
        code, message = illegal
        if code == "wrong_kind" and self.mode == "decode" and self.codes == "json":
            return
        if code == "message_too_big":
            # Refused as it comes, which may be before what is still owed.
            self.settle()
        self.socket.send(message)
        self.refuse(code)

    @precondition(lambda self: self.is_open)
    @rule()
    def read(self) -> None:
        self.settle()

    def settle(self) -> None:
        while self.owed:
            expected, received = self.owed.pop(0), self.receive()
            if isinstance(expected, bytes):
                assert received == expected
            else:
                assert isinstance(received, dict)
                assert expected.items() <= received.items()
        if self.ending is not None:
            with pytest.raises(ConnectionClosed):
                self.receive()
            assert (self.socket.close_code, self.socket.close_reason) == self.ending

    def receive(self) -> bytes | dict[str, Any]:
        while True:
            message = self.socket.recv(timeout=60)
            received = json.loads(message) if isinstance(message, str) else bytes(message)
            if isinstance(received, bytes) or received["type"] not in ASIDE:
                return received

    @precondition(lambda self: self.is_open)
    @rule()
    def close(self) -> None:
        self.socket.send(text(type="close"))
        self.ending = (CLOSE_DONE, "done")
        self.settle()

    @precondition(lambda self: self.is_open)
    @rule()
    def break_off(self) -> None:
        self.socket.socket.close()
        self.owed = []
        self.ending = (1006, "")

    def teardown(self) -> None:
        with self.stack:
            if self.is_open:
                self.settle()


@pytest.fixture(scope="module")
def patient_service(run_service, tmp_path_factory, tiny_model_path):
    """A service that refuses nobody for the machine's sake, and keeps no stream whose connection broke off."""
    options = ("--admission", "count", "--resume-grace-ms", "0", "--send-timeout-ms", "60000")
    options += ("--max-address-handshakes-per-s", "10000")
    with run_service(tmp_path_factory.mktemp("state_machine"), tiny_model_path, *options) as running:
        yield running


@pytest.mark.slow
def test_any_order_of_messages_is_answered_as_the_model_says(patient_service, tiny_model, rng):
    StreamMachine.service, StreamMachine.model = patient_service, tiny_model
    chosen = int(rng.integers(2**31))
    run_state_machine_as_test(
        seed(chosen)(StreamMachine),
        settings=settings(
            max_examples=40, stateful_step_count=20, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
        ),
    )
    deadline_s = time.monotonic() + 10
    while httpx.get(f"{patient_service.url}/v1/info").json()["load"]["streams"]:
        assert time.monotonic() < deadline_s, "a place stayed taken"
        time.sleep(0.05)
