"""The service's branch of the error tree of :mod:`codec_core.errors`.

::

    CodecError
    └── ServiceError
        ├── CapacityError           capacity            every place of this kind is taken
        ├── AddressCapacityError    address_capacity    every place that one address may have is taken
        ├── HandshakeRateError      handshake_rate      more handshakes from one address than it may make
        ├── ConnectionsError        connections         as many connections as the service may have
        ├── AddressConnectionsError address_connections as many connections as one address may have
        ├── DrainingError           draining            the service is going down and takes nothing new
        ├── UnauthorizedError       unauthorized        no key, or an unknown one, where one is asked for
        ├── TokenExpiredError       token_expired       a token that was good until a while ago
        ├── TokenScopeError         token_scope         a token for another part of the service
        ├── ForbiddenOriginError    forbidden_origin    a browser page of another origin
        ├── ProtocolError           protocol            a message that is malformed, unknown or illegal now
        ├── WrongKindError          wrong_kind          text where binary is due, or the other way round
        ├── PayloadError            payload             a binary message that is not whole samples or whole frames
        ├── MessageTooBigError      message_too_big     a WebSocket message above the limit
        ├── MessageFloodError       message_flood       more fragments of one message than a session may have waiting
        ├── ControlRateError        control_rate        more flush, reset and ping messages than a session may send
        ├── NotOfferedError         not_offered         a part of the protocol that this build does not offer
        ├── HelloTimeoutError       hello_timeout       no settings within the time for them
        ├── IdleTimeoutError        idle_timeout        nothing heard for too long
        ├── SessionTimeoutError     session_timeout     the longest time a session may last is over
        ├── TooSlowError            too_slow            the peer does not read what it is sent
        ├── OverloadedError         overloaded          the service is too late with its answers
        ├── ResumeRefusedError      resume_refused      a resume token that is not good, or no longer
        ├── ResumeLostError         resume_lost         a resume that needs answers which are no longer held
        ├── TakenOverError          taken_over          the stream goes on over another connection
        ├── SnapshotStoreError      snapshot_store      snapshots cannot be read or written now
        ├── RequestTimeoutError     request_timeout     a request that does not arrive in time
        ├── BodyTimeoutError        body_timeout        a request body that does not arrive in time
        ├── BodyTooLargeError       body_too_large      a request body, or the clip in it, above the limit
        ├── UnsupportedMediaError   unsupported_media   a Content-Type that is not taken
        ├── NotAcceptableError      not_acceptable      an Accept that names nothing that can be made
        ├── NotFoundError           not_found           no such path
        ├── MethodError             method              a path that does not take this method
        └── UpgradeRequiredError    upgrade_required    a plain request where a WebSocket handshake is due

Every class has one row in :mod:`server.status_map`, where its HTTP status and its WebSocket close code are.
"""

from __future__ import annotations

from codec_core.errors import CodecError


class ServiceError(CodecError):
    """Root of the service's branch.

    ``retry_after_ms`` is set where trying again later makes sense; it goes out in the error body and as ``Retry-After``.
    """

    code = "service"

    def __init__(self, subject: str, found: str = "", expected: str = "", *, retry_after_ms: int | None = None) -> None:
        super().__init__(subject, found, expected)
        self.retry_after_ms = retry_after_ms


class CapacityError(ServiceError):
    """Every place of this kind is taken."""

    code = "capacity"


class AddressCapacityError(ServiceError):
    """Every place that one address may have is taken."""

    code = "address_capacity"


class HandshakeRateError(ServiceError):
    """More handshakes from one address than it may make."""

    code = "handshake_rate"


class ConnectionsError(ServiceError):
    """As many connections as the service may have."""

    code = "connections"


class AddressConnectionsError(ServiceError):
    """As many connections as one address may have."""

    code = "address_connections"


class DrainingError(ServiceError):
    """The service is going down and takes nothing new."""

    code = "draining"


class UnauthorizedError(ServiceError):
    """No key, or an unknown one, where one is asked for."""

    code = "unauthorized"


class TokenExpiredError(ServiceError):
    """A token that was good until a while ago."""

    code = "token_expired"


class TokenScopeError(ServiceError):
    """A token for another part of the service."""

    code = "token_scope"


class ForbiddenOriginError(ServiceError):
    """A browser page of another origin, which is not on the allow-list."""

    code = "forbidden_origin"


class ProtocolError(ServiceError):
    """A message that is malformed, unknown, or illegal in the state the session is in."""

    code = "protocol"


class WrongKindError(ServiceError):
    """Text where binary is due, or the other way round."""

    code = "wrong_kind"


class PayloadError(ServiceError):
    """A binary message that is not whole samples or whole frames of codes."""

    code = "payload"


class MessageTooBigError(ServiceError):
    """A WebSocket message above the limit."""

    code = "message_too_big"


class MessageFloodError(ServiceError):
    """More fragments of one message than a session may have waiting."""

    code = "message_flood"


class ControlRateError(ServiceError):
    """More ``flush``, ``reset`` and ``ping`` messages than a session may send."""

    code = "control_rate"


class NotOfferedError(ServiceError):
    """A part of the protocol that this build does not offer."""

    code = "not_offered"


class HelloTimeoutError(ServiceError):
    """No settings within the time for them."""

    code = "hello_timeout"


class IdleTimeoutError(ServiceError):
    """Nothing heard for too long."""

    code = "idle_timeout"


class SessionTimeoutError(ServiceError):
    """The longest time that a session may last is over."""

    code = "session_timeout"


class TooSlowError(ServiceError):
    """The peer does not read what it is sent."""

    code = "too_slow"


class OverloadedError(ServiceError):
    """The service is too late with its answers."""

    code = "overloaded"


class ResumeRefusedError(ServiceError):
    """A resume token that is not good, or no longer."""

    code = "resume_refused"


class ResumeLostError(ServiceError):
    """A resume that needs answers which are no longer held."""

    code = "resume_lost"


class TakenOverError(ServiceError):
    """The stream goes on over another connection."""

    code = "taken_over"


class SnapshotStoreError(ServiceError):
    """Snapshots cannot be read or written now."""

    code = "snapshot_store"


class RequestTimeoutError(ServiceError):
    """A request that does not arrive in time."""

    code = "request_timeout"


class BodyTimeoutError(ServiceError):
    """A request body that does not arrive in time."""

    code = "body_timeout"


class BodyTooLargeError(ServiceError):
    """A request body, or the clip in it, above the limit."""

    code = "body_too_large"


class UnsupportedMediaError(ServiceError):
    """A ``Content-Type`` that is not taken."""

    code = "unsupported_media"


class NotAcceptableError(ServiceError):
    """An ``Accept`` that names nothing that can be made."""

    code = "not_acceptable"


class NotFoundError(ServiceError):
    """No such path."""

    code = "not_found"


class MethodError(ServiceError):
    """A path that does not take this method."""

    code = "method"


class UpgradeRequiredError(ServiceError):
    """A plain request where a WebSocket handshake is due."""

    code = "upgrade_required"
