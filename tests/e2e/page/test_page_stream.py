"""What the page sends, shows and plays, against the library and against what the server sent."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import soundfile

from codec_core.clip import encode_clip

STREAM_S = 2.5
ATTEMPTS = 3
"""A gap in playing is no error of the page where the machine is too busy to answer in time."""


async def stream_microphone(page, seconds: float) -> None:
    await page.press_button("Start")
    await page.until_state("live")
    await asyncio.sleep(seconds)
    await page.press_button("Stop")
    await page.until_state("idle")


@pytest.mark.parametrize("rate_hz", [44_100, 48_000])
async def test_the_microphone_becomes_the_codes_of_the_library(service, tiny_model, open_page, rate_hz):
    """ANCHORS B9, B11: at the rate that the browser has."""
    page = await open_page(service, rate_hz=rate_hz)
    await page.tab.fill("#levels", "6")
    await stream_microphone(page, STREAM_S)
    settings = page.settings()
    assert (settings["mode"], settings["levels"], settings["sample_rate"]) == ("encode", "6", str(rate_hz))
    sent = np.frombuffer(b"".join(page.sent), "<i2")
    assert np.abs(sent.astype(int)).max() > 5_000, "the microphone was silent"
    expected = page.expected_codes(tiny_model)
    assert expected.shape[1] >= int(STREAM_S * 12.5) - 5
    assert np.array_equal(page.received_codes(), expected)
    assert np.array_equal(await page.codes(), expected)
    flushed = next(text for text in page.texts if text["type"] == "flushed")
    assert (flushed["frames"], flushed["received_samples"]) == (expected.shape[1], len(sent))
    assert await page.text("#status") == f"Done: {expected.shape[1]} frames, {expected.shape[1] * 0.08:.2f} s."


@pytest.mark.parametrize("rate_hz", [44_100, 48_000])
async def test_the_echo_is_played_without_gaps_as_the_server_sent_it(service, tiny_model, open_page, rate_hz):
    """ANCHORS B6: one ring of samples, no player of pieces."""
    page = await open_page(service, rate_hz=rate_hz, listening=True)
    await page.tab.get_by_label("Codes and echo").check()
    for _ in range(ATTEMPTS):
        await page.get("heard.length = 0")
        await stream_microphone(page, STREAM_S)
        report = await page.get("mimi.playerReport")
        if report["gaps"] == 0:
            break
    pcm = page.received_pcm()
    assert report == {"playedSamples": len(pcm), "waitingSamples": 0, "gaps": 0, "droppedSamples": 0}
    heard = await page.heard()
    start = np.flatnonzero(heard)[0] - np.flatnonzero(pcm)[0]
    assert np.array_equal(heard[start : start + len(pcm)], pcm)
    assert not heard[:start].any()
    assert not heard[start + len(pcm) :].any()
    assert np.array_equal(await page.codes(), page.expected_codes(tiny_model))


async def test_a_file_is_sent_as_it_is(service, tiny_model, open_page, speech, tmp_path):
    page = await open_page(service)
    soundfile.write(tmp_path / "speech.wav", speech, 24_000)
    await page.run_file(tmp_path / "speech.wav")
    assert page.settings()["sample_rate"] == "24000"
    assert np.array_equal(np.frombuffer(b"".join(page.sent), "<i2"), speech)
    assert np.array_equal(await page.codes(), encode_clip(tiny_model, speech, tiny_model.info.default_levels))


async def test_a_stereo_file_of_another_rate_is_sent_as_it_is_and_paced(service, tiny_model, open_page, rng, tmp_path):
    page = await open_page(service)
    stereo = rng.integers(-20_000, 20_000, (33_333, 2)).astype("<i2")
    soundfile.write(tmp_path / "stereo.wav", stereo, 32_000)
    await page.run_file(tmp_path / "stereo.wav")
    assert (page.settings()["sample_rate"], page.settings()["channels"]) == ("32000", "2")
    assert np.array_equal(np.frombuffer(b"".join(page.sent), "<i2").reshape(-1, 2), stereo)
    assert len(page.sent) > 33_333 / 32_000 / 0.05, "sent in pieces, not at once"
    assert np.array_equal(await page.codes(), page.expected_codes(tiny_model))


async def test_a_dropped_file_is_chosen_and_heard(service, tiny_model, open_page, speech, tmp_path):
    page = await open_page(service, listening=True)
    piece = speech[:30_000]
    soundfile.write(tmp_path / "dropped.flac", piece, 24_000)
    await page.tab.evaluate(
        """bytes => {
          const given = new DataTransfer();
          given.items.add(new File([new Uint8Array(bytes)], 'dropped.flac'));
          document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: given, bubbles: true, cancelable: true }));
        }""",
        list((tmp_path / "dropped.flac").read_bytes()),
    )
    assert await page.text("#status") == "dropped.flac is chosen."
    assert await page.tab.get_by_label("File", exact=True).is_checked()
    await page.tab.get_by_label("Codes and echo").check()
    await page.press_button("Start")
    await page.until_state("finishing")
    await page.until_state("idle")
    assert np.array_equal(await page.codes(), encode_clip(tiny_model, piece, tiny_model.info.default_levels))
    heard = await page.heard()
    pcm = page.received_pcm()
    start = np.flatnonzero(heard)[0] - np.flatnonzero(pcm)[0]
    assert np.array_equal(heard[start : start + len(pcm)], pcm)


async def test_a_second_stream_starts_afresh(service, tiny_model, open_page, speech, tmp_path):
    page = await open_page(service)
    soundfile.write(tmp_path / "speech.wav", speech[:12_345], 24_000)
    for levels in (32, 3):
        await page.tab.fill("#levels", str(levels))
        await page.run_file(tmp_path / "speech.wav")
        assert np.array_equal(await page.codes(), encode_clip(tiny_model, speech[:12_345], levels))
