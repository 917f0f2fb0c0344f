"""Whatever does not go on is said in words: what is wrong, what to do, and what exactly was found."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import soundfile

from codec_core.codes_file import CodesDocument, write_codes


@pytest.fixture
def clip(speech, tmp_path):
    soundfile.write(tmp_path / "clip.wav", speech, 24_000)
    return tmp_path / "clip.wav"


async def test_no_room_on_the_server(start_service, stream, open_page, clip):
    service = start_service("--max-sessions", "2")
    page = await open_page(service)
    async with stream(service, "levels=2") as client, stream(service, "levels=2") as other:
        for each in (client, other):
            await each.until("ready")
        await page.open_file(clip)
        code, words = await page.refusal()
        assert code == "capacity"
        assert "Every place on the server is taken." in words
        assert "2 of 2 places taken" in words
        assert await page.get("mimi.state") == "empty"
        await client.send("close")
        await client.closing()
        # One place is enough for codes; what they sound like is asked for when the take is done.
        await page.open_file(clip)
        await page.until_state("take")
        assert (await page.text("#status")).startswith("Done: 38 frames")
        await page.until("mimi.output.length === 38 * 1920")
        await page.until("mimi.refusal === ''")


async def test_the_server_goes_for_good(start_service, open_page, clip):
    service = start_service("--drain-timeout-ms", "600", "--resume-grace-ms", "1500")
    page = await open_page(service)
    await page.open_file(clip)
    await page.until_frames(4)
    service.process.send_signal(signal.SIGTERM)
    await page.until("document.querySelector('#status').textContent.includes('the service goes down')")
    code, words = await page.refusal()
    assert code == "draining"
    assert "going down" in words
    await page.until_state("take")
    assert (await page.text("#status")).startswith("Stopped after ")
    assert len(await page.get("mimi.codes")) > 3, "what was answered stays"
    page.forgive("ERR_CONNECTION")


async def test_a_server_that_was_never_there(start_service, open_page, clip):
    service = start_service()
    page = await open_page(service)
    service.process.kill()
    service.process.wait()
    await page.open_file(clip)
    assert (await page.refusal())[0] == "unavailable"
    assert await page.get("mimi.state") == "empty"
    page.forgive("ERR_CONNECTION")


async def test_what_the_server_says_is_shown(service, open_page, tiny_model, tmp_path):
    page = await open_page(service)
    write_codes(tmp_path / "foreign.npy", CodesDocument(np.full((2, 3), tiny_model.info.codebook_entries)))
    await page.open_file(tmp_path / "foreign.npy")
    code, words = await page.refusal()
    assert (code, "of another model" in words) == ("code_range", True)
    assert "expected 0 .. 31" in words
    page.forgive("422")


async def test_the_service_asks_for_a_key(start_service, open_page):
    page = await open_page(start_service("--api-keys", "hush"))
    code, words = await page.refusal()
    assert (code, "asks for a key" in words) == ("unauthorized", True)
    assert await page.tab.get_by_role("button", name="Speak", exact=True).is_disabled()
    await page.tab.get_by_label("Key of the service").fill("wrong")
    await page.press_button("Use key")
    await page.until("document.querySelector('#refusal').textContent.includes('found an unknown one')")
    assert await page.get("mimi.state") == "loading"
    page.forgive("401")


async def test_a_key_that_is_entered_lets_streams_in(start_service, open_page, clip, tiny_model, monkeypatch):
    key = "Schlüssel №1"
    monkeypatch.setenv("MIMI_API_KEYS", key)
    service = start_service()
    page = await open_page(service)
    await page.refusal()
    await page.tab.get_by_label("Key of the service").fill(key)
    await page.tab.keyboard.press("Enter")
    await page.until_state("empty")
    assert await page.text("#refusal") == ""
    assert not await page.tab.is_visible("#key-entry")
    for _ in range(2):
        await page.run_file(clip)
        assert (await page.text("#status")).startswith("Done: 38 frames")
        await page.check_codes(tiny_model)
    await page.set_levels(2)
    await page.until("document.querySelector('#output-label').textContent.includes('2 levels')")
    assert all("token=" in line.url for line in page.lines)
    assert not any(key in url or quote(key) in url for url in page.requested)
    assert "token=" not in service.log
    page.forgive("401")


async def test_the_microphone_is_denied(service, open_page):
    page = await open_page(service, microphone="denied")
    await page.press_button("Speak")
    code, words = await page.refusal()
    assert code == "microphone_denied"
    assert "Allow it in the settings of this page" in words
    assert await page.get("mimi.state") == "empty"


async def test_there_is_no_microphone(service, open_page):
    page = await open_page(service, microphone="of the machine")
    if await page.get("navigator.mediaDevices.enumerateDevices().then((all) => all.some(({ kind }) => kind === 'audioinput'))"):
        pytest.skip("this machine has a microphone")
    await page.press_button("Speak")
    code, words = await page.refusal()
    assert code == "microphone_missing"
    assert "No microphone was found." in words


async def test_a_page_without_https_gets_no_audio(service, open_page):
    """ANCHORS F3: the page says why."""
    port = urlsplit(service.url).port
    address = f"http://mimi.test:{port}/"
    page = await open_page(service, "--host-resolver-rules=MAP mimi.test 127.0.0.1", address=address)
    code, words = await page.refusal()
    assert code == "insecure"
    assert "HTTPS" in words
    assert f"http://mimi.test:{port}" in words


async def test_a_page_that_the_server_takes_for_a_strangers(service, open_page, clip):
    """Behind a proxy that puts another name into Host, the page's origin is not the server's own."""
    async with renaming_proxy(urlsplit(service.url).port) as port:
        page = await open_page(service, address=f"http://127.0.0.1:{port}/")
        await page.open_file(clip)
        code, words = await page.refusal()
    assert (code, "a service that answers requests" in words) == ("unavailable", True)
    page.forgive("403")


@contextlib.asynccontextmanager
async def renaming_proxy(service_port):
    async def pump(reader, writer, old=b"", new=b""):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data.replace(old, new) if old else data)
                await writer.drain()
        writer.close()

    async def connected(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", service_port)
        host = f"Host: 127.0.0.1:{port}".encode()
        await asyncio.gather(pump(reader, inner_writer, host, b"Host: elsewhere.test"), pump(inner_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        server.close()


@pytest.mark.parametrize("content", [b"", b"no sound at all", b"RIFF\x00\x00\x00\x00WAVE", b"RIFF\xff\xff\xff\xffWAVEfmt \xff"])
async def test_a_file_that_is_no_sound(service, open_page, tmp_path, content):
    page = await open_page(service)
    (tmp_path / "broken.wav").write_bytes(content)
    await page.open_file(tmp_path / "broken.wav")
    code, words = await page.refusal()
    assert code == "file_unreadable"
    assert "broken.wav" in words


@pytest.mark.parametrize("name", ["broken.npy", "broken.mimi", "broken.json"])
async def test_a_file_that_is_no_codes(service, open_page, tmp_path, name):
    page = await open_page(service)
    (tmp_path / name).write_bytes(b"MIMI no codes")
    await page.open_file(tmp_path / name)
    code, words = await page.refusal()
    assert code == "codes_file"
    assert name in words
    assert await page.get("mimi.state") == "empty"
