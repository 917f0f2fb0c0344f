"""``docs/asyncapi.json`` is what the code's tables make, and a well-formed AsyncAPI 3 document.

``MIMI_ASYNCAPI_SCHEMA`` names the official schema to check against, ``schemas/3.0.0.json`` of npm's ``@asyncapi/specs``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from server.asyncapi import BINARY_MESSAGES, VERSION, build_document, document_text
from server.asyncapi_schemas import FIELD_SCHEMAS, OPTIONAL_FIELDS, SETTING_SCHEMAS
from server.status_map import STATUS_MAP
from server.wire import CLIENT_MESSAGES
from server.wire_messages import SERVER_MESSAGES
from server.wire_settings import STREAM_SETTINGS

COMMITTED = Path(__file__).parents[2] / "docs" / "asyncapi.json"
DOCUMENT = build_document()
OFFICIAL = os.environ.get("MIMI_ASYNCAPI_SCHEMA")


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def resolved(reference: str) -> Any:
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_the_committed_file_is_what_is_made():
    made = subprocess.run([sys.executable, "-P", "-m", "server.asyncapi"], capture_output=True, check=True, text=True).stdout
    assert COMMITTED.read_text() == made == document_text(), f"python -m server.asyncapi > {COMMITTED.name}"


def test_every_message_of_the_tables_is_in_it_with_its_fields():
    expected = (
        {f"client_{kind}" for kind in CLIENT_MESSAGES} | {f"server_{kind}" for kind in SERVER_MESSAGES} | set(BINARY_MESSAGES)
    )
    messages = DOCUMENT["components"]["messages"]
    assert set(messages) == set(DOCUMENT["channels"]["stream"]["messages"]) == expected
    for kind, fields in SERVER_MESSAGES.items():
        payload = messages[f"server_{kind}"]["payload"]
        assert tuple(payload["properties"]) == ("type", *fields)
        assert set(fields) - set(payload["required"]) == set(OPTIONAL_FIELDS.get(kind, ()))
    for kind, spec in CLIENT_MESSAGES.items():
        payload = messages[f"client_{kind}"]["payload"]
        assert tuple(payload["properties"]) == ("type", *spec.required, *spec.optional)
        assert payload["required"] == ["type", *spec.required]


def test_every_field_has_a_schema_and_every_schema_a_field():
    for message in DOCUMENT["components"]["messages"].values():
        for name, schema in message["payload"].get("properties", {}).items():
            assert schema, f"{message['name']}.{name}: a line in server/asyncapi_schemas.py"
    assert set(SETTING_SCHEMAS) == set(STREAM_SETTINGS)
    used = {name for fields in SERVER_MESSAGES.values() for name in fields}
    used |= {name for kind, spec in CLIENT_MESSAGES.items() if kind != "hello" for name in (*spec.required, *spec.optional)}
    used |= {f"server.{kind}.{name}" for kind, fields in SERVER_MESSAGES.items() for name in fields}
    assert set(FIELD_SCHEMAS) <= used
    assert set(OPTIONAL_FIELDS) <= set(SERVER_MESSAGES)


def test_every_error_is_in_it_with_its_close_code():
    codes = DOCUMENT["components"]["schemas"]["errorCode"]["x-codes"]
    assert {code: entry["closeCode"] for code, entry in codes.items()} == {
        code: answer.close_code for code, answer in STATUS_MAP.items()
    }


def test_it_is_well_formed():
    assert re.fullmatch(r"3\.\d+\.\d+", VERSION)
    assert {"asyncapi", "info", "servers", "channels", "operations", "components"} <= set(DOCUMENT)
    for node in nodes(DOCUMENT):
        if "$ref" in node:
            assert resolved(node["$ref"])
    for name, operation in DOCUMENT["operations"].items():
        assert operation["action"] == name
        assert resolved(operation["channel"]["$ref"]) is DOCUMENT["channels"]["stream"]
        listed = {resolved(resolved(message["$ref"])["$ref"])["name"] for message in operation["messages"]}
        assert len(listed) == len(operation["messages"])
    sent, received = (DOCUMENT["operations"][name]["messages"] for name in ("send", "receive"))
    assert len(sent) + len(received) == len(DOCUMENT["components"]["messages"])
    for message in DOCUMENT["components"]["messages"].values():
        jsonschema.Draft202012Validator.check_schema(message["payload"])


@pytest.mark.skipif(OFFICIAL is None, reason="MIMI_ASYNCAPI_SCHEMA names no schema")
def test_the_official_schema_takes_it():
    schema = json.loads(Path(str(OFFICIAL)).read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(DOCUMENT)
