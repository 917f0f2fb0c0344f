"""What the endpoints share: settings, model, places, executor. Made once by :func:`server.app.create_app`."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

import numpy as np
from starlette.requests import HTTPConnection

from codec_core import CodecModel
from codec_core.errors import CodecError, InternalError
from server.codec_executor import CodecExecutor
from server.session_registry import SessionRegistry
from server.settings import Settings
from server.spool import SpoolBudget
from server.wire_settings import Offer

SELF_TEST_SEED = 24_000


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
    self_test: str = "not run"
    """``passed`` once the model has shown that it works on this machine, else why it has not."""

    @property
    def ready(self) -> bool:
        """Whether new work is taken."""
        return self.self_test == "passed" and not self.registry.draining


def build_service(settings: Settings, model: CodecModel) -> Service:
    """Put the parts together; nothing runs yet."""
    info = model.info
    return Service(
        settings=settings,
        model=model,
        registry=SessionRegistry(
            max_sessions=settings.max_sessions,
            max_conversions=settings.max_conversions,
            retry_after_ms=settings.retry_after_ms,
        ),
        executor=CodecExecutor(model, workers=settings.workers, max_batch=settings.max_batch_sessions),
        offer=Offer(
            default_levels=info.default_levels,
            max_levels=info.levels,
            codebook_entries=info.codebook_entries,
            frame_samples=info.frame_samples,
            sample_rate_hz=info.sample_rate_hz,
            numerics=info.numerics,
        ),
        spool_budget=SpoolBudget(settings.max_spool_bytes, settings.retry_after_ms),
    )


def service_of(connection: HTTPConnection) -> Service:
    """Find the service that a request or a WebSocket belongs to."""
    service: Service = connection.app.state.service
    return service


def version() -> str:
    """Look up the installed version."""
    return importlib.metadata.version("mimi-server")


async def run_self_test(service: Service) -> None:
    """Encode and decode one frame of noise, alone and in a batch, and compare; the outcome is in ``service.self_test``."""
    model, executor = service.model, service.executor
    pcm = np.random.default_rng(SELF_TEST_SEED).uniform(-0.5, 0.5, model.info.frame_samples).astype(np.float32)
    encoders = [model.encoder() for _ in range(2)]
    decoders = [model.decoder() for _ in range(2)]
    try:
        alone = await executor.encode(encoders[0], pcm)
        codes = model.encode_batch([encoders[1], model.encoder()], np.stack([pcm, pcm]))
        sound = await executor.decode(decoders[0], alone)
        sounds = model.decode_batch([decoders[1], model.decoder()], np.stack([alone, alone]))
        if not (np.array_equal(codes[0], alone) and np.array_equal(codes[1], alone)):
            raise InternalError("self-test", found="codes that depend on the batch", expected="the same codes")
        if not np.array_equal(sounds[0], sound) or not np.isfinite(sound).all():
            raise InternalError("self-test", found="samples that depend on the batch", expected="the same samples")
        service.self_test = "passed"
    except CodecError as error:
        service.self_test = str(error)
