"""The stream protocol as an AsyncAPI 3 document, made from the protocol's own tables.

``python -m server.asyncapi`` prints it; ``docs/asyncapi.json`` is what it printed, and a test compares. The service serves it
at ``/asyncapi.json``. What the messages mean is in ``docs/protocol.md``, which is normative.
"""

from __future__ import annotations

import json
from typing import Any, Final

from server.asyncapi_schemas import FIELD_SCHEMAS, OPTIONAL_FIELDS, SETTING_SCHEMAS
from server.status_map import STATUS_MAP
from server.wire import CLIENT_MESSAGES
from server.wire_messages import PROTOCOL_VERSION, SERVER_MESSAGES, SUBPROTOCOL
from server.wire_resume import RESUME_PARAMETERS
from server.wire_settings import STREAM_SETTINGS

Schema = dict[str, Any]

VERSION: Final = "3.0.0"
ADDRESS: Final = "/v1/stream"
_BINARY: Final[Schema] = {"type": "string", "format": "binary"}
BINARY_MESSAGES: Final = {
    "client_audio": "Modes encode and echo: raw PCM or Ogg pages, any number of bytes; or one Opus packet.",
    "client_binary_codes": "Mode decode with codes=binary: little-endian u16[levels] per frame, any number of whole frames.",
    "server_frame": (
        "A header of 16 bytes, little-endian: u8 version (1), u8 kind (1 codes, 2 PCM, 3 Opus), u16 levels, channels or "
        "samples, u32 sequence, "
        "u64 position. Then u16[levels], or samples in the agreed format, or Opus."
    ),
}
"""Messages that are no text."""


def build_document() -> Schema:
    """Make the document."""
    messages = {**_text_messages(), **_binary_messages()}
    return {
        "asyncapi": VERSION,
        "info": {
            "title": f"Mimi streams, {SUBPROTOCOL}",
            "version": str(PROTOCOL_VERSION),
            "description": "Live neural audio codes over a WebSocket. The normative text is docs/protocol.md.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"local": _server("ws", "127.0.0.1:8000"), "public": _server("wss", "{host}")},
        "channels": {"stream": _channel(messages)},
        "operations": {
            "receive": _operation("receive", "What a client may send.", messages, "client"),
            "send": _operation("send", "What the service sends.", messages, "server"),
        },
        "components": {"messages": messages, "schemas": _schemas(), "securitySchemes": _security_schemes()},
    }


def document_text() -> str:
    """Make the text of ``docs/asyncapi.json``."""
    return json.dumps(build_document(), indent=2) + "\n"


def _server(protocol: str, host: str) -> Schema:
    keys = [{"$ref": f"#/components/securitySchemes/{name}"} for name in _security_schemes()]
    server: Schema = {"host": host, "protocol": protocol, "security": keys}
    if "{" in host:
        server["variables"] = {"host": {"description": "Where the service is, with its port."}}
    return server


def _channel(messages: dict[str, Schema]) -> Schema:
    return {
        "address": ADDRESS,
        "description": f"One stream per connection; the subprotocol {SUBPROTOCOL} is confirmed where it is offered.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"ws": {"method": "GET", "query": _settings_schema(), "bindingVersion": "0.1.0"}},
    }


def _operation(action: str, summary: str, messages: dict[str, Schema], side: str) -> Schema:
    mine = [name for name in messages if name.startswith(side)]
    return {
        "action": action,
        "channel": {"$ref": "#/channels/stream"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/stream/messages/{name}"} for name in mine],
    }


def _text_messages() -> dict[str, Schema]:
    messages = {}
    for kind, spec in CLIENT_MESSAGES.items():
        fields = {name: _field_schema("client", kind, name) for name in (*spec.required, *spec.optional)}
        message = _text_message(kind, fields, spec.required)
        messages[f"client_{kind}"] = {**message, "summary": f"Legal in the state '{spec.legal_in.value}'."}
    for kind, names in SERVER_MESSAGES.items():
        fields = {name: _field_schema("server", kind, name) for name in names}
        required = tuple(name for name in names if name not in OPTIONAL_FIELDS.get(kind, ()))
        messages[f"server_{kind}"] = _text_message(kind, fields, required)
    return messages


def _text_message(kind: str, fields: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    return {
        "name": kind,
        "contentType": "application/json",
        "payload": {
            "type": "object",
            "properties": {"type": {"const": kind}, **fields},
            "required": ["type", *required],
            "additionalProperties": False,
        },
    }


def _binary_messages() -> dict[str, Schema]:
    return {
        name: {"name": name, "contentType": "application/octet-stream", "summary": summary, "payload": _BINARY}
        for name, summary in BINARY_MESSAGES.items()
    }


def _field_schema(side: str, kind: str, name: str) -> Schema:
    """Look a field up: by its message where it means something of its own there, else by its name."""
    if side == "client" and kind == "hello":
        return SETTING_SCHEMAS[name]
    return FIELD_SCHEMAS.get(f"{side}.{kind}.{name}", FIELD_SCHEMAS.get(name, {}))


def _settings_schema() -> Schema:
    resume = {name: FIELD_SCHEMAS[name] for name in RESUME_PARAMETERS}
    return {"type": "object", "properties": {**{name: SETTING_SCHEMAS[name] for name in STREAM_SETTINGS}, **resume}}


def _schemas() -> dict[str, Schema]:
    """Every way to be refused, with the close code that follows the error message."""
    codes = {code: {"closeCode": answer.close_code, "reason": answer.reason} for code, answer in STATUS_MAP.items()}
    return {"errorCode": {"type": "string", "enum": list(codes), "x-codes": codes}}


def _security_schemes() -> dict[str, Schema]:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key of the service, where it has keys."},
        "apiKey": {"type": "httpApiKey", "name": "X-API-Key", "in": "header", "description": "The same in another header."},
        "token": {
            "type": "httpApiKey",
            "name": "token",
            "in": "query",
            "description": "A short-lived token of POST /v1/token, for browsers.",
        },
    }


if __name__ == "__main__":
    print(document_text(), end="")
