"""The language model's Python side: what it says of itself, what it takes and refuses, and its snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codec_core import LanguageModel, Sampling
from codec_core.errors import (
    CodeRangeError,
    InputShapeError,
    InputTypeError,
    ModelAccessError,
    ModelContractError,
    NumericOverflowError,
    SessionBusyError,
    SessionClosedError,
    SettingError,
)
from codec_core.language_session import FREE, GREEDY, ZERO, Given
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import lm_metadata, write_lm

ROWS = np.linspace(-1, 1, 4 * 32, dtype=np.float32).reshape(4, 32)
Models = Callable[..., LanguageModel]


@pytest.fixture
def model(language_models: Models) -> LanguageModel:
    return language_models("a")


def test_info_is_what_the_file_says(language_models: Models, language_model_path: Callable[..., Path]):
    info = language_models("a").info
    assert info.path == str(language_model_path("a"))
    assert (info.name, info.weight_class, info.numerics) == ("a-fused-f32", "f32", "kyutai")
    assert (info.audio_channels, info.own_levels, info.user_levels) == (8, 4, 4)
    assert (info.codebook_entries, info.text_entries, info.text_padding_id) == (64, 96, 3)
    assert info.delays_steps == (0, 0, 1, 1, 1, 0, 1, 1, 1)
    assert (info.max_delay_steps, info.context_steps, info.extra_heads, info.conditioners) == (1, 24, 0, ())
    # Keys and values of 4 layers of 4 heads of 32, with a slot more than the context.
    assert info.state_bytes == 2 * 4 * 4 * 32 * 25 * 4
    assert info.weights_bytes == pytest.approx(4 * sum(array.size for array in lm_arrays("a").values()), rel=0.01)
    assert repr(language_models("a")) == f"<LanguageModel a-fused-f32: f32, 4 + 4 levels, {info.isa}>"
    conditioners = {conditioner.name: conditioner.labels for conditioner in language_models("c").info.conditioners}
    assert conditioners == {"cfg": ("1.0", "1.5", "2.0"), "control": ("ok",), "speaker_wavs": ()}


def test_answers_begin_after_the_longest_delay(language_models: Models):
    for name, expected in (("a", 1), ("b", 2), ("s", 0)):
        session = language_models(name).session(GREEDY)
        answers = [session.step(range(8)) for _ in range(4)]
        assert [answer is None for answer in answers] == [step < expected for step in range(4)]
        text, codes = answers[-1]
        assert isinstance(text, int)
        assert codes is None if name == "s" else (codes.dtype, codes.shape) == (np.int32, (4,))


def test_models_without_codes_are_greedy_unless_told_otherwise(language_models: Models):
    model = language_models("s")
    plain, greedy, racing = (
        model.session(sampling) for sampling in (None, GREEDY, Sampling(text_temperature=50.0, text_top_k=0))
    )
    said = [[session.step(range(8))[0] for _ in range(12)] for session in (plain, greedy, racing)]
    assert said[0] == said[1] != said[2]
    talking = language_models("a")
    assert [talking.session().step(range(4)) for _ in range(2)][1] is None or talking.session().position_steps == 0


def test_surplus_codes_are_ignored_and_fewer_refused(model: LanguageModel):
    one, other = model.session(), model.session()
    for step in range(6):
        assert str(one.step([step, 2, 3, 4])) == str(other.step([step, 2, 3, 4, 63, -7]))
    assert one.snapshot() == other.snapshot()
    with pytest.raises(InputShapeError, match="found 3 a step, expected at least 4"):
        one.step([1, 2, 3])
    with pytest.raises(InputShapeError, match=r"\[4\]: one step"):
        one.step([[1, 2, 3, 4]])
    with pytest.raises(InputTypeError):
        one.step([0.5, 1, 2, 3])


@pytest.mark.parametrize("code", [-2, -3, 65, 2**31 - 1])
def test_codes_out_of_range(model: LanguageModel, code: int):
    session = model.session()
    with pytest.raises(CodeRangeError, match=f"user code 2 of lane 0: found {code}, expected -1 .. 64"):
        session.step([1, 2, code, 4])
    given = FREE if code == -2 else code
    if given != FREE:
        with pytest.raises(CodeRangeError, match="code 1 of lane 0"):
            session.step([1, 2, 3, 4], Given(codes=[FREE, given, FREE, FREE]))
        with pytest.raises(CodeRangeError, match="kept code 3 of lane 0"):
            session.step([1, 2, 3, 4], Given(kept=[FREE, FREE, FREE, given]))
    assert session.position_steps == 0


def test_given_codes_of_another_shape(model: LanguageModel):
    with pytest.raises(InputShapeError, match="given codes of lane 0"):
        model.session().step([1, 2, 3, 4], Given(codes=[1, 2, 3]))


def test_given_tokens_are_read_back_and_come_out(model: LanguageModel):
    session = model.session(GREEDY)
    for step in range(4):
        answer = session.step([1, 2, 3, 4], Given(text=50 + step, codes=[step, 10 + step, 20 + step, ZERO]))
    # Text and the first code of the step before, the others of this one.
    assert answer[0] == 52
    assert answer[1].tolist() == [2, 13, 23, ZERO]


def test_kept_codes_do_not_change_what_else_was_chosen(model: LanguageModel):
    def logits(given: Given) -> bytes:
        seen: list[bytes] = []
        model.session(GREEDY).step([1, 2, 3, 4], given, lambda _name, values: seen.append(values.tobytes()))
        return b"".join(seen)

    free = logits(Given())
    assert logits(Given(kept=[5, 6, FREE, ZERO])) == free
    assert logits(Given(codes=[5, 6, FREE, ZERO])) != free


def test_batches_are_checked(model: LanguageModel, language_models: Models):
    sessions = [model.session(), model.session()]
    with pytest.raises(InputShapeError, match="one row for each of 2 sessions"):
        model.step_batch(sessions, [[1, 2, 3, 4]])
    with pytest.raises(InputShapeError, match="given"):
        model.step_batch(sessions, [[1, 2, 3, 4]] * 2, [Given()])
    with pytest.raises(InputShapeError):
        model.step_batch([], [])
    with pytest.raises(SettingError, match="session 1"):
        model.step_batch([sessions[0], language_models("b").session()], [[1, 2, 3, 4]] * 2)
    with pytest.raises(InputTypeError, match="session 0"):
        model.step_batch(["a", "b"], [[1, 2, 3, 4]] * 2)
    assert [session.position_steps for session in sessions] == [0, 0]


def test_conditions_are_checked(language_models: Models):
    model = language_models("c")
    with pytest.raises(SettingError, match=r"speaker_wavs.*found 0 rows"):
        model.session(conditions={"control": "ok"})
    with pytest.raises(SettingError, match=r"'cfg'.*found '3\.0'.*1\.0, 1\.5, 2\.0"):
        model.session(conditions={"cfg": "3.0", "speaker_wavs": ROWS})
    with pytest.raises(SettingError, match="found mood, expected cfg, control, speaker_wavs"):
        model.session(conditions={"mood": "ok", "speaker_wavs": ROWS})
    with pytest.raises(InputShapeError, match=r"\[rows, 32\]"):
        model.session(conditions={"speaker_wavs": ROWS[:, :31]})
    with pytest.raises(InputShapeError, match="condition rows"):
        model.session(conditions={"speaker_wavs": (ROWS, [True])})
    with pytest.raises(SettingError, match="not finite"):
        model.session(conditions={"speaker_wavs": ROWS * np.inf})
    with pytest.raises(SettingError, match="the model takes no conditions"):
        language_models("a").session(conditions={"cfg": "1.0"})


def test_a_label_and_its_number_are_the_same(language_models: Models):
    model = language_models("c")
    totals = [
        model.session(conditions={"cfg": label, "speaker_wavs": ROWS}).native.condition_vectors[0]
        for label in ("1.5", 1, "2.0")
    ]
    assert np.array_equal(totals[0], totals[1])
    assert not np.array_equal(totals[0], totals[2])


def test_labels_that_contradict_the_tensors(tmp_path: Path):
    metadata = lm_metadata(LM_CONFIGS["c"])
    for text, found in (
        ('{"cfg": {"type": "lut", "lut": {"possible_values": ["a"]}}}', "1 labels of 'cfg'"),
        ("[", "JSONDecodeError"),
    ):
        path = write_lm(tmp_path / "model.gguf", lm_arrays("c"), {**metadata, "moshi.lm.conditioners": text})
        with pytest.raises(ModelContractError, match=r"moshi\.lm\.conditioners") as caught:
            LanguageModel.open(path)
        assert found in caught.value.found


def test_a_closed_session_refuses(model: LanguageModel):
    with model.session() as session:
        session.step([1, 2, 3, 4])
    session.close()
    for call in (lambda: session.step([1, 2, 3, 4]), session.reset, session.snapshot):
        with pytest.raises(SessionClosedError):
            call()


def test_a_second_thread_is_refused(model: LanguageModel):
    session = model.session()
    refused: list[type[Exception]] = []

    def intrude(_name: str, _values: np.ndarray) -> None:
        def attempt() -> None:
            try:
                session.step([1, 2, 3, 4])
            except SessionBusyError as error:
                refused.append(type(error))

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    session.step([1, 2, 3, 4], observer=intrude)
    assert refused
    assert session.position_steps == 1


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(ModelAccessError, match=r"none\.gguf"):
        LanguageModel.open(tmp_path / "none.gguf")


def test_threads_out_of_bounds(language_model_path: Callable[..., Path]):
    for threads in (0, 257):
        with pytest.raises(SettingError, match="threads"):
            LanguageModel.open(language_model_path("a"), threads)


def test_labels_nested_without_end_are_refused(tmp_path: Path):
    metadata = lm_metadata(LM_CONFIGS["a"]) | {"moshi.lm.conditioners": "[" * 100_000}
    with pytest.raises(ModelContractError, match=r"key 'moshi\.lm\.conditioners'"):
        LanguageModel.open(write_lm(tmp_path / "deep.gguf", lm_arrays("a"), metadata))


def test_extra_heads_out_of_range_are_refused_and_move_nothing(tmp_path: Path):
    arrays = lm_arrays("s")
    arrays["extra_heads.0.weight"] = np.full_like(arrays["extra_heads.0.weight"], 3e38)
    session = LanguageModel.open(write_lm(tmp_path / "loud.gguf", arrays, lm_metadata(LM_CONFIGS["s"]))).session()
    with pytest.raises(NumericOverflowError, match="extra heads of lane 0"):
        session.step([1] * 8)
    assert session.position_steps == 0
