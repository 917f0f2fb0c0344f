"""The page under other hands and eyes: keyboard only, a phone, the dark, little motion; and the pictures of it in docs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "tests" / "golden" / "vectors" / "signals" / "speech10s.wav"
PICTURES = ROOT / "docs" / "images"
DRAWINGS = """
globalThis.drawings = 0;
const { clearRect } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  drawings += this.canvas.id === 'map' ? 1 : 0;
  clearRect.apply(this, box);
};
undefined;
"""


async def press(page, *keys: str) -> None:
    for key in keys:
        await page.tab.keyboard.press(key)


async def focus(page) -> str:
    return await page.get("document.activeElement.id || document.activeElement.value || document.activeElement.textContent")


async def test_everything_by_keyboard(service, tiny_model, open_page):
    page = await open_page(service)
    seen = []
    while "go" not in seen:
        await press(page, "Tab")
        seen.append(await focus(page))
        if seen[-1] == "encode":
            await press(page, "ArrowRight")
        if seen[-1] == "levels":
            await press(page, "Home", "ArrowRight", "ArrowRight")
    assert seen == ["REST reference", "Facts", "microphone", "file", "encode", "levels", "go"]
    assert await page.text("#levels-value") == "3"
    await press(page, "Enter")
    await page.until("mimi.codes.length > 8")
    settings = page.settings()
    assert (settings["mode"], settings["levels"]) == ("echo", "3")
    await read_codes_by_keyboard(page)
    await press(page, "Shift+Tab")
    assert await focus(page) == "go"
    await press(page, "Space")
    await page.until_state("idle")
    assert np.array_equal(await page.codes(), page.expected_codes(tiny_model))


async def read_codes_by_keyboard(page) -> None:
    await press(page, "Tab")
    assert await focus(page) == "map"
    await press(page, "Home")
    await page.until("document.querySelector('#cell').textContent !== ''")
    await press(page, "Home", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp")
    codes = await page.codes()
    assert await page.text("#cell") == f"code {codes[1, 2]} of 0 .. 31 · level 1, acoustic · frame 2, at 0.16 s"
    await press(page, "Escape")
    assert await page.text("#cell") == ""


async def test_the_pointer_reads_codes_and_a_click_holds_the_picture(service, open_page, speech, tmp_path):
    page = await open_page(service, viewport={"width": 390, "height": 844})
    soundfile.write(tmp_path / "speech.wav", np.tile(speech, 2), 24_000)
    await page.tab.fill("#levels", "4")
    await page.choose_file(tmp_path / "speech.wav")
    await page.press_button("Start")
    await page.until("mimi.codes.length > 20")
    await page.tab.locator("#map").scroll_into_view_if_needed()
    await page.tab.mouse.click(*await cell_place(page, frame=5, level=2))
    told = await page.text("#cell")
    assert told == f"code {(await page.codes())[2, 5]} of 0 .. 31 · level 2, acoustic · frame 5, at 0.40 s"
    await page.until_state("idle")
    assert await page.text("#cell") == told, "the stream ran on, the picture did not"


async def cell_place(page, frame: int, level: int) -> tuple[float, float]:
    box = await page.tab.locator("#map").bounding_box()
    # Gutter, cells and gap as the page draws them on a phone with four levels.
    return box["x"] + 40 + 5 * frame + 2, box["y"] + 5 + 4 + 16 * level + 8


async def test_a_phone_needs_no_sideways_scrolling(service, open_page):
    page = await open_page(service, viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True)
    await page.tab.get_by_label("Codes and echo").check()
    await page.tab.get_by_text("The same for programs").click()
    await page.press_button("Start")
    await page.until("mimi.codes.length > 5")
    assert await page.get("document.documentElement.scrollWidth") == 320
    box = await page.tab.get_by_role("button", name="Stop").bounding_box()
    assert box["height"] >= 44
    await page.press_button("Stop")
    await page.until_state("idle")


async def test_little_motion_where_it_is_unwelcome(service, open_page):
    counts = {}
    for motion in ("reduce", "no-preference"):
        page = await open_page(service, reduced_motion=motion)
        await page.get(DRAWINGS)
        await page.press_button("Start")
        await page.until_state("live")
        before = await page.get("drawings")
        await asyncio.sleep(2)
        counts[motion] = await page.get("drawings") - before
        await page.press_button("Stop")
        await page.until_state("idle")
    assert counts["reduce"] <= 3
    assert counts["no-preference"] >= 10


async def test_names_and_states_for_those_who_do_not_see(service, open_page):
    page = await open_page(service)
    tree = await page.tab.locator("body").aria_snapshot()
    for part in (
        'radio "Microphone" [checked]',
        'radio "Codes and echo"',
        'slider "Levels"',
        'button "Start"',
        'meter "Level"',
        "application",
        'img "Waveform of the sound sent"',
        "status: Ready.",
        "alert",
    ):
        assert part in tree, tree
    unlabelled = await page.get(
        "[...document.querySelectorAll('input')].filter((one) => !one.labels.length && !one.ariaLabel).length"
    )
    assert unlabelled == 0


async def test_the_reference_shows_every_call(service, open_page):
    page = await open_page(service)
    await page.tab.get_by_role("link", name="REST reference").click()
    await page.until("document.querySelectorAll('article').length > 0")
    paths = await page.get("fetch('openapi.json').then((answer) => answer.json()).then(({ paths }) => Object.keys(paths))")
    assert await page.get("[...document.querySelectorAll('h2 code')].map((path) => path.textContent)") == paths
    text = await page.text("main")
    for part in ("sample_rate", "8000 .. 96000", "application/x-npy", "capacity: Every place is taken", "503"):
        assert part in text
    await page.tab.get_by_role("link", name="Live").click()
    await page.until("globalThis.mimi && mimi.state === 'idle'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pictures_in_docs(start_service, open_page, scheme, tmp_path):
    """Drawn anew where ``MIMI_UPDATE_PICTURES`` is set; otherwise into a temporary folder, and those in docs must be there."""
    service = start_service("--model", "default")
    page = await open_page(service, viewport={"width": 1120, "height": 1140}, color_scheme=scheme)
    await page.tab.get_by_label("Codes and echo").check()
    await page.choose_file(RECORDING)
    await page.press_button("Start")
    await page.until("mimi.codes.length > 100")
    await page.tab.mouse.move(*await cell_place(page, frame=50, level=9))
    name = "page.png" if scheme == "light" else "page_dark.png"
    folder = PICTURES if os.environ.get("MIMI_UPDATE_PICTURES") else tmp_path
    await page.tab.screenshot(path=folder / name)
    assert (folder / name).stat().st_size > 50_000
    assert (PICTURES / name).read_bytes().startswith(b"\x89PNG")
    await page.press_button("Stop")
    await page.until_state("idle")
