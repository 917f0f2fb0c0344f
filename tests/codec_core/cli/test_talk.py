"""``mimi talk``: the library's calls, and what goes around them."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import soundfile

from codec_core import CodecModel, LanguageModel, Sampling
from codec_core.cli.talk_progress import TalkProgress, duration
from codec_core.cli.talk_text import TextSink
from codec_core.convert import convert_model
from codec_core.convert.voice import convert_voice_prompt
from codec_core.gguf_file import GgufFile
from codec_core.pcm import to_int16
from codec_core.persona_prompt import prompt_frames, run_prompt, system_tokens
from codec_core.synth import PRESETS, write_synthetic
from codec_core.synth_tensors import SynthPreset
from codec_core.talk import Talk, Transcript, Words
from codec_core.text_tokenizer import TextTokenizer
from tests.lm_sources import write_raw_tensors
from tests.talk_models import direct_answer

SAMPLES = 6 * 1920 + 777


@pytest.fixture
def question(tmp_path: Path, pcm: np.ndarray) -> Path:
    path = tmp_path / "question.wav"
    soundfile.write(path, to_int16(pcm[:SAMPLES]), 24_000)
    return path


def heard(question: Path, tail_samples: int = 0, late_frames: int = 0) -> np.ndarray:
    samples, _ = soundfile.read(question, dtype="float32")
    padded = -(-(len(samples) + tail_samples) // 1920) * 1920 + late_frames * 1920
    return np.pad(samples, (0, padded - len(samples)))


@pytest.mark.parametrize(("kind", "late"), [("converses", 0), ("lags", 1)])
def test_sound_and_text_are_those_of_the_library(mimi, question, talk_model_path, *, default_model, kind, late) -> None:
    path, output = talk_model_path(kind), question.with_name("answer.wav")
    settings = ("--seed", 7, "--temperature", 0.9, "--top-k", 40, "--tail", 0.2)
    outcome = mimi("talk", question, "-o", output, "--text", "-", "-l", path, *settings)
    assert outcome.status == 0, outcome.errors
    tokens, sound = direct_answer(
        default_model, LanguageModel.open(path), heard(question, 4800, late), Sampling(temperature=0.9, top_k=40, seed=7)
    )
    written, rate = soundfile.read(output, dtype="int16")
    assert (rate, len(written)) == (24_000, SAMPLES + 4800)
    assert np.array_equal(written, to_int16(sound)[: SAMPLES + 4800])
    stream = Transcript(TextTokenizer.open(path), 3)
    text = "".join(stream.push(token) for token in tokens) + stream.flush()
    assert outcome.output.strip() == text.strip()
    assert "times real time" in outcome.errors
    assert f"{output}: 0.71 s; {9 + late} frames in " in outcome.errors
    assert "real time factor" in outcome.errors


def test_a_model_that_only_writes(mimi, question, tmp_path, talk_model_path, default_model) -> None:
    path = talk_model_path("writes")
    outcome = mimi("talk", question, "-l", path, "--text", tmp_path / "said.txt")
    assert outcome.status == 0, outcome.errors
    prefix, delay = 6_000, 12_000
    pcm = np.pad(heard(question)[:SAMPLES], (prefix, delay + 24_000))
    tokens, sound = direct_answer(default_model, LanguageModel.open(path), np.pad(pcm, (0, -len(pcm) % 1920)))
    assert not len(sound)
    stream, words, expected = Transcript(TextTokenizer.open(path), 3), Words(), []
    for index, token in enumerate(tokens):
        expected += words.push(stream.push(token), max(0.0, index * 0.08 - 0.25 - 0.5))
    expected += words.push(stream.flush(), expected[-1][0])
    expected += words.flush()
    assert (tmp_path / "said.txt").read_text() == "".join(f"{at_s:.2f}\t{word}\n" for at_s, word in expected)
    refused = mimi("talk", question, "-l", path, "-o", tmp_path / "x.wav")
    assert refused.status == 2
    assert "only writes" in refused.errors


def test_a_script_reads_it_all(mimi, question, talk_model_path, default_model) -> None:
    path = talk_model_path("converses")
    outcome = mimi("talk", question, "-l", path, "--json", "--text-temperature", 0)
    assert outcome.status == 0, outcome.errors
    assert outcome.errors == ""
    result = json.loads(outcome.output)
    tokens, _ = direct_answer(default_model, LanguageModel.open(path), heard(question), Sampling(text_temperature=0.0))
    assert result["text_tokens"] == tokens
    assert "".join(word for _, word in result["words"]) == result["text"].replace(" ", "")
    assert (result["frames"], result["samples"], result["output"]) == (7, 0, None)
    assert result["language_model"]["sha256"] == LanguageModel.open(path).info.sha256
    assert result["real_time_factor"] > 0


@pytest.fixture(scope="module")
def wide_codec_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small codec with 2048 codes a codebook, which the prompts of PersonaPlex are made of."""
    path = tmp_path_factory.mktemp("codec") / "wide.gguf"
    PRESETS["many-codes"] = SynthPreset("many-codes", 4, 16, 2, 2, 32, 8, 2048, 8)
    try:
        write_synthetic(path.with_suffix(".safetensors"), "many-codes")
    finally:
        del PRESETS["many-codes"]
    convert_model(path.with_suffix(".safetensors"), path)
    return path


