"""Every setting of the service, once: environment variables, command line options and defaults all come from this table."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ENVIRONMENT_PREFIX = "MIMI_"


class Settings(BaseSettings):
    """The service's settings; immutable. Each is also an environment variable: ``MIMI_`` and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on; beyond loopback only with --api-keys or --allow-remote.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    api_keys: str = Field("", repr=False, description="Keys of which clients must send one, comma-separated; none if empty.")
    api_keys_file: str = Field("", description="File of more such keys, one a line, plain or as sha256:HEX.")
    secret: str = Field(
        "", repr=False, description="Secret of 16 or more characters, the same in all replicas; made anew if empty."
    )
    token_lifetime_ms: int = Field(300_000, ge=1000, le=86_400_000, description="Longest time that a browser's token is good.")
    allow_remote: bool = Field(False, description="Listen beyond loopback although the service asks for no key.")
    trusted_proxies: str = Field("", description="Addresses or networks whose X-Forwarded-For is believed, comma-separated.")
    allowed_origins: str = Field("", description="Origins of browser pages that may connect, comma-separated; * for all.")
    cors_max_age_ms: int = Field(600_000, ge=0, description="Time that browsers may remember which pages are allowed.")
    tls_cert: str = Field("", description="Certificate chain, a PEM file; with --tls-key the service speaks HTTPS and WSS.")
    tls_key: str = Field("", description="Private key of the certificate, a PEM file without password.")

    model: str = Field("default", description="Model file, or the name of an installed model.")
    numerics: str | None = Field(None, description="Numerics to run under; absent, those of the model file.")
    threads: int | None = Field(None, ge=1, le=1024, description="Threads of one engine step; absent, the cores it may use.")
    ram_budget: str | None = Field(None, description="Most memory for weights, as 512MiB; absent, all of them stay.")
    language_model: str = Field("", description="Language model file, for streams of mode talk; without one there are none.")
    language_ram_budget: str | None = Field(
        None, description="Most memory for the language model's weights; absent, all of them stay."
    )
    workers: int = Field(1, ge=1, le=64, description="Batches that may run at the same time.")
    max_batch_sessions: int = Field(64, ge=1, le=4096, description="Most sessions in one batch.")

    gather_ms: float = Field(0, ge=0, le=80, description="Longest time that a frame is held back for others to join its batch.")

    admission: Literal["measured", "count"] = Field(
        "measured", description="What limits streams: measured speed too, or numbers."
    )
    max_latency_ms: int = Field(80, ge=1, description="Predicted time of the slowest frames up to which streams are let in.")
    max_sessions: int = Field(64, ge=1, le=65536, description="Streams at the same time.")
    max_talk_sessions: int = Field(
        8, ge=1, le=4096, description="Streams of mode talk at the same time, those that wait for their client too."
    )
    deny_handshakes: bool = Field(
        False, description="Refuse streams without a place by HTTP status, so that a proxy tries the next replica."
    )
    max_address_sessions: int = Field(32, ge=1, le=65536, description="Streams at the same time from one address.")
    max_address_handshakes_per_s: int = Field(50, ge=1, le=10_000, description="Stream handshakes of one address per second.")
    max_connections: int = Field(4_096, ge=2, le=1 << 20, description="Open TCP connections, idle ones too.")
    max_address_connections: int = Field(256, ge=1, le=1 << 20, description="Open TCP connections from one address.")
    request_timeout_ms: int = Field(10_000, ge=1, description="Time for the headers of a request to arrive.")
    max_conversions: int = Field(4, ge=1, le=4096, description="REST conversions at the same time.")
    retry_after_ms: int = Field(2_000, ge=1, description="What a client refused for lack of room is told to wait.")

    credit_frames: int = Field(25, ge=1, le=10_000, description="Frames of one stream that may wait for an answer.")
    max_message_bytes: int = Field(65_536, ge=1024, le=1 << 24, description="Most bytes in one WebSocket message.")
    max_queued_messages: int = Field(4_096, ge=16, description="Most unread messages of one connection.")
    max_messages_per_s: int = Field(1_000, ge=1, le=1_000_000, description="Messages that a stream is read at per second.")
    max_surplus_messages_per_s: int = Field(
        2_000, ge=1, le=1_000_000, description="Messages per second beyond the 100 of a live stream, for all streams."
    )
    max_control_messages_per_s: int = Field(50, ge=1, le=10_000, description="Control messages of one stream per second.")
    hello_timeout_ms: int = Field(5_000, ge=1, description="Time for the settings to come.")
    idle_timeout_ms: int = Field(60_000, ge=1, description="Time without a message after which a stream is ended.")
    session_timeout_ms: int = Field(604_800_000, ge=1, description="Longest time that a stream may last.")
    send_timeout_ms: int = Field(10_000, ge=1, description="Time for a client to read what it is sent.")
    lag_warning_ms: int = Field(1_000, ge=1, description="Wait for an answer from which a stream is warned.")
    ping_interval_ms: int = Field(20_000, ge=1, description="Time between WebSocket pings.")
    ping_timeout_ms: int = Field(20_000, ge=1, description="Silence after a ping from which the peer counts as dead.")
    lag_limit_ms: int = Field(10_000, ge=1, description="Wait for an answer from which a stream is ended.")
    max_pace: int = Field(4, ge=1, le=1000, description="Times real time that audio or codes are read at pace=real.")
    allow_free_pace: bool = Field(False, description="Let clients ask for pace=free, which is read as fast as it can be done.")
    drain_timeout_ms: int = Field(5_000, ge=0, description="Time that streams have to end when the service is stopped.")
    stop_timeout_ms: int = Field(15_000, ge=100, description="Time for the rest of the way down; then it is cut short.")

    snapshot_store: str = Field("", description="Directory or redis:// URL for snapshots of streams; needs the secret.")
    max_snapshot_store_bytes: int = Field(4 << 30, ge=1 << 20, description="Most bytes of snapshots in a directory.")
    checkpoint_interval_ms: int = Field(5_000, ge=1, description="Time between the snapshots of a stream.")
    resume_grace_ms: int = Field(60_000, ge=0, description="Time to resume a stream that lost its connection; 0: none can be.")
    replay_window_frames: int = Field(250, ge=1, le=1 << 20, description="Answers kept until the client says it has them.")
    replay_window_bytes: int = Field(4 << 20, ge=1024, description="The same in bytes.")
    max_parked_sessions: int = Field(64, ge=0, le=65536, description="Streams that may wait for their client to come back.")

    max_body_bytes: int = Field(64 << 20, ge=1024, description="Most bytes in one REST body.")
    spool_memory_bytes: int = Field(1 << 20, ge=0, description="Bytes of one REST body or answer kept in memory, not on disk.")
    max_spool_bytes: int = Field(1 << 30, ge=1024, description="Most bytes of all REST bodies and answers at the same time.")
    max_clip_ms: int = Field(3_600_000, ge=80, le=86_400_000, description="Longest audio of one REST conversion.")
    body_timeout_ms: int = Field(60_000, ge=1, description="Time for a REST body to arrive.")

    moshi_rooms: str = Field("", description="Rooms for clients of moshi-server's Mimi module, comma-separated; off if empty.")
    moshi_send_path: str = Field("/api/mimi/send", pattern="^/", description="Where those clients send codes.")
    moshi_recv_path: str = Field("/api/mimi/recv", pattern="^/", description="Where those clients listen.")

    audit_interval_ms: int = Field(10_000, ge=10, description="Time between two looks of the watchdog for places left taken.")
    tracing: Literal["off", "otel"] = Field("off", description="Traces of sessions by OpenTelemetry, as OTEL_* variables say.")
    log_format: Literal["console", "json"] = Field("console", description="How a logged line looks.")
    log_level: Literal["critical", "error", "warning", "info", "debug"] = Field("info", description="Least level logged.")

    @property
    def origin_allow_list(self) -> tuple[str, ...]:
        """The allowed origins, one by one."""
        return _split(self.allowed_origins)

    @property
    def asks_for_key(self) -> bool:
        """Whether clients must send a key."""
        return bool(self.api_key_list or self.api_keys_file)

    @property
    def trusted_proxy_list(self) -> tuple[str, ...]:
        """The trusted proxies, one by one."""
        return _split(self.trusted_proxies)

    @property
    def moshi_room_list(self) -> tuple[str, ...]:
        """The rooms, one by one; the first is that of clients which name none."""
        return _split(self.moshi_rooms)

    @property
    def moshi_paths(self) -> tuple[str, ...]:
        """Where clients of moshi-server connect; nowhere without rooms."""
        return (self.moshi_send_path, self.moshi_recv_path) if self.moshi_room_list else ()

    @property
    def api_key_list(self) -> tuple[str, ...]:
        """The keys, one by one."""
        return _split(self.api_keys)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
