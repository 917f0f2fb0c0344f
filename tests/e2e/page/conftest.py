"""A real browser, Debian's Chromium, in front of a real service; the microphone is a file.

Skipped where playwright or Chromium is missing, unless ``MIMI_REQUIRE_BROWSER`` is set: then that is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import soundfile

from codec_core.pcm import PcmIntake
from server.wire_messages import KIND_CODES, KIND_PCM, unpack_frame

CHROMIUM = os.environ.get("MIMI_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MICROPHONES = {
    "file": "--use-fake-device-for-media-stream --use-fake-ui-for-media-stream --use-file-for-fake-audio-capture={path}%noloop",
    "denied": "--use-fake-device-for-media-stream",
    "of the machine": "--use-fake-ui-for-media-stream",
}
WAIT_S = 20
# Stands in for hardware of a certain rate.
HARDWARE = """
globalThis.AudioContext = class extends AudioContext {
  constructor(options = {}) {
    super({ ...options, sampleRate: options.sampleRate ?? RATE_HZ });
  }
};
"""
# Hears what the player gives to the loudspeaker. The page's policy would not let it in; it is set aside where this is used.
RECORDER = """
{
  const source = `registerProcessor('recorder', class extends AudioWorkletProcessor {
    process([[samples]]) {
      samples && this.port.postMessage(Array.from(samples, (value) => value * 32768));
      return true;
    }
  });`;
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  const { addModule } = Worklet.prototype;
  Worklet.prototype.addModule = async function (wanted) {
    await addModule.call(this, url);
    return addModule.call(this, wanted);
  };
  const PlainNode = AudioWorkletNode;
  globalThis.heard = [];
  globalThis.AudioWorkletNode = class extends PlainNode {
    constructor(context, name, options) {
      super(context, name, options);
      if (name === 'mimi-player') {
        const recorder = new PlainNode(context, 'recorder');
        recorder.port.onmessage = ({ data }) => heard.push(...data);
        this.connect(recorder).connect(context.destination);
      }
    }
  };
}
"""


class OpenPage:
    """The page in a tab, what it said to the server and what it heard."""

    def __init__(self, tab: Any, url: str) -> None:
        self.tab = tab
        self.url = url
        self.complaints: list[str] = []
        self.requested: set[str] = set()
        self.stream_url = ""
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.texts: list[dict[str, Any]] = []
        tab.on(
            "console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", lambda request: self.requested.add(request.url))
        tab.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        self.requested.add(socket.url)
        self.stream_url = socket.url
        self.sent, self.received, self.texts = [], [], []
        socket.on("framesent", lambda data: self.sent.append(data) if isinstance(data, bytes) else None)
        socket.on("framereceived", self._sort)

    def _sort(self, data: bytes | str) -> None:
        if isinstance(data, str):
            self.texts.append(json.loads(data))
        else:
            self.received.append(data)

    async def get(self, expression: str) -> Any:
        return await self.tab.evaluate(expression)

    async def until(self, condition: str) -> None:
        """Wait for a condition; playwright's own way to wait needs ``eval``, which the page's policy forbids."""
        deadline_s = asyncio.get_running_loop().time() + WAIT_S
        while not await self.get(condition):
            assert asyncio.get_running_loop().time() < deadline_s, f"not {condition}:\n" + await self.tab.inner_text("main")
            await asyncio.sleep(0.02)

    async def until_state(self, state: str) -> None:
        await self.until(f"mimi.state === '{state}'")

    async def text(self, selector: str) -> str:
        return str(await self.tab.inner_text(selector))

    async def press_button(self, name: str) -> None:
        await self.tab.get_by_role("button", name=name, exact=True).click()

    async def choose_file(self, path: Path) -> None:
        await self.tab.set_input_files("#file", path)

    async def run_file(self, path: Path) -> None:
        await self.choose_file(path)
        await self.press_button("Start")
        await self.until_state("idle")

    async def refusal(self) -> tuple[str, str]:
        """Return the code and the words of the refusal that is shown, waiting for one."""
        await self.until("mimi.refusal !== ''")
        return await self.get("mimi.refusal"), await self.text("#refusal")

    async def codes(self) -> np.ndarray[Any, Any]:
        """Return the codes that the page shows, [levels, frames]."""
        return np.array(await self.get("mimi.codes"), np.int32).T

    async def heard(self) -> np.ndarray[Any, Any]:
        """Return what the player gave out, 16 bits."""
        return np.array(await self.get("heard"))

    def settings(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.stream_url).query).items()}

    def received_payloads(self, kind: int) -> bytes:
        return b"".join(payload for header, payload in map(unpack_frame, self.received) if header.kind == kind)

    def received_codes(self) -> np.ndarray[Any, Any]:
        codes = np.frombuffer(self.received_payloads(KIND_CODES), "<u2").astype(np.int32)
        return codes.reshape(-1, int(self.settings()["levels"])).T

    def received_pcm(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.received_payloads(KIND_PCM), "<i2")

    def expected_codes(self, model: Any) -> np.ndarray[Any, Any]:
        """Encode what the page sent, by the library."""
        settings = self.settings()
        intake = PcmIntake(int(settings["sample_rate"]), int(settings["channels"]), "int16")
        encoder = model.encoder(int(settings["levels"]))
        samples = [np.frombuffer(data, "<i2") for data in self.sent]
        shaped = [each.reshape(-1, intake.channels) if intake.channels > 1 else each for each in samples]
        parts = [encoder.push(intake.push(each)) for each in shaped]
        return np.concatenate([*parts, encoder.push(intake.flush()), encoder.flush()], axis=1)


@pytest.fixture
async def open_page(tmp_path: Path, speech: np.ndarray[Any, Any]) -> AsyncIterator[Callable[..., Any]]:
    """``await open_page(service)``: the page, loaded; at the end it must have had nothing to complain of."""
    playwright_api = _playwright()
    pages: list[OpenPage] = []
    async with contextlib.AsyncExitStack() as stack:
        playwright = await stack.enter_async_context(playwright_api.async_playwright())

        async def launch(
            service: Any,
            *flags: str,
            rate_hz: int = 0,
            listening: bool = False,
            microphone: str = "file",
            address: str = "",
            **options: Any,
        ) -> OpenPage:
            soundfile.write(tmp_path / "microphone.wav", speech, 24_000)
            media = MICROPHONES[microphone].format(path=tmp_path / "microphone.wav").split()
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=[*FLAGS, *media, *flags], chromium_sandbox=False
            )
            stack.push_async_callback(browser.close)
            context = await browser.new_context(bypass_csp=listening, **options)
            tab = await context.new_page()
            if microphone == "denied":
                control = await context.new_cdp_session(tab)
                denied = {"permission": {"name": "microphone"}, "setting": "denied", "origin": service.url}
                await control.send("Browser.setPermission", denied)
            if rate_hz:
                await tab.add_init_script(HARDWARE.replace("RATE_HZ", str(rate_hz)))
            if listening:
                await tab.add_init_script(RECORDER)
            pages.append(OpenPage(tab, address or service.url))
            await tab.goto(pages[-1].url)
            await pages[-1].until("globalThis.mimi && (mimi.state !== 'loading' || mimi.refusal !== '')")
            return pages[-1]

        yield launch
    for page in pages:
        hosts = {urlsplit(url).netloc for url in page.requested if not url.startswith("blob:")}
        assert hosts == {urlsplit(page.url).netloc}, "the page asked somebody else"
        assert not page.complaints, page.complaints


def _playwright() -> Any:
    reason = "" if CHROMIUM else "no Chromium on PATH (MIMI_CHROMIUM names one)"
    try:
        from playwright import async_api  # noqa: PLC0415
    except ImportError:
        reason = "no playwright: pip install 'mimi-server[browser]'"
    if reason and os.environ.get("MIMI_REQUIRE_BROWSER"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return async_api