def test_a_voice_and_a_prompt(mimi, question, tmp_path, *, talk_model_path, wide_codec_path, pcm) -> None:
    path, voice, output = talk_model_path("persona", 2048), tmp_path / "voice.wav", tmp_path / "answer.wav"
    soundfile.write(voice, to_int16(pcm[20_000:28_000]), 24_000)
    outcome = mimi("talk", question, "-o", output, "-l", path, "-m", wide_codec_path, "--voice", voice, "--prompt", "ka lo")
    assert outcome.status == 0, outcome.errors
    codec, language, tokenizer = CodecModel.open(wide_codec_path), LanguageModel.open(path), TextTokenizer.open(path)
    samples, _ = soundfile.read(voice, dtype="float32")
    codes = codec.encoder(8).push(samples)
    session = language.session(Sampling())
    run_prompt(session, prompt_frames(codes, system_tokens(tokenizer, "ka lo"), language.info.text_padding_id))
    talk = Talk(codec, language, session, tokenizer)
    sounds = [talk.hear(frame).pcm for frame in heard(question).reshape(-1, 1920)]  # type: ignore[union-attr]
    written, _ = soundfile.read(output, dtype="int16")
    assert np.array_equal(written, to_int16(np.concatenate(sounds))[:SAMPLES])  # type: ignore[arg-type]
    plain = mimi("talk", question, "-o", tmp_path / "plain.wav", "-l", path, "-m", wide_codec_path)
    assert plain.status == 0, plain.errors
    assert not np.array_equal(soundfile.read(tmp_path / "plain.wav", dtype="int16")[0], written)


def test_a_stored_voice(mimi, question, tmp_path, *, talk_model_path, wide_codec_path, rng) -> None:
    """Its file is read and checked; another kind of file is no voice."""
    path, model = tmp_path / "voice.gguf", talk_model_path("persona", 2048)
    info = LanguageModel.open(model).info
    rows = GgufFile(model).rows("lm.text_emb.weight")[:9]
    ring = rng.integers(0, 90, (info.audio_channels + 1, 4)).astype(np.int32)
    kinds = gguf.GGMLQuantizationType
    write_raw_tensors(tmp_path / "raw.gguf", {"voice.embeddings": (rows, kinds.F32), "voice.cache": (ring, kinds.I32)})
    convert_voice_prompt(tmp_path / "raw.gguf", path)
    command = ("talk", question, "-o", tmp_path / "answer.wav", "-l", model, "-m", wide_codec_path, "--voice")
    outcome = mimi(*command, path)
    assert outcome.status == 0, outcome.errors
    assert soundfile.info(tmp_path / "answer.wav").frames == SAMPLES
    assert "a voice prompt" in mimi(*command, model).errors


@pytest.mark.parametrize(
    ("kind", "arguments", "status", "message"),
    [
        ("reads_out", (), 1, "none: it hears nobody, expected a model that hears"),
        ("converses", ("--voice", "voice.wav"), 2, "a PersonaPlex model"),
        ("converses", ("--condition", "mood"), 2, "--condition: found 'mood', expected NAME=LABEL"),
        ("converses", ("--condition", "mood=good"), 2, "none: the model takes no conditions"),
        ("converses", ("--temperature", 0.0001), 2, "0.001"),
    ],
)
def test_refused_by_name(mimi, question, talk_model_path, *, kind, arguments, status, message) -> None:
    output = question.with_name("answer.wav")
    outcome = mimi("talk", question, "-o", output, "-l", talk_model_path(kind), *arguments)
    assert outcome.status == status, outcome.errors
    assert message in outcome.errors
    assert not output.exists()


def test_a_codec_with_other_codes(mimi, question, talk_model_path, tiny_model_path) -> None:
    outcome = mimi("talk", question, "-l", talk_model_path("converses"), "-m", tiny_model_path)
    assert outcome.status == 1
    assert "found 1024, expected 32, as the codec" in outcome.errors


def test_the_time_it_takes_is_told_before_and_corrected() -> None:
    progress = TalkProgress(4500, 0.133, quiet=False)
    assert progress.estimate() == "about 9 min 58 s for 4500 frames: 133 ms a frame, 1.66 times real time"
    assert progress.line(1500, 300.0) == "1500 of 4500 frames, about 10 min 0 s left"
    assert [duration(seconds) for seconds in (3.21, 59.9, 60, 3600, 7290)] == [
        "3.2 s",
        "59.9 s",
        "1 min 0 s",
        "1 h 0 min",
        "2 h 1 min",
    ]


def test_without_pieces_tokens_are_written() -> None:
    written: list[str] = []
    sink = TextSink(written.append, with_times=False, has_pieces=False)
    for token in (3, 17, 0, 5):
        sink.take(token, "", 0.0)
    sink.end("")
    assert ("".join(written), sink.text, sink.tokens) == ("17 5\n", "17 5", [3, 17, 0, 5])
