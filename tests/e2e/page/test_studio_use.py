"""The studio under other hands and eyes: keyboard only, a phone, the dark, little motion; and the pictures of it in docs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from server.page_endpoint import WEB_FILES

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "tests" / "golden" / "vectors" / "signals" / "sample_2.wav"
PICTURES = ROOT / "docs" / "images"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DRAWINGS = """
globalThis.drawings = 0;
const { clearRect } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  drawings += this.canvas.id === 'map' ? 1 : 0;
  clearRect.apply(this, box);
};
undefined;
"""
SERIOUS = ("serious", "critical")


@pytest.fixture
def clip(speech, tmp_path):
    soundfile.write(tmp_path / "clip.wav", speech, 24_000)
    return tmp_path / "clip.wav"


async def press(page, *keys: str) -> None:
    for key in keys:
        await page.tab.keyboard.press(key)


async def focus(page) -> str:
    return await page.get(
        "document.activeElement.dataset.act || document.activeElement.id || document.activeElement.value"
        " || document.activeElement.textContent.trim()"
    )


async def tab_to(page, wanted: str, key: str = "Tab") -> list[str]:
    seen: list[str] = []
    while wanted not in seen:
        assert len(seen) < 30, seen
        await press(page, key)
        seen.append(await focus(page))
    return seen


async def check_with_axe(page) -> None:
    axe = pytest.importorskip("axe_playwright_python.async_playwright").Axe()
    results = await axe.run(page.tab)
    found = [(one["id"], one["impact"], [node["html"] for node in one["nodes"]]) for one in results.response["violations"]]
    assert not [one for one in found if one[1] in SERIOUS], found


async def test_everything_by_keyboard(service, tiny_model, open_page):
    page = await open_page(service)
    assert await tab_to(page, "example") == ["Mimi Studio", "REST reference", "Facts", "speak", "choose", "example"]
    await press(page, "Shift+Tab", "Shift+Tab", "Enter")
    await page.until_frames(8)
    assert await focus(page) == "stop"
    await tab_to(page, "levels")
    await press(page, "Home", "ArrowRight", "ArrowRight")
    assert await page.text("#levels-value") == "3"
    await tab_to(page, "map")
    await read_codes_by_keyboard(page)
    await tab_to(page, "stop", "Shift+Tab")
    await press(page, "Enter")
    await page.until_state("take")
    await page.check_codes(tiny_model)
    assert await focus(page) == "play"
    await press(page, "Space")
    await page.until("mimi.isPlaying")
    assert (await tab_to(page, "codec"))[-1] == "codec"
    await press(page, "ArrowLeft")
    assert await page.get("document.querySelector('[name=listen]:checked').value") == "input"
    await tab_to(page, "save-mimi")


async def read_codes_by_keyboard(page) -> None:
    await press(page, "Home")
    await page.until("document.querySelector('#cell').textContent !== ''")
    await press(page, "Home", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp")
    codes = await page.codes()
    assert await page.text("#cell") == f"code {codes[2, 2]} of 0 .. 31 · level 2, acoustic · frame 2, at 0.16 s"
    await press(page, "ArrowDown")
    assert "level 3, acoustic, not heard" in await page.text("#cell")
    await press(page, "Escape")
    assert await page.text("#cell") == ""


async def test_the_pointer_reads_codes_and_a_click_holds_the_picture(service, open_page, clip):
    page = await open_page(service, viewport={"width": 390, "height": 844})
    await page.open_file(clip)
    await page.until_frames(20)
    await page.tab.locator("#map").scroll_into_view_if_needed()
    await page.tab.mouse.click(*await cell_place(page, frame=5, level=2))
    told = await page.text("#cell")
    assert told == f"code {(await page.codes())[2, 5]} of 0 .. 31 · level 2, acoustic · frame 5, at 0.40 s"
    await page.until_frames(30)
    assert await page.text("#cell") == told, "the stream ran on, the picture did not"
    await page.until_state("take")


async def cell_place(page, frame: int, level: int, frame_px: int = 5) -> tuple[float, float]:
    box = await page.tab.locator("#map").bounding_box()
    # Gutter, cells and gap as the page draws them with 32 levels.
    return box["x"] + 40 + frame_px * frame + 2, box["y"] + 5 + 4 + 7 * level + 3


async def test_a_phone_needs_no_sideways_scrolling(service, open_page, clip):
    page = await open_page(service, viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True)
    assert await page.get("document.documentElement.scrollWidth") == 320
    await page.open_file(clip)
    await page.until_frames(5)
    assert await page.get("document.documentElement.scrollWidth") == 320
    box = await page.tab.get_by_role("button", name="Stop").bounding_box()
    assert box["height"] >= 44
    await page.until_state("take")
    await page.choose("spectrogram")
    assert await page.get("document.documentElement.scrollWidth") == 320


async def test_little_motion_where_it_is_unwelcome(service, open_page):
    drawn, waited_s = {}, {}
    for motion in ("reduce", "no-preference"):
        page = await open_page(service, reduced_motion=motion)
        await page.get(DRAWINGS)
        await page.press_button("Speak")
        await page.until_state("live")
        before, before_ms = await page.get("[drawings, performance.now()]")
        await asyncio.sleep(3)
        after, after_ms = await page.get("[drawings, performance.now()]")
        drawn[motion], waited_s[motion] = after - before, (after_ms - before_ms) / 1000
        await page.press_button("Stop")
        await page.until_state("take")
    # Once a second, at the start of it, and when the map has found its size or the page has been laid out anew.
    assert drawn["reduce"] <= waited_s["reduce"] + 4
    assert drawn["no-preference"] / waited_s["no-preference"] >= 2 * drawn["reduce"] / waited_s["reduce"]


async def test_names_and_states_for_those_who_do_not_see(service, open_page, clip):
    page = await open_page(service)
    await check_with_axe(page)
    tree = await page.tab.locator("body").aria_snapshot()
    for part in ('heading "Your voice, as a handful of numbers."', 'button "Speak"', 'button "Play an example"', "alert"):
        assert part in tree, tree
    await page.open_file(clip)
    await page.until_frames(5)
    tree = await page.tab.locator("body").aria_snapshot()
    for part in (
        'radio "Input"',
        'radio "Codec" [checked]',
        'slider "Levels"',
        'button "Stop"',
        'meter "Loudness"',
        "application",
        'img "The sound that went in"',
        "status: Playing.",
    ):
        assert part in tree, tree
    await page.until_state("take")
    await check_with_axe(page)


async def test_the_dark_is_as_readable(service, open_page, clip):
    page = await open_page(service, color_scheme="dark")
    await page.open_file(clip)
    await page.until_frames(5)
    await check_with_axe(page)
    await page.until_state("take")


async def test_the_reference_shows_every_call(service, open_page):
    page = await open_page(service)
    await page.tab.get_by_role("link", name="REST reference").click()
    await page.until("document.querySelectorAll('article').length > 0")
    paths = await page.get("fetch('openapi.json').then((answer) => answer.json()).then(({ paths }) => Object.keys(paths))")
    assert await page.get("[...document.querySelectorAll('h2 code')].map((path) => path.textContent)") == paths
    text = await page.text("main")
    for part in ("sample_rate", "8000 .. 96000", "application/x-npy", "capacity: Every place is taken", "503"):
        assert part in text
    await check_with_axe(page)
    await page.tab.get_by_role("link", name="Studio", exact=True).click()
    await page.until("globalThis.mimi && mimi.state === 'empty'")


async def test_a_page_may_import_the_client(service, open_page, tiny_model, speech):
    """``/web/client.js`` is the package of npm as one module; it runs in a browser as it does in Node."""
    page = await open_page(service)
    codes = await page.tab.evaluate(
        """async (samples) => {
          const { encode } = await import(new URL('web/client.js', document.baseURI).href);
          const { levels, frames, data } = await encode(document.baseURI, Int16Array.from(samples), { levels: 5 });
          return { levels, frames, data: [...data] };
        }""",
        speech[:20_000].tolist(),
    )
    encoder = tiny_model.encoder(5)
    expected = np.concatenate([encoder.push(speech[:20_000]), encoder.flush()], axis=1)
    assert np.array_equal(np.array(codes["data"]).reshape(codes["frames"], 5).T, expected)
    assert "MimiStream" in WEB_FILES["client.js"].content.decode()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_the_pictures_in_docs(start_service, open_page, look, tmp_path):
    """Drawn anew where ``MIMI_UPDATE_PICTURES`` is set; otherwise into a temporary folder, and those in docs must be there."""
    service = start_service("--model", "default")
    how = PHONE if look == "phone" else {"viewport": {"width": 1120, "height": 860}}
    page = await open_page(service, color_scheme="dark" if look == "dark" else "light", **how)
    folder = PICTURES if os.environ.get("MIMI_UPDATE_PICTURES") else tmp_path
    await take_picture(page, folder, f"studio_{look}_empty.png", full_page=False)
    await page.open_file(RECORDING)
    await page.until_frames(25 if look == "phone" else 60)
    if look != "phone":
        await page.set_levels(8)
        await page.choose("spectrogram" if look == "dark" else "waveform")
        await page.tab.mouse.move(*await cell_place(page, frame=30, level=5, frame_px=7))
    await asyncio.sleep(0.3)
    await take_picture(page, folder, f"studio_{look}.png", full_page=True)
    if (await page.get("mimi.state")) == "live":
        await page.press_button("Stop")
    await page.until_state("take")


async def take_picture(page, folder, name, *, full_page):
    await page.tab.screenshot(path=folder / name, full_page=full_page)
    assert (folder / name).stat().st_size > 20_000
    assert (PICTURES / name).read_bytes().startswith(b"\x89PNG")
