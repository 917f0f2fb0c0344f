"""Several replicas behind the proxies of deploy/proxy, with one store: what is promised of more than one machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import numpy as np
import pytest

from codec_core.client import LineOptions, RemoteError, Stream, StreamSettings
from codec_core.clip import encode_clip
from tests.e2e.certificate import make_certificate
from tests.e2e.proxies import COMMANDS, running_proxy

LEVELS = 8
STREAMS = 9
CHUNK_SAMPLES = 1_000
HALF_SAMPLES = 36_000
OPTIONS = LineOptions(first_delay_ms=20, longest_delay_ms=300, give_up_ms=60_000)
REPLICA = ("--drain-timeout-ms", "300", "--retry-after-ms", "50", "--deny-handshakes", "--max-address-sessions", "100")


WAIT_FOR_PLACE_MS = {"nginx": 0, "envoy": 30_000}
"""nginx asks the next replica itself; Envoy tries a handshake once, and the client again."""


@pytest.fixture(params=COMMANDS)
def proxy_name(request) -> str:
    return request.param


@pytest.fixture
def proxy(proxy_name, tmp_path, monkeypatch):
    """``with proxy(services) as (url, log)``; clients of this test trust its certificate."""
    certificate = make_certificate(tmp_path, "proxy")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    return lambda services: running_proxy(proxy_name, tmp_path, [port_of(one) for one in services], certificate)


def port_of(service) -> int:
    return int(service.url.rpartition(":")[2])


async def streams_of(service) -> int:
    async with httpx.AsyncClient(base_url=service.url) as http:
        return (await http.get("/v1/info")).json()["load"]["streams"]


async def until_streams(services, count: int) -> None:
    """Wait until these replicas carry so many streams together."""
    for _ in range(1200):
        if sum([await streams_of(one) for one in services]) == count:
            return
        await asyncio.sleep(0.05)
    raise AssertionError([await streams_of(one) for one in services])


class Talker:
    """One stream of the library's client: half of its input, a pause of any length, and the rest."""

    def __init__(self, samples: np.ndarray, go_on: asyncio.Event) -> None:
        self.samples = samples
        self.codes: list[np.ndarray] = []
        self.has_half = asyncio.Event()
        self._go_on = go_on

    async def talk(self, stream: Stream) -> None:
        async for frame in stream.run(self._source()):
            assert frame.codes is not None
            self.codes.append(frame.codes)
            if len(self.codes) >= HALF_SAMPLES // 1920 - 1:
                self.has_half.set()

    async def _source(self) -> AsyncIterator[np.ndarray]:
        for first in range(0, len(self.samples), CHUNK_SAMPLES):
            if first == HALF_SAMPLES:
                await self._go_on.wait()
            yield self.samples[first : first + CHUNK_SAMPLES]


@contextlib.asynccontextmanager
async def talking(url: str, speech: np.ndarray, go_on: asyncio.Event) -> AsyncIterator[tuple[list[Talker], list[asyncio.Task]]]:
    """Open the streams one after another and have all of them talk."""
    talkers = [Talker(np.roll(speech, 997 * index), go_on) for index in range(STREAMS)]
    async with contextlib.AsyncExitStack() as stack:
        tasks = []
        for talker in talkers:
            stream = await stack.enter_async_context(Stream(url, StreamSettings(levels=LEVELS), OPTIONS))
            tasks.append(asyncio.create_task(talker.talk(stream)))
        yield talkers, tasks


async def test_streams_outlive_a_drained_and_a_killed_replica(proxy, replica, redis_url, tiny_model, speech):
    services = [replica(*REPLICA, "--snapshot-store", redis_url) for _ in range(3)]
    drained, killed, last = services
    go_on = asyncio.Event()
    with proxy(services) as (url, _):
        async with talking(url, speech, go_on) as (talkers, tasks):
            assert [await streams_of(one) for one in services] == [STREAMS // 3] * 3
            await asyncio.gather(*(talker.has_half.wait() for talker in talkers))
            drained.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(drained.process.wait, 60) == 0
            await until_streams([killed, last], STREAMS)
            killed.process.kill()
            killed.process.wait()
            await until_streams([last], STREAMS)
            go_on.set()
            await asyncio.wait_for(asyncio.gather(*tasks), 60)
    for talker in talkers:
        assert np.array_equal(np.array(talker.codes).T, encode_clip(tiny_model, talker.samples, LEVELS))
    assert "Traceback" not in drained.log + killed.log + last.log


async def test_a_replica_without_a_place_is_passed_over(proxy, proxy_name, replica):
    full, roomy = (replica(*REPLICA, "--max-sessions", places) for places in ("1", "3"))
    options = replace(OPTIONS, wait_for_place_ms=WAIT_FOR_PLACE_MS[proxy_name])
    with proxy([full, roomy]) as (url, _):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(4):
                await stack.enter_async_context(Stream(url, StreamSettings(levels=1), options))
            assert [await streams_of(full), await streams_of(roomy)] == [1, 3]
            with pytest.raises(RemoteError) as refusal:
                await stack.enter_async_context(Stream(url, StreamSettings(levels=1), OPTIONS))
            assert refusal.value.code == "capacity"


async def test_whole_clips_pass_and_what_is_the_operators_does_not(proxy, replica, tiny_model, speech):
    service = replica(*REPLICA)
    with proxy([service]) as (url, log):
        trust = ssl.create_default_context()
        async with httpx.AsyncClient(base_url=url, verify=trust, timeout=60) as http:
            query = f"/v1/encode?levels={LEVELS}&token=not-for-the-log"
            answer = await http.post(query, content=speech.tobytes(), headers={"content-type": "application/octet-stream"})
            assert answer.status_code == 200, answer.text
            codes = np.array(answer.json()["codes"], np.int32)
            assert np.array_equal(codes, encode_clip(tiny_model, speech, LEVELS))
            assert (await http.get("/metrics")).status_code == 404
            assert (await http.get("/readyz")).status_code == 200
        for _ in range(100):
            if "/v1/encode" in log.read_text():
                break
            await asyncio.sleep(0.05)
        assert "/v1/encode" in log.read_text()
        assert "not-for-the-log" not in log.read_text()
