"""What the endpoints share: settings, model, places, executor, metrics. Made once by :func:`server.app.create_app`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import HTTPConnection

from codec_core import CodecModel, opus
from codec_core.window import WindowStats
from server.admission import Admission, Demand, demand_of
from server.calibration import calibrate
from server.codec_executor import CodecExecutor
from server.errors import CapacityError
from server.language import Language, TalkingEngine
from server.live_streams import LiveStreams
from server.metrics import Metrics
from server.rate_limit import HandshakeGate
from server.readiness import OK, Readiness
from server.self_test import PASSED, run_language_self_test, run_self_test
from server.session_registry import SessionRegistry
from server.settings import Settings
from server.spool import SpoolBudget
from server.step_cost import StepCost
from server.store_choice import store_for
from server.stream_maker import StreamMaker
from server.watchdog import Watchdog
from server.wire_settings import Offer, StreamSettings

WINDOW_GAUGES: Final[dict[str, Callable[[WindowStats], float]]] = {
    "mimi_window_read_bytes": lambda stats: stats.bytes_read,
    "mimi_window_hits": lambda stats: stats.hits,
    "mimi_window_stalls": lambda stats: stats.stalls,
    "mimi_window_stall_seconds": lambda stats: stats.stall_ms / 1000,
    "mimi_window_failed_loads": lambda stats: stats.failed_loads,
    "mimi_window_resident_bytes": lambda stats: stats.resident_bytes,
    "mimi_window_streamed_bytes": lambda stats: stats.streamed_bytes,
    "mimi_window_major_faults": lambda stats: stats.major_faults,
}


class ClientGoneError(Exception):
    """The client hung up: there is nobody left to answer, so this never reaches the wire."""


@dataclass
class Service:
    """One running service."""

    settings: Settings
    model: CodecModel
    registry: SessionRegistry
    executor: CodecExecutor
    offer: Offer
    spool_budget: SpoolBudget
    streams: LiveStreams
    admission: Admission
    metrics: Metrics
    readiness: Readiness
    watchdog: Watchdog
    gate: HandshakeGate
    language: Language | None = None
    """For streams of mode ``talk``; None where there are none."""
    self_test: str = "not run"
    """``passed`` once the model has shown that it works on this machine, else why it has not."""
    golden_codes: str = "not compared"
    """How the model's answers in the self-test compare with those that are known of it."""

    @property
    def ready(self) -> bool:
        """Whether new work is taken."""
        return self.readiness.ready

    def demand(self, settings: StreamSettings) -> Demand:
        """Say what a stream of these settings asks of the engine."""
        own_levels = 0 if self.offer.language is None else self.offer.language.own_levels
        return demand_of(settings.mode, settings.levels, own_levels)

    def require_room_to_talk(self, settings: StreamSettings) -> None:
        """Refuse a stream of mode ``talk`` beyond the number there may be: each holds a conversation's whole past.

        Raises:
            CapacityError: there are as many.

        """
        most = self.settings.max_talk_sessions
        if settings.mode == "talk" and self.streams.talking >= most:
            found = f"{self.streams.talking} of {most} taken"
            raise CapacityError("talk sessions", found, "a free one", retry_after_ms=self.settings.retry_after_ms)


def build_service(settings: Settings, model: CodecModel, language: Language | None = None) -> Service:
    """Put the parts together; nothing runs yet."""
    metrics, cost, offer = Metrics(), StepCost(), _offer(settings, model, language)
    admission = _admission(settings, cost)
    executor = CodecExecutor(
        model if language is None else TalkingEngine(model, language.model),
        cost,
        workers=settings.workers,
        max_batch=settings.max_batch_sessions,
        gather_ms=settings.gather_ms,
        observers=(metrics, admission),
    )
    registry = _registry(settings, admission, metrics)
    state_bytes = 0 if language is None else language.model.info.state_bytes
    service = Service(
        settings=settings,
        model=model,
        registry=registry,
        executor=executor,
        offer=offer,
        spool_budget=SpoolBudget(settings.max_spool_bytes, settings.retry_after_ms),
        streams=LiveStreams(settings, StreamMaker(model, executor, language), offer, store_for(settings, model, state_bytes)),
        admission=admission,
        metrics=metrics,
        readiness=Readiness(),
        watchdog=Watchdog(registry, executor, metrics, interval_ms=settings.audit_interval_ms),
        gate=HandshakeGate(settings.max_address_handshakes_per_s),
        language=language,
    )
    _register_checks(service)
    _describe(service)
    return service


def _admission(settings: Settings, cost: StepCost) -> Admission:
    return Admission(
        settings.admission,
        cost,
        workers=settings.workers,
        most_latency_ms=settings.max_latency_ms,
        retry_after_ms=settings.retry_after_ms,
    )


