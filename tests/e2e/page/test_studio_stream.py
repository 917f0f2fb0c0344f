"""What the studio sends, shows, plays and saves, against the library and against what the server sent."""

from __future__ import annotations

import asyncio
import signal
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
import soxr

from codec_core.clip import decode_clip, encode_clip
from codec_core.codes_file import CodesDocument, read_codes, write_codes
from codec_core.pcm import to_int16
from server.wire_messages import KIND_CODES, KIND_PCM

ATTEMPTS = 3
"""A gap in playing is no error of the page where the machine is too busy to answer in time."""
FADE_SAMPLES = 260
LOUD = 500


@pytest.fixture
def words(speech):
    """A second and a bit."""
    return speech[:30_001]


@pytest.fixture
def clip(words, tmp_path):
    soundfile.write(tmp_path / "clip.wav", words, 24_000)
    return tmp_path / "clip.wav"


def decoded(model, codes):
    return to_int16(decode_clip(model, codes))


@pytest.mark.parametrize("rate_hz", [44_100, 48_000])
async def test_the_microphone_becomes_the_codes_of_the_library(service, tiny_model, open_page, speech, rate_hz):
    """ANCHORS B9, B11: at the rate that the browser has."""
    page = await open_page(service, rate_hz=rate_hz)
    await page.set_levels(6)
    await page.speak(1.5)
    codes = await page.check_codes(tiny_model)
    line = page.line("encode")
    taken = await page.input()
    assert np.array_equal(np.frombuffer(b"".join(line.sent), "<i2"), taken)
    received = np.frombuffer(line.payloads(KIND_CODES), "<u2").reshape(-1, tiny_model.info.levels).T
    assert np.array_equal(received, codes)
    flushed = next(text for text in line.texts if text["type"] == "flushed")
    assert (flushed["frames"], flushed["received_samples"]) == (codes.shape[1], len(taken))
    assert page.line("decode").sent_texts[0]["levels"] == 6
    assert np.array_equal(await page.output(), decoded(tiny_model, codes[:6]))
    check_sound(taken, speech)


def check_sound(taken, speech):
    """What came is what was said, at its speed, whatever the rate of the hardware; Chromium's own resampling is rough."""
    piece = speech[12_000:18_000].astype(float)
    taken = taken.astype(float)
    energies = np.convolve(taken**2, np.ones(len(piece)), "valid")
    likeness = np.correlate(taken, piece, "valid") / np.sqrt(np.maximum(energies, 1) * np.sum(piece**2))
    assert likeness.max() > 0.9


