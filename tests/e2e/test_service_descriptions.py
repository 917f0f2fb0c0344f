"""What the service says of itself in ``/asyncapi.json`` holds for what it sends."""

from __future__ import annotations

import httpx
import jsonschema
import pytest


@pytest.fixture(scope="module")
def described(service) -> dict:
    return httpx.get(f"{service.url}/asyncapi.json").json()


def check(described: dict, side: str, message: dict) -> None:
    schema = {
        **described["components"]["messages"][f"{side}_{message['type']}"]["payload"],
        "components": described["components"],
    }
    jsonschema.Draft202012Validator(schema).validate(message)


@pytest.mark.parametrize("query", ["codes=json&levels=2", "mode=echo&levels=2&sample_rate=48000"])
async def test_every_text_message_is_as_described(service, stream, described, speech, query):
    sent = [{"type": kind} for kind in ("flush", "reset")] + [{"type": "ping", "id": "a"}, {"type": "ping"}]
    async with stream(service, query) as client:
        await client.connection.send(speech[:10_000].tobytes())
        for message in sent:
            check(described, "client", message)
            await client.send(**{"kind": message["type"], **{k: v for k, v in message.items() if k != "type"}})
        await client.send("ack", sequence=2**32 - 1)
        await client.closing()
    kinds = {message["type"] for message in client.texts}
    assert {"ready", "flushed", "reset_done", "pong", "error"} <= kinds
    assert ("codes" in kinds) == ("json" in query)
    for message in client.texts:
        check(described, "server", message)


def test_a_message_with_another_field_is_not_as_described(described):
    with pytest.raises(jsonschema.ValidationError):
        check(described, "client", {"type": "flush", "now": True})
    with pytest.raises(jsonschema.ValidationError):
        check(described, "server", {"type": "error", "code": "no_such_code"})
