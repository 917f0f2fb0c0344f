"""Networks that are late and stand still: what the loudspeaker gets has no clicks."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile

TONE_HZ = 220
AMPLITUDE = 9_000
LATE_SHARE = 0.2
LATE_S = 0.2
STALL_S = 0.5


@pytest.fixture
def tone(tmp_path):
    """A tone has a steepest step of its own; whatever is steeper is a click."""
    samples = AMPLITUDE * np.sin(2 * np.pi * TONE_HZ * np.arange(24_000 * 5) / 24_000)
    soundfile.write(tmp_path / "tone.wav", samples.astype("<i2"), 24_000)
    return tmp_path / "tone.wav"


class Shaky:
    """A proxy that passes everything on, in order, and of what the server sends much too late."""

    def __init__(self, port: int, delay_s) -> None:
        self.port = 0
        self._inner_port = port
        self._delay_s = delay_s

    @contextlib.asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _connected(self, reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner_port)
        await asyncio.gather(self._pump(reader, inner_writer, False), self._pump(inner_reader, writer, True))

    async def _pump(self, reader, writer, is_late):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if is_late:
                    await asyncio.sleep(self._delay_s())
                writer.write(data)
                await writer.drain()
        writer.close()


def jitter(rng):
    return lambda: LATE_S * rng.random() if rng.random() < LATE_SHARE else 0.0


def stalls(_rng):
    """Nothing for half a second, every two seconds or so."""
    started_s = asyncio.get_running_loop().time()
    stalled = set()

    def delay_s():
        turn = int((asyncio.get_running_loop().time() - started_s) / 2)
        if turn == 0 or turn in stalled:
            return 0.0
        stalled.add(turn)
        return STALL_S

    return delay_s


@pytest.mark.parametrize(("rate_hz", "network"), [(44_100, jitter), (48_000, stalls)])
async def test_nothing_clicks(service, open_page, tone, rng, rate_hz, network):  # noqa: PLR0917
    async with Shaky(urlsplit(service.url).port, network(rng)).running() as proxy:
        page = await open_page(service, rate_hz=rate_hz, listening=True, address=f"http://127.0.0.1:{proxy.port}/")
        await page.open_file(tone)
        await page.until_state("live")
        await page.choose("input")
        await page.until_state("take")
    heard = await page.heard()
    report = await page.get("mimi.playerReport")
    assert report["playedSamples"] + report["skippedSamples"] >= 5 * rate_hz - 1
    if network is stalls:
        assert report["underruns"] >= 1, "a network that did not stall"
    assert np.abs(heard).max() > 0.9 * AMPLITUDE
    step = np.abs(np.diff(heard)).max()
    curve = 2 * AMPLITUDE * np.sin(np.pi * TONE_HZ / rate_hz)
    # A fade of 5 ms, or a cross-fade to another place of the tone, is steeper than the tone, and no click.
    allowed = 2.2 * curve + AMPLITUDE * np.pi / (2 * 0.005 * rate_hz)
    assert step <= allowed, f"a step of {step:.0f}, at most {allowed:.0f} without a click; {report}"


def test_the_detector_hears_a_click():
    samples = AMPLITUDE * np.sin(2 * np.pi * TONE_HZ * np.arange(9_000) / 48_000)
    samples[5_073:5_400] = 0
    curve = 2 * AMPLITUDE * np.sin(np.pi * TONE_HZ / 48_000)
    assert np.abs(np.diff(samples)).max() > 2.2 * curve + AMPLITUDE * np.pi / (2 * 0.005 * 48_000)
