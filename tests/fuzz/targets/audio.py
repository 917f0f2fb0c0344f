"""Sound: files as REST and the command line take them, raw PCM as streams bring it, and both through the resampler.

Input: one byte that chooses, then the file; or four bytes of settings, then PCM, cut anywhere.
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np
import soundfile

from codec_core.audio_file import AudioReader, open_sound, open_wav
from codec_core.errors import AudioFileError, InputShapeError, InputTypeError, NonFiniteInputError, SettingError
from codec_core.pcm import PCM_DTYPES, PcmIntake, to_int16
from codec_core.wav_header import declared_wav_samples, wav_header
from server.errors import PayloadError
from server.sample_format import AudioIntake, AudioOutlet
from server.wire_settings import FORMATS, StreamSettings
from tests.fuzz.materials import folder, require_typed

COVERED: Final = (
    "codec_core/audio_file.py",
    "codec_core/pcm.py",
    "codec_core/wav_header.py",
    "server/resampling.py",
    "server/sample_format.py",
)
DICTIONARY: Final = (
    b"RIFF",
    b"WAVE",
    b"fmt \x10\x00\x00\x00",
    b"data",
    b"LIST",
    b"RF64",
    b"ds64",
    b"fLaC",
    b"OggS",
    b"OpusHead",
    b"\x01vorbis",
    b"FORM",
    b"AIFF",
    b"COMM",
    b"SSND",
    b".snd",
    b"\xff\xfb",
    b"ID3",
    b"\xff\xff\xff\xff",
    b"\x00\x00\xc0\x7f",
    b"\x00\x00\x80\x7f",
    b"\x02\x00",
    b"\xfe\xff",
    b"\x00\x7d\x00\x00",
    b"caff",
    b"wvpk",
)
FILE, CHANNEL, STREAM, INTAKE = range(4)
RATES_HZ: Final = (24_000, 8_000, 11_025, 16_000, 44_100, 48_000, 96_000)
MOST_SAMPLES: Final = 24_000 * 4
"""Of one file; a service stops at the longest clip, and what decodes to hours would only be slow here."""


def one_input(data: bytes) -> None:
    kind, content = (data[0] % 4 if data else 0), data[1:]
    try:
        if kind in (FILE, CHANNEL):
            _read_file(content, None if kind == FILE else 1)
        elif kind == STREAM:
            _stream(content)
        else:
            _intake(content)
    except (AudioFileError, NonFiniteInputError, PayloadError, SettingError, InputShapeError, InputTypeError) as error:
        require_typed(error)


def _read_file(content: bytes, channel: int | None) -> None:
    declared = declared_wav_samples(io.BytesIO(content))
    assert declared is None or declared < 1 << 32
    with AudioReader(io.BytesIO(content), "body", channel=channel) as reader:
        pieces = []
        for piece in reader.pcm():
            assert piece.dtype == np.float32
            pieces.append(piece)
            if sum(map(len, pieces)) > MOST_SAMPLES:
                break
        assert reader.read_samples >= 0
        assert reader.expected_samples >= 0
        assert reader.missing is None or "ends early" in reader.missing
    if pieces:
        # A resampler may overflow near the largest floats; what is to be encoded is looked at once more by the session.
        _write_files(np.nan_to_num(np.concatenate(pieces)[:4_000]))


def _write_files(pcm: np.ndarray) -> None:
    path = folder() / "written.wav"
    with open_wav(path) as wav:
        wav.write(pcm)
    with AudioReader(path) as reader:
        assert np.array_equal(to_int16(np.concatenate(list(reader.pcm()))), to_int16(pcm))
    with open_sound(io.BytesIO(), "FLAC") as flac:
        flac.write(pcm)


def _stream(content: bytes) -> None:
    """PCM of the wire, whole and in pieces, makes the same samples; and goes out again."""
    if len(content) < 4:
        return
    form, rate, channels, cut = content[0] % 3, content[1] % len(RATES_HZ), 1 + content[2] % 2, 1 + content[3]
    settings = StreamSettings("echo", 2, FORMATS[form], RATES_HZ[rate], channels, "binary", "off", "kyutai")
    whole, pieces = AudioIntake(settings), AudioIntake(settings)
    samples = [whole.push(content[4:]), whole.flush()]
    cuts = [pieces.push(content[start : start + cut]) for start in range(4, len(content), cut)]
    state, restored = pieces.state(), AudioIntake(settings)
    restored.restore(state, pieces.received_samples)
    assert np.array_equal(np.concatenate([*cuts, pieces.flush()]), np.concatenate(samples), equal_nan=True)
    outlet, other = AudioOutlet(settings), AudioOutlet(settings)
    # What the decoder makes is within the range of f32 by far.
    spoken = np.clip(np.nan_to_num(np.concatenate(samples)), -8, 8)
    sent = outlet.push(spoken)
    other.restore(outlet.state(), outlet.sent_samples)
    assert other.sent_samples == outlet.sent_samples
    assert len(sent + outlet.flush()) <= 16 * len(content) + 65_536
    restored.drop_split_sample()
    restored.flush()


def _intake(content: bytes) -> None:
    """The library's way in, of any element type and shape."""
    if len(content) < 8:
        return
    rate_hz, channels, kind, given = struct.unpack_from("<IBBB", content)
    dtype = PCM_DTYPES[kind % 3]
    intake = PcmIntake(rate_hz % 800_000, channels % 70, dtype)
    array = np.frombuffer(content[8 : 8 + (len(content) - 8) // 8 * 8], dtype if given % 4 else "<i8")
    shape = (-1, intake.channels) if given % 3 else (-1,)
    rows = array[: len(array) // intake.channels * intake.channels].reshape(shape)
    made = [intake.push(half) for half in np.array_split(rows, 2)]
    assert intake.position_samples == len(rows)
    made.append(intake.flush())
    assert all(piece.dtype == np.float32 and piece.ndim == 1 for piece in made)


CONTAINERS: Final = (
    ("WAV", "PCM_16"),
    ("WAV", "FLOAT"),
    ("WAV", "ULAW"),
    ("WAV", "IMA_ADPCM"),
    ("WAV", "DOUBLE"),
    ("WAVEX", "PCM_24"),
    ("RF64", "PCM_16"),
    ("FLAC", "PCM_16"),
    ("OGG", "VORBIS"),
    ("OGG", "OPUS"),
    ("MP3", "MPEG_LAYER_III"),
    ("AIFF", "PCM_16"),
    ("AU", "ULAW"),
    ("CAF", "ALAC_16"),
    ("W64", "PCM_16"),
    ("RAW", "PCM_16"),
    ("PAF", "PCM_16"),
    ("VOC", "PCM_U8"),
    ("NIST", "PCM_16"),
)


def seeds() -> Iterator[bytes]:
    time_s = np.arange(1_200) / 24_000
    pcm = 0.5 * np.sin(2 * np.pi * 440 * time_s)
    stereo = np.stack([pcm, -pcm], 1)
    for container, subtype in CONTAINERS:
        for samples, rate in ((pcm, 24_000), (stereo, 48_000)):
            stream = io.BytesIO()
            if container in soundfile.available_formats() and soundfile.check_format(container, subtype):
                soundfile.write(stream, samples, rate, format=container, subtype=subtype)
                yield bytes([FILE if samples is pcm else CHANNEL]) + stream.getvalue()
    yield from _headers()
    yield from _raw((pcm[:600] * 9000).astype("<i2").tobytes())


def _headers() -> Iterator[bytes]:
    whole = wav_header(100, 24_000) + bytes(200)
    for start, value in itertools.product((4, 20, 22, 24, 32, 34, 40), (0, 1, 0x7F, 0xFF)):
        yield bytes([FILE]) + whole[:start] + bytes([value]) * 2 + whole[start + 2 :]
    yield from (
        bytes([FILE]) + content
        for content in (b"", b"RIFF", whole[:30], whole[:-7], b"<html>", whole[:12] + b"LIST\xff\xff\xff\xff")
    )
    samples = wav_header(4, 24_000)[:20] + b"\x03\x00" + wav_header(4, 24_000)[22:34] + b"\x20\x00" + b"data\x10\x00\x00\x00"
    yield from (bytes([FILE]) + samples + struct.pack("<4f", 0, 1, value, 0) for value in (float("nan"), float("inf"), 3e38))


def _raw(sound: bytes) -> Iterator[bytes]:
    for form, rate, channels in itertools.product(range(3), range(len(RATES_HZ)), range(2)):
        yield bytes([STREAM, form, rate, channels, 30]) + sound
    yield bytes([STREAM, 1, 0, 0, 9]) + struct.pack("<3f", 0, float("nan"), 1)
    yield bytes([STREAM, 0, 1, 1, 9]) + bytes(7)
    for rate_hz, channels, kind, given in (
        (24_000, 1, 0, 1),
        (48_000, 2, 1, 1),
        (44_100, 1, 2, 2),
        (3, 1, 0, 1),
        (24_000, 0, 0, 1),
        (24_000, 69, 0, 1),
        (24_000, 2, 1, 3),
        (24_000, 1, 1, 4),
    ):
        yield bytes([INTAKE]) + struct.pack("<IBBBB", rate_hz, channels, kind, given, 0) + bytes(960)
    yield bytes([INTAKE]) + struct.pack("<IBBBB", 24_000, 2, 1, 1, 0) + struct.pack("<8f", *([3e38] * 8))