def _registry(settings: Settings, admission: Admission, metrics: Metrics) -> SessionRegistry:
    return SessionRegistry(
        admission,
        metrics,
        max_sessions=settings.max_sessions,
        max_address_sessions=settings.max_address_sessions,
        max_conversions=settings.max_conversions,
        retry_after_ms=settings.retry_after_ms,
    )


def _offer(settings: Settings, model: CodecModel, language: Language | None) -> Offer:
    info = model.info
    return Offer(
        default_levels=info.default_levels,
        max_levels=info.levels,
        codebook_entries=info.codebook_entries,
        frame_samples=info.frame_samples,
        sample_rate_hz=info.sample_rate_hz,
        numerics=info.numerics,
        free_pace=settings.allow_free_pace,
        opus=opus.is_installed(),
        language=None if language is None else language.offer(),
    )


def _register_checks(service: Service) -> None:
    usual = demand_of("encode", service.offer.default_levels)
    service.readiness.register("self_test", lambda: None if service.self_test == PASSED else service.self_test)
    service.readiness.register("draining", lambda: "the service is going down" if service.registry.draining else None)
    service.readiness.register("headroom", lambda: service.admission.refusal(usual))
    service.readiness.register("engine", service.watchdog.stuck_step)
    if service.streams.checkpoints.store is not None:
        service.readiness.register("snapshot_store", lambda: service.streams.checkpoints.problem)


def _describe(service: Service) -> None:
    """Give the metrics what they ask for."""
    metrics, info, admission = service.metrics, service.model.info, service.admission
    facts = (info.weight_class, info.numerics, info.isa, str(info.threads), str(service.settings.workers))
    names = ("weight_class", "numerics", "isa", "threads", "workers")
    metrics.describe(version=version(), model=info.name, sha256=info.sha256, **dict(zip(names, facts, strict=True)))
    _describe_language(service)
    metrics.observe("mimi_sessions", lambda: service.registry.count("stream"), kind="stream")
    metrics.observe("mimi_sessions", lambda: service.registry.count("conversion"), kind="conversion")
    metrics.observe("mimi_waiting_frames", lambda: service.executor.waiting_frames)
    metrics.observe("mimi_queued_frames", lambda: service.registry.queued_frames)
    metrics.observe("mimi_unsent_bytes", lambda: service.registry.unsent_bytes)
    metrics.observe("mimi_parked_sessions", lambda: service.streams.parked)
    metrics.observe("mimi_engine_sessions", lambda: service.executor.known_sessions)
    metrics.observe("mimi_realtime_headroom", lambda: admission.load().headroom)
    metrics.observe("mimi_predicted_latency_seconds", lambda: admission.load().predicted_latency_s)
    metrics.observe("mimi_late_share", lambda: admission.late_share)
    metrics.observe("mimi_session_capacity", lambda: stream_capacity(service))
    for name, fact in WINDOW_GAUGES.items():
        metrics.observe(name, partial(_window_fact, service.model, fact))


def _describe_language(service: Service) -> None:
    if service.language is not None:
        info = service.language.model.info
        facts = {"sha256": info.sha256, "weight_class": info.weight_class, "isa": info.isa, "threads": str(info.threads)}
        service.metrics.describe_language_model(model=info.name, **facts)


def _window_fact(model: CodecModel, fact: Callable[[WindowStats], float]) -> float:
    """Read one counter of the tensor window; 0 where all weights are resident."""
    stats = model.window_stats
    return 0.0 if stats is None else fact(stats)


def stream_capacity(service: Service) -> int:
    """Count the encoding streams of default levels that the machine can hold, as measured."""
    return service.admission.most_streams(demand_of("encode", service.offer.default_levels), service.settings.max_sessions)


def metrics_text(service: Service) -> bytes:
    """Return all metrics, the checks of readiness asked just now."""
    for name, result in service.readiness.results().items():
        service.metrics.set_ready(name, passed=result == OK)
    return service.metrics.text()


async def start_service(service: Service) -> None:
    """Test the model, measure it, and begin to watch."""
    service.self_test, service.golden_codes = await run_self_test(service.executor, service.model)
    if service.self_test == PASSED and service.language is not None:
        service.self_test = await run_language_self_test(service.executor, service.language.model)
    if service.self_test == PASSED and service.settings.admission == "measured":
        await calibrate(service.executor, service.model, None if service.language is None else service.language.model)
    service.watchdog.start()
    service.streams.start()


async def stop_service(service: Service) -> None:
    """Let go of the streams, watch no more, and wait for the frames in the engine."""
    await service.streams.close()
    await service.watchdog.stop()
    service.executor.close()


def service_of(connection: HTTPConnection) -> Service:
    """Find the service that a request or a WebSocket belongs to."""
    service: Service = connection.app.state.service
    return service


def version() -> str:
    """Look up the installed version."""
    return importlib.metadata.version("mimi-server")