@pytest.mark.parametrize("rate_hz", [24_000, 44_100])
async def test_the_codec_is_heard_without_gaps_as_the_server_sent_it(service, tiny_model, open_page, clip, words, rate_hz):  # noqa: PLR0917
    """ANCHORS B6: one ring of samples, no player of pieces."""
    page = await open_page(service, rate_hz=rate_hz, listening=True)
    for _ in range(ATTEMPTS):
        await page.get("heard.length = 0")
        await page.run_file(clip)
        report = await page.get("mimi.playerReport")
        if report["underruns"] == 0:
            break
    assert (report["underruns"], report["skippedSamples"], report["waitingSamples"]) == (0, 0, 0)
    assert np.array_equal(np.frombuffer(b"".join(page.line("encode").sent), "<i2"), words), "a file is sent as it is"
    codes = await page.check_codes(tiny_model)
    pcm = np.frombuffer(page.line("decode").payloads(KIND_PCM), "<i2")
    assert np.array_equal(pcm, decoded(tiny_model, codes))
    heard = await page.heard()
    if rate_hz == 24_000:
        start = np.flatnonzero(heard)[0] - np.flatnonzero(pcm)[0]
        assert np.array_equal(heard[start : start + len(pcm)], pcm)
        assert not heard[:start].any()
        assert not heard[start + len(pcm) :].any()
    else:
        assert report["playedSamples"] == -(-len(pcm) * rate_hz // 24_000)
        assert distance_db(heard, resampled(pcm, rate_hz)) > 80


def resampled(pcm, rate_hz):
    """What the client's resampler says it is: a sinc of 48 crossings, cut off 6 % below Nyquist, under a Kaiser window."""
    cutoff = 0.94 * min(1, rate_hz / 24_000)
    half = int(np.ceil(48 / cutoff))
    places = np.arange(-(-len(pcm) * rate_hz // 24_000)) * (24_000 / rate_hz)
    distances = np.arange(1 - half, half + 1) - (places % 1)[:, None]
    weights = np.sinc(cutoff * distances) * np.i0(9 * np.sqrt(np.clip(1 - (distances / half) ** 2, 0, None)))
    padded = np.concatenate([np.zeros(half), pcm, np.zeros(half + 1)])
    samples = padded[places.astype(int)[:, None] + np.arange(1, 2 * half + 1)]
    return np.sum(samples * weights, axis=1) / np.sum(weights, axis=1)


def distance_db(heard, expected):
    """How far below the sound the difference is."""
    heard = np.pad(heard, 8)
    begin = np.flatnonzero(np.abs(heard) > LOUD)[0] - np.flatnonzero(np.abs(expected) > LOUD)[0]
    differences = [heard[max(0, begin + shift) :][: len(expected)] - expected for shift in range(-2, 3)]
    return 10 * np.log10(np.sum(expected**2) / min(np.sum(each**2) for each in differences))


async def test_input_and_codec_change_places_in_step(service, open_page, clip, speech):
    """A and B: heard is one or the other, at the same place of the sound, and for ten milliseconds between them both."""
    page = await open_page(service, rate_hz=24_000, listening=True)
    soundfile.write(clip, speech, 24_000)
    for _ in range(ATTEMPTS):
        await page.get("heard.length = 0")
        await page.open_file(clip)
        await page.until("heard.length > 24000")
        await page.choose("input")
        await page.until("heard.length > 54000")
        await page.choose("codec")
        await page.until_state("take")
        if (await page.get("mimi.playerReport.underruns")) == 0:
            break
    heard, output = await page.heard(), await page.output()
    given = np.concatenate([speech, np.zeros(len(output) - len(speech), np.int16)])
    start = np.flatnonzero(heard)[0] - np.flatnonzero(output)[0]
    heard = heard[start : start + len(output)]
    is_input, is_output = heard == given, heard == output
    changes = np.flatnonzero(np.diff((is_input & ~is_output).astype(int)))
    assert is_input.sum() > 4_000
    assert is_output.sum() > 4_000
    assert (~is_input & ~is_output).sum() <= 2 * FADE_SAMPLES, changes


async def test_levels_of_a_take_are_decoded_anew(service, tiny_model, open_page, clip):
    page = await open_page(service)
    await page.run_file(clip)
    codes = await page.codes()
    whole = decoded(tiny_model, codes)
    assert np.array_equal(await page.output(), whole)
    await page.press_button("Play")
    await page.until("mimi.isPlaying")
    for levels in (1, 5, 32, 1):
        await page.set_levels(levels)
        expected = decoded(tiny_model, codes[:levels])
        deadline_s = asyncio.get_running_loop().time() + 10
        while not np.array_equal(await page.output(), expected):
            assert asyncio.get_running_loop().time() < deadline_s, levels
            await asyncio.sleep(0.05)
    assert "1 level" in await page.text("#output-label")
    await page.choose("input")
    await page.until("!mimi.isPlaying")


async def test_input_and_levels_are_one_press_apart(service, tiny_model, open_page, clip):
    """The buttons of the listening row: each plays the take from its beginning, at the levels it names."""
    page = await open_page(service)
    assert not await page.tab.locator("#pairs").is_visible()
    await page.run_file(clip)
    codes = await page.codes()
    for name, levels in (("4 levels", 4), ("Input", None), ("1 level", 1), ("32 levels", 32)):
        await page.tab.locator("#pairs").get_by_role("button", name=name, exact=True).click()
        await page.until(f"document.querySelector('#pairs [aria-pressed=true]').textContent.trim() === '{name}'")
        await page.until("mimi.isPlaying")
        if levels is not None:
            await page.until(f"document.querySelector('#levels-value').textContent === '{levels}'")
            expected = decoded(tiny_model, codes[:levels])
            deadline_s = asyncio.get_running_loop().time() + 10
            while not np.array_equal(await page.output(), expected):
                assert asyncio.get_running_loop().time() < deadline_s, levels
                await asyncio.sleep(0.05)
        heard = await page.get("document.querySelector('[name=listen]:checked').value")
        assert heard == ("input" if levels is None else "codec")


async def test_levels_change_while_it_streams(service, tiny_model, open_page, clip, speech):
    page = await open_page(service)
    soundfile.write(clip, speech, 24_000)
    await page.set_levels(32)
    await page.open_file(clip)
    await page.until_frames(12)
    await page.set_levels(2)
    await page.until_state("take")
    modes = [line.sent_texts[0] for line in page.lines if line.sent_texts[0].get("mode") == "decode"]
    assert [settings["levels"] for settings in modes] == [32, 2]
    codes = await page.check_codes(tiny_model)
    await page.until(f"mimi.output.length === {codes.shape[1] * 1920}")
    await asyncio.sleep(0.5)
    assert np.array_equal(await page.output(), decoded(tiny_model, codes[:2])), "in the end the take is of one piece"


async def test_what_is_saved_is_read_by_the_library(service, tiny_model, open_page, clip, words, tmp_path):  # noqa: PLR0917
    page = await open_page(service)
    await page.run_file(clip)
    await page.set_levels(7)
    expected = encode_clip(tiny_model, words, 32)
    await page.until("document.querySelector('#output-label').textContent.includes('7 levels')")
    await asyncio.sleep(0.5)
    saved = {}
    for button in ("Input .wav", "Codec .wav", "Codes .npy", "Codes .mimi"):
        async with page.tab.expect_download() as download:
            await page.press_button(button)
        given = await download.value
        saved[button] = tmp_path / f"saved-{given.suggested_filename}"
        await given.save_as(saved[button])
    assert [path.name for path in saved.values()] == [
        "saved-clip-input.wav",
        "saved-clip-codec.wav",
        "saved-clip-7.npy",
        "saved-clip-7.mimi",
    ]
    for form in ("Codes .npy", "Codes .mimi"):
        assert np.array_equal(read_codes(saved[form]).codes, expected[:7])
    sound, rate_hz = soundfile.read(saved["Input .wav"], dtype="int16")
    assert (rate_hz, np.array_equal(sound, words)) == (24_000, True)
    sound, rate_hz = soundfile.read(saved["Codec .wav"], dtype="int16")
    assert (rate_hz, np.array_equal(sound, decoded(tiny_model, expected[:7])[: len(words)])) == (24_000, True)


@pytest.mark.parametrize("form", ["npy", "mimi", "json"])
async def test_a_dropped_file_of_codes_is_decoded(service, tiny_model, open_page, speech, tmp_path, form):  # noqa: PLR0917
    page = await open_page(service)
    codes = encode_clip(tiny_model, speech, 4)
    path = tmp_path / f"given.{form}"
    write_codes(path, CodesDocument(codes))
    await page.tab.evaluate(
        """([bytes, name]) => {
          const given = new DataTransfer();
          given.items.add(new File([new Uint8Array(bytes)], name));
          document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: given, bubbles: true, cancelable: true }));
        }""",
        [list(path.read_bytes()), path.name],
    )
    await page.until_state("take")
    assert np.array_equal(await page.codes(), codes)
    assert np.array_equal(await page.output(), decoded(tiny_model, codes))
    assert await page.text("#status") == f"given.{form}: {codes.shape[1]} frames, {codes.shape[1] * 0.08:.2f} s."
    assert await page.tab.get_by_role("button", name="Input .wav").is_disabled()
    await page.press_button("Play")
    await page.until("!mimi.isPlaying")


async def test_a_stereo_file_of_another_rate_is_mixed_and_resampled(service, tiny_model, open_page, speech, tmp_path):
    page = await open_page(service)
    stereo = np.stack([speech[:48_000], np.zeros(48_000, np.int16)], axis=1)
    soundfile.write(tmp_path / "stereo.wav", soxr.resample(stereo.astype(float) / 32_768, 24_000, 32_000), 32_000)
    await page.run_file(tmp_path / "stereo.wav")
    await page.check_codes(tiny_model)
    check_sound(await page.input(), speech)


async def test_the_example_is_played(service, tiny_model, open_page):
    page = await open_page(service)
    await page.press_button("Play an example")
    await page.until_frames(8)
    await page.press_button("Stop")
    await page.until_state("take")
    await page.check_codes(tiny_model)


async def test_a_stream_outlives_its_server(replica, tiny_model, open_page, clip, speech):
    """The server goes down and comes again in mid-stream: the page says so, goes on by itself, and no code is another."""
    first = replica()
    page = await open_page(first)
    soundfile.write(clip, np.tile(speech, 2), 24_000)
    await page.open_file(clip)
    await page.until_frames(15)
    first.process.send_signal(signal.SIGTERM)
    first.process.wait(timeout=20)
    await page.until("document.querySelector('#status').textContent.includes('trying again')")
    replica("--port", str(urlsplit(first.url).port))
    await page.until("document.querySelector('#status').textContent.includes('nothing is lost')")
    await page.until_state("take")
    assert await page.get("mimi.resumes") >= 1
    assert await page.get("mimi.refusal") == ""
    codes = await page.check_codes(tiny_model)
    assert np.array_equal(await page.input(), np.tile(speech, 2))
    assert np.array_equal(await page.output(), decoded(tiny_model, codes))
    page.forgive("ERR_CONNECTION")
