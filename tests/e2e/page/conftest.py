"""A real browser, Debian's Chromium, in front of a real service; the microphone is a file.

Skipped where playwright or Chromium is missing, unless ``MIMI_REQUIRE_BROWSER`` is set: then that is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import pytest_asyncio
import soundfile

from codec_core.clip import encode_clip
from server.wire_messages import unpack_frame

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
WAIT_S = 30
Codes = np.ndarray[Any, Any]
Samples = np.ndarray[Any, Any]
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


@dataclass
class Line:
    """One WebSocket of the page: what went either way."""

    url: str
    sent: list[bytes] = field(default_factory=list)
    sent_texts: list[dict[str, Any]] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    texts: list[dict[str, Any]] = field(default_factory=list)

    def payloads(self, kind: int) -> bytes:
        return b"".join(payload for header, payload in map(unpack_frame, self.received) if header.kind == kind)


class OpenPage:
    """The page in a tab, what it said to the server and what it heard."""

    def __init__(self, tab: Any, url: str) -> None:
        self.tab = tab
        self.url = url
        self.complaints: list[str] = []
        self.requested: set[str] = set()
        self.lines: list[Line] = []
        tab.on(
            "console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", lambda request: self.requested.add(request.url))
        tab.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        self.requested.add(socket.url)
        line = Line(socket.url)
        self.lines.append(line)
        socket.on("framesent", lambda data: _sort(data, line.sent, line.sent_texts))
        socket.on("framereceived", lambda data: _sort(data, line.received, line.texts))

    def line(self, mode: str) -> Line:
        """Return the newest connection of a new stream of this mode."""
        return [line for line in self.lines if line.sent_texts and line.sent_texts[0].get("mode") == mode][-1]

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

    async def until_frames(self, count: int) -> None:
        await self.until(f"mimi.codes.length >= {count}")

    async def text(self, selector: str) -> str:
        return str(await self.tab.inner_text(selector))

    async def press_button(self, name: str) -> None:
        await self.tab.get_by_role("button", name=name, exact=True).click()

    async def choose(self, value: str) -> None:
        """Choose one of those side by side: what is heard, or how sound is shown."""
        await self.tab.locator(f"input[value={value}] + span").click()

    async def open_file(self, path: Path) -> None:
        await self.tab.set_input_files("#file", path)

    async def run_file(self, path: Path) -> None:
        """Play a file from its beginning to its end."""
        await self.open_file(path)
        await self.until("mimi.state !== 'empty' && mimi.state !== 'take'")
        await self.until("mimi.state === 'take' || mimi.refusal !== ''")

    async def speak(self, seconds: float) -> None:
        """Speak for so long, by the microphone."""
        await self.tab.locator("button[data-act=speak]:visible").click()
        await self.until_state("live")
        await asyncio.sleep(seconds)
        await self.press_button("Stop")
        await self.until_state("take")

    async def set_levels(self, levels: int) -> None:
        """Move the slider, which is there before it is seen."""
        script = "(levels) => { const slider = document.querySelector('#levels'); slider.value = levels; "
        await self.tab.evaluate(script + "slider.dispatchEvent(new Event('input', { bubbles: true })); }", levels)

    async def refusal(self) -> tuple[str, str]:
        """Return the code and the words of the refusal that is shown, waiting for one."""
        await self.until("mimi.refusal !== ''")
        return await self.get("mimi.refusal"), await self.text("#refusal")

    async def codes(self) -> Codes:
        """Return the codes that the page shows, [levels, frames]."""
        return np.array(await self.get("mimi.codes"), np.int32).T

    async def input(self) -> Samples:
        """Return the sound that the page took, 16 bits at 24 kHz."""
        return np.array(await self.get("mimi.input"), np.int16)

    async def output(self) -> Samples:
        """Return the sound of the codes that the page has, 16 bits at 24 kHz."""
        return np.array(await self.get("mimi.output"), np.int16)

    async def heard(self) -> Samples:
        """Return what the player gave out, 16 bits at the rate of the hardware."""
        return np.array(await self.get("heard"))

    async def check_codes(self, model: Any) -> Codes:
        """Codes shown are those of the library, for the sound that was taken."""
        codes = await self.codes()
        assert np.array_equal(codes, encode_clip(model, await self.input(), model.info.levels))
        return codes

    def forgive(self, words: str) -> None:
        """A browser writes failed requests into its console by itself; nothing else may stand there."""
        assert all(words in complaint for complaint in self.complaints), self.complaints
        self.complaints.clear()


def _sort(data: bytes | str, binary: list[bytes], texts: list[dict[str, Any]]) -> None:
    if isinstance(data, bytes):
        binary.append(data)
    else:
        texts.append(json.loads(data))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all tests of the page, since browsers live longer than a test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def microphone_path(tmp_path_factory: pytest.TempPathFactory, speech: Samples) -> Path:
    path = tmp_path_factory.mktemp("microphone") / "speech.wav"
    soundfile.write(path, speech, 24_000)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def launch_browser() -> AsyncIterator[Callable[..., Any]]:
    """``await launch_browser(flags)``: a browser with these flags, started once."""
    playwright_api = _playwright()
    browsers: dict[tuple[str, ...], Any] = {}
    async with playwright_api.async_playwright() as playwright:

        async def launch(*flags: str) -> Any:
            if flags not in browsers:
                browsers[flags] = await playwright.chromium.launch(
                    executable_path=CHROMIUM, args=[*FLAGS, *flags], chromium_sandbox=False
                )
            return browsers[flags]

        yield launch
        for browser in browsers.values():
            await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(launch_browser: Callable[..., Any], microphone_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """``await open_page(service)``: the page, loaded; at the end it must have had nothing to complain of."""
    pages: list[OpenPage] = []
    async with contextlib.AsyncExitStack() as stack:

        async def launch(
            service: Any,
            *flags: str,
            rate_hz: int = 0,
            listening: bool = False,
            microphone: str = "file",
            address: str = "",
            **options: Any,
        ) -> OpenPage:
            browser = await launch_browser(*MICROPHONES[microphone].format(path=microphone_path).split(), *flags)
            context = await browser.new_context(bypass_csp=listening, **options)
            stack.push_async_callback(context.close)
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
