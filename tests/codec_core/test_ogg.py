from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile

from codec_core.errors import OpusDataError
from codec_core.ogg import PAGE_HEADER, OggOpusReader, OggOpusWriter, page_crc
from codec_core.opus import OpusDecoder
from codec_core.opus_packets import OpusHead

PACKET = bytes([0x08, 1, 2, 3])  # 20 ms
SAMPLES = 960
HEAD = OpusHead(1, 312)


def pages_of(count: int, *, end_samples: int | None = None, serial: int = 7) -> list[bytes]:
    writer = OggOpusWriter(HEAD, 24_000, serial)
    first = [writer.header()]
    return first + [writer.page(PACKET, end_samples=end_samples if index == count - 1 else None) for index in range(count)]


def resealed(page: bytes, at: int, value: bytes) -> bytes:
    """The page with a field changed and its checksum mended."""
    changed = page[:at] + value + page[at + len(value) :]
    bare = changed[:22] + bytes(4) + changed[26:]
    return bare[:22] + struct.pack("<I", page_crc(bare)) + bare[26:]


@pytest.mark.parametrize("chunk_bytes", [1, 26, 27, 28, 100, 100_000])
def test_any_cut_of_the_bytes_gives_the_same_packets(chunk_bytes):
    data = b"".join(pages_of(5, end_samples=4 * SAMPLES))
    reader = OggOpusReader()
    packets = [one for start in range(0, len(data), chunk_bytes) for one in reader.push(data[start : start + chunk_bytes])]
    assert [one.data for one in packets] == [PACKET] * 5
    assert [(one.first, one.stop) for one in packets] == [(312, 960), (0, 960), (0, 960), (0, 960), (0, 312)]
    assert [one.begins for one in packets] == [True, False, False, False, False]
    assert reader.is_whole


def test_one_stream_after_another():
    reader = OggOpusReader()
    packets = reader.push(b"".join(pages_of(2, end_samples=1000) + pages_of(2, end_samples=1000, serial=8)))
    assert sum(one.stop - one.first for one in packets) == 2000
    assert [one.begins for one in packets] == [True, False, True, False]


@pytest.mark.parametrize("split", range(1, 4))
def test_another_reader_goes_on_between_two_pages(split):
    pages = pages_of(4, end_samples=3000)
    first = OggOpusReader()
    before = [one for page in pages[:split] for one in first.push(page)]
    second = OggOpusReader(first.place)
    after = [one for page in pages[split:] for one in second.push(page)]
    assert [*before, *after] == OggOpusReader().push(b"".join(pages))


def test_libsndfile_s_files_are_read_to_the_sample(rng):
    """An independent writer: pages of many packets, tags, a stream of two channels, and its own count of samples."""
    sound = rng.uniform(-0.3, 0.3, (31_777, 2)).astype(np.float32)
    file = io.BytesIO()
    soundfile.write(file, sound, 24_000, format="OGG", subtype="OPUS")
    reader, decoder = OggOpusReader(), OpusDecoder()
    pcm = np.concatenate([decoder.decode(one) for one in reader.push(file.getvalue())])
    file.seek(0)
    theirs = soundfile.read(file, dtype="float32")[0]
    assert (len(pcm), len(theirs)) == (2 * 31_777, 31_777)


def test_libsndfile_reads_ours_to_the_sample():
    file = io.BytesIO(b"".join(pages_of(50, end_samples=47_002)))
    with soundfile.SoundFile(file) as opened:
        assert opened.frames == 23_501  # at 24 kHz


DAMAGE = {
    "no page": (lambda pages: [b"RIFF" + pages[0]], "OggS"),
    "rubbish after a page": (lambda pages: [*pages[:2], b"x"], "OggS"),
    "version": (lambda pages: [resealed(pages[0], 4, b"\1")], "version"),
    "checksum": (lambda pages: [pages[0], pages[1][:-1] + b"\0"], "checksum"),
    "a page missing": (lambda pages: [pages[0], *pages[2:]], "page 3"),
    "another stream's page": (lambda pages: [pages[0], resealed(pages[1], 14, b"\x09")], "stream"),
    "no first page": (lambda pages: pages[1:], "mid-stream"),
    "a first page that continues": (lambda pages: [resealed(pages[0][:47], 5, b"\3")], "continues"),
    "a packet without a beginning": (lambda pages: [pages[0], resealed(pages[1], 5, b"\1")], "torn"),
    "a negative position": (lambda pages: [pages[0], resealed(pages[1], 6, struct.pack("<q", -1))], "position"),
    "a position before its samples": (lambda pages: [pages[0], resealed(pages[1], 6, struct.pack("<q", 10))], "position"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_every_way_a_page_can_lie_is_refused(name):
    damage, told = DAMAGE[name]
    reader = OggOpusReader()
    with pytest.raises(OpusDataError, match=told):
        reader.push(b"".join(damage(pages_of(3))))


def endless_page(number: int) -> bytes:
    """A page full of a packet that goes on."""
    header = PAGE_HEADER.pack(b"OggS", 0, 0 if number == 2 else 1, -1, 7, number, 0, 255)
    return resealed(header + bytes([255] * 255) + bytes(255 * 255), 4, b"\0")


def test_what_waits_is_bounded():
    """A packet that goes on from page to page ends where no packet could be as long."""
    reader = OggOpusReader()
    reader.push(pages_of(1)[0])
    with pytest.raises(OpusDataError, match="61440 bytes"):
        reader.push(endless_page(2))
    assert not reader.place.partial


def test_random_damage_never_raises_anything_else(rng):
    data = b"".join(pages_of(6, end_samples=4000))
    refused = 0
    for _ in range(300):
        hurt = bytearray(data)
        for at in rng.integers(0, len(hurt), rng.integers(1, 4)):
            hurt[at] = rng.integers(0, 256)
        try:
            OggOpusReader().push(bytes(hurt))
        except OpusDataError:
            refused += 1
    assert refused > 200
