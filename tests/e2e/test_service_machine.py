"""The protocol, driven by chance: whatever a legal client does and loses, its codes are those of the library."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from websockets.sync.client import connect

from server.wire_messages import unpack_frame

LEVELS = 3
ANSWER_TIMEOUT_S = 60


class Conversation(RuleBasedStateMachine):
    """A client, and beside it a session of the library that hears the same."""

    service = None
    model = None

    def __init__(self) -> None:
        super().__init__()
        self.noise = np.random.default_rng(5).integers(-9000, 9000, 1 << 18).astype("<i2")
        self.session = self.model.encoder(LEVELS)
        self.expected: list[tuple[int, int, list[int]]] = []
        self.received = 0
        self.epoch = self.position = self.frames = self.flushes = 0
        self.token = ""
        self.connection = None
        self.connections = contextlib.ExitStack()

    def open(self, query: str) -> None:
        self.connection = self.connections.enter_context(connect(self.service.stream_url(query), close_timeout=0.1))

    @initialize(by_query=st.booleans())
    def begin(self, by_query: bool) -> None:
        self.open(f"levels={LEVELS}" if by_query else "")
        if not by_query:
            self.tell(type="hello", levels=LEVELS)
        ready = self.until("ready")
        assert (ready["resumed"], ready["epoch"], ready["position"]) == (False, 0, 0)

    @rule(samples=st.sampled_from([0, 1, 100, 1919, 1920, 1921, 5000]))
    def hear(self, samples: int) -> None:
        chunk = self.noise[self.position : self.position + samples]
        self.connection.send(chunk.tobytes())
        self.expect(self.session.push(chunk))
        self.position += samples

    @rule()
    def flush(self) -> None:
        self.tell(type="flush")
        self.expect(self.session.flush())
        self.flushes += 1
        flushed = self.until("flushed")
        assert (flushed["received_samples"], flushed["samples"]) == (self.position, self.position)
        assert (flushed["frames"], flushed["flushes"]) == (self.frames, self.flushes)

    @rule()
    def reset(self) -> None:
        self.tell(type="reset")
        self.session.reset()
        self.epoch += 1
        self.position = self.frames = self.flushes = 0
        assert self.until("reset_done")["epoch"] == self.epoch

    @rule()
    def catch_up(self) -> None:
        self.tell(type="ping", id=self.received)
        self.until("pong")
        assert self.received == len(self.expected)

    @precondition(lambda self: self.received)
    @rule()
    def acknowledge(self) -> None:
        epoch, sequence, _ = self.expected[self.received - 1]
        self.tell(type="ack", sequence=sequence, epoch=epoch)

    @rule(by_query=st.booleans(), half_open=st.booleans())
    def lose_the_connection(self, by_query: bool, half_open: bool) -> None:
        lost = self.connection
        if not half_open:
            lost.socket.close()
        held = {"last_sequence": -1, "epoch": self.epoch}
        if self.received and self.expected[self.received - 1][0] == self.epoch:
            held["last_sequence"] = self.expected[self.received - 1][1]
        query = f"resume_token={self.token}&last_sequence={held['last_sequence']}&epoch={self.epoch}"
        self.open(query if by_query else "")
        if not by_query:
            self.tell(type="resume", token=self.token, **held)
        ready = self.until("ready")
        assert ready["resumed"]
        assert (ready["epoch"], ready["flushes"]) == (self.epoch, self.flushes)
        assert ready["position"] <= self.position
        self.connection.send(self.noise[ready["position"] : self.position].tobytes())

    def teardown(self) -> None:
        with self.connections:
            if self.connection is not None:
                self.catch_up()

    def tell(self, **message: object) -> None:
        self.connection.send(json.dumps(message))

    def expect(self, codes: np.ndarray) -> None:
        for column in codes.T.tolist():
            self.expected.append((self.epoch, self.frames, column))
            self.frames += 1

    def until(self, kind: str) -> dict:
        """Receive up to a text message of this type; frames on the way must be the next ones, to the bit."""
        while True:
            message = self.connection.recv(timeout=ANSWER_TIMEOUT_S)
            if isinstance(message, bytes):
                header, payload = unpack_frame(message)
                epoch, sequence, codes = self.expected[self.received]
                assert (header.sequence, np.frombuffer(payload, "<u2").tolist()) == (sequence, codes), epoch
                self.received += 1
                continue
            fields = json.loads(message)
            if fields["type"] == "ready":
                self.token = fields["resume_token"]
            if fields["type"] == kind and (kind != "flushed" or fields["flushes"] == self.flushes):
                return fields
            assert fields["type"] in ("flushed", "reset_done"), fields


@pytest.mark.slow
def test_a_conversation_of_any_course(service, tiny_model):
    machine = type("Machine", (Conversation,), {"service": service, "model": tiny_model})
    course = settings(max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=course)
