"""What an error becomes on the wire: the one table from error code to HTTP status, close code and fixed reason.

The same ``code`` is the name everywhere: in the REST error body, in the WebSocket ``error`` message, as the reason of the close
frame, and on the Python exception.
"""

from __future__ import annotations

from typing import NamedTuple

from codec_core.errors import CodecError, InternalError

CLOSE_DONE = 1000
"""A session that ended as the client asked."""
FACT_MAX_CHARS = 300
"""Most characters of an error's subject, found or expected on the wire."""


class Answer(NamedTuple):
    """How one error code is answered."""

    http_status: int
    close_code: int
    reason: str
    """One sentence for a person; the same for every error of this code."""


STATUS_MAP: dict[str, Answer] = {
    "codec": Answer(500, 1011, "The codec failed."),
    "model_file": Answer(500, 1011, "The model file was refused."),
    "model_access": Answer(500, 1011, "The model file cannot be read."),
    "model_format": Answer(500, 1011, "The model file is not well formed."),
    "model_contract": Answer(500, 1011, "The model file is not a model this engine runs."),
    "input": Answer(422, 1007, "The input was refused."),
    "input_shape": Answer(422, 1007, "The input has the wrong length or number of dimensions."),
    "input_type": Answer(422, 1007, "The input has an element type that is not taken."),
    "non_finite_input": Answer(422, 1007, "The audio holds NaN or infinity."),
    "code_range": Answer(422, 1007, "A code lies outside the codebook."),
    "setting": Answer(400, 1008, "A setting is unknown or outside its legal values."),
    "numeric_overflow": Answer(422, 1007, "The input drove the network out of range."),
    "snapshot": Answer(422, 1007, "The snapshot is damaged or of another model."),
    "audio_file": Answer(422, 1007, "The audio file cannot be read."),
    "codes_file": Answer(422, 1007, "The code file cannot be read."),
    "opus_data": Answer(422, 1007, "The bytes are no Opus packets, or no Ogg pages of them."),
    "checkpoint": Answer(422, 1007, "The checkpoint cannot be converted."),
    "output_exists": Answer(409, 1008, "The output exists already."),
    "session": Answer(409, 1008, "The session cannot take this call now."),
    "session_busy": Answer(409, 1008, "The session is busy."),
    "session_closed": Answer(409, 1008, "The session is closed."),
    "unavailable": Answer(501, 1008, "Not available on this machine or in this build."),
    "internal": Answer(500, 1011, "The service failed; please report."),
    "service": Answer(500, 1011, "The service failed."),
    "capacity": Answer(503, 1013, "Every place is taken; try again later."),
    "address_capacity": Answer(429, 1013, "Every place that one address may have is taken; try again later."),
    "handshake_rate": Answer(429, 1013, "Too many handshakes came from this address in too short a time."),
    "connections": Answer(503, 1013, "The service has as many connections as it may; try again later."),
    "address_connections": Answer(429, 1013, "This address has as many connections as one may; try again later."),
    "draining": Answer(503, 1012, "The service is restarting; try again."),
    "unauthorized": Answer(401, 1008, "The service asks for a key."),
    "token_expired": Answer(401, 1008, "The token has expired; get a new one."),
    "token_scope": Answer(403, 1008, "The token is not good for this path."),
    "forbidden_origin": Answer(403, 1008, "Pages of this origin may not use the service."),
    "protocol": Answer(400, 1008, "The message is malformed, unknown, or not legal now."),
    "wrong_kind": Answer(400, 1003, "The message is of the wrong kind, text or binary."),
    "payload": Answer(400, 1007, "The message is not whole samples or whole frames."),
    "message_too_big": Answer(413, 1009, "The message is too big."),
    "message_flood": Answer(429, 1008, "The message has too many fragments."),
    "control_rate": Answer(429, 1008, "Too many control messages came in too short a time."),
    "not_offered": Answer(501, 1008, "This build does not offer that part of the protocol."),
    "hello_timeout": Answer(408, 1008, "No settings came in time."),
    "idle_timeout": Answer(408, 1008, "Nothing was heard for too long."),
    "session_timeout": Answer(408, 1008, "The session lasted as long as one may."),
    "too_slow": Answer(408, 1008, "The client does not read what it is sent."),
    "overloaded": Answer(503, 1013, "The service has more to do than it can answer in time; try again later."),
    "resume_refused": Answer(403, 1008, "The resume token is not good, or no longer."),
    "resume_lost": Answer(410, 1008, "Answers that the resume needs are no longer held."),
    "taken_over": Answer(409, 1008, "The stream goes on over another connection."),
    "snapshot_store": Answer(503, 1013, "Snapshots cannot be read or written now; try again."),
    "request_timeout": Answer(408, 1008, "The request did not arrive in time."),
    "body_timeout": Answer(408, 1008, "The request body did not arrive in time."),
    "body_too_large": Answer(413, 1009, "The request body is too large."),
    "unsupported_media": Answer(415, 1003, "The Content-Type is not taken."),
    "not_acceptable": Answer(406, 1008, "Nothing named by Accept can be made."),
    "not_found": Answer(404, 1008, "No such path."),
    "method": Answer(405, 1008, "The path does not take this method."),
    "upgrade_required": Answer(426, 1008, "This address is for WebSocket only."),
}


def as_codec_error(error: BaseException) -> CodecError:
    """Return the error itself if it is of the tree; otherwise an ``internal`` one that names its class and hides its text."""
    if isinstance(error, CodecError):
        return error
    return InternalError("service", found=type(error).__name__)


def answer_for(error: CodecError) -> Answer:
    """Look up the row of an error. Never fails: a test holds the table and the tree together."""
    return STATUS_MAP[error.code]


def error_fields(error: CodecError) -> dict[str, object]:
    """Make the JSON object of the wire: ``code, reason, message, subject, found, expected[, retry_after_ms]``.

    Subject, found and expected may quote what a peer sent: each is cut at :data:`FACT_MAX_CHARS`, and can be sent as UTF-8.
    """
    subject, found, expected = (_sendable(fact) for fact in (error.subject, error.found, error.expected))
    fields: dict[str, object] = {
        "code": error.code,
        "reason": answer_for(error).reason,
        "message": str(CodecError(subject, found, expected)),
        "subject": subject,
        "found": found,
        "expected": expected,
    }
    retry_after_ms = getattr(error, "retry_after_ms", None)
    if retry_after_ms is not None:
        fields["retry_after_ms"] = retry_after_ms
    return fields


def _sendable(fact: str) -> str:
    """Shorten a fact, and escape the lone surrogates that UTF-8 has no bytes for."""
    if len(fact) > FACT_MAX_CHARS:
        fact = fact[:FACT_MAX_CHARS] + "..."
    return fact.encode("utf-8", "backslashreplace").decode()
