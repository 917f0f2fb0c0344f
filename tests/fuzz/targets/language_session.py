"""A language model's session: its part of a snapshot, then steps with any tokens: as ``fuzz_language_session.cc``.

Input: a byte that chooses the model, one whether noise is given, the size of the state (u16; 0: a new session); the state; then
for each step tokens, i16: the user's, text, codes, codes to keep; and noise, f32; zero behind the end. What is taken is exactly
what :func:`save_state` gives; what a step refuses moves no session; a lane does not see who stands beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from codec_core import _ext
from codec_core.errors import CodeRangeError, NumericOverflowError, SettingError, SnapshotError
from codec_core.language_model import LanguageModel
from codec_core.language_session import Given, LanguageSession, Sampling
from tests.fuzz.language_materials import language_model
from tests.fuzz.materials import require_typed

COVERED: Final = (
    "ext/lm/choose_token.cc",
    "ext/lm/conditions.cc",
    "ext/lm/depformer.cc",
    "ext/lm/gated_layer.cc",
    "ext/lm/language_batch.cc",
    "ext/lm/language_session.cc",
    "ext/lm/random_stream.cc",
    "ext/lm/session_snapshot.cc",
    "ext/lm/temporal_model.cc",
    "ext/lm/token_embedding.cc",
    "ext/lm/token_ring.cc",
)
DICTIONARY: Final = (
    b"\x00\x00\xc0\x7f",
    b"\x00\x00\x80\x7f",
    b"\xff\xff\x7f\x7f",
    b"\x71\x02\x00\x00\x00\x00\x00\x00",
    b"\x70\x02\x00\x00",
    b"\x00\x00\x00\x00\x00\x00\xf0\x3f",
    b"\x01\x00\x00\x00\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xfe\xff",
    b"\xff\xff",
    b"\xfe\xff\xff\xff",
)
NAMES: Final = ("plain", "told", "grouped")
STEPS: Final = 4
NOISE_ENTRIES: Final = 8
_HEAD: Final = struct.Struct("<BBH")


def new_session(model: LanguageModel, sampling: Sampling | None = None) -> LanguageSession:
    told = {one.name: 0 if one.label_count else np.full((1, one.width), 0.5, np.float32) for one in model.info.conditioners}
    racing = Sampling(text_temperature=0.7, text_top_k=3, temperature=0.7, top_k=3, seed=5)
    return model.session(sampling or racing, told)


def one_input(data: bytes) -> None:
    if len(data) < _HEAD.size:
        return
    choice, is_noisy, size = _HEAD.unpack_from(data)
    model = language_model(NAMES[choice % len(NAMES)])
    state, rest = data[_HEAD.size : _HEAD.size + size], data[_HEAD.size + size :]
    try:
        first, alone = (_restored(model, state) if state else new_session(model) for _ in range(2))
    except SnapshotError as error:
        require_typed(error)
        return
    assert not state or first.native.save_state() == state
    beside = new_session(model)
    for _ in range(STEPS):
        if not rest:
            return
        user, given, rest = _taken(model, rest, is_noisy=bool(is_noisy & 1))
        if not _step(model, (first, beside, alone), user, given):
            return


def _restored(model: LanguageModel, state: bytes) -> LanguageSession:
    return LanguageSession(_ext.LanguageSession.restore(model._native, state), model.info)


def _taken(model: LanguageModel, rest: bytes, *, is_noisy: bool) -> tuple[np.ndarray, Given, bytes]:
    info = model.info
    counts = np.cumsum([info.user_levels, 1, info.own_levels, info.own_levels])
    size = 2 * int(counts[-1])
    user, text, codes, kept, _ = np.split(np.frombuffer(rest[:size].ljust(size, b"\0"), "<i2").astype(np.int32), counts)
    rest = rest[size:]
    noise = None
    if is_noisy:
        size = 4 * (1 + info.own_levels) * NOISE_ENTRIES
        noise = np.frombuffer(rest[:size].ljust(size, b"\0"), "<f4").reshape(-1, NOISE_ENTRIES)
        rest = rest[size:]
    return user, Given(int(text[0]), codes, kept, noise), rest


def _step(
    model: LanguageModel, sessions: tuple[LanguageSession, LanguageSession, LanguageSession], user: np.ndarray, given: Given
) -> bool:
    first, beside, alone = sessions
    before = [session.native.save_state() for session in (first, beside)]
    calm = Given(noise=None if given.noise is None else np.ones_like(given.noise))
    try:
        both = model.step_batch([first, beside], np.stack([user, np.zeros_like(user)]), [given, calm])
    except (CodeRangeError, NumericOverflowError, SettingError) as error:
        require_typed(error)
        assert [session.native.save_state() for session in (first, beside)] == before
        return False
    single = alone.step(user, given)
    assert (both[0] is None) == (single is None)
    assert both[0] is None or single is None or (both[0][0] == single[0] and np.array_equal(both[0][1], single[1]))
    assert first.native.save_state() == alone.native.save_state()
    return True


def seeds() -> Iterator[bytes]:
    for choice, name in enumerate(NAMES):
        model = language_model(name)
        yield from (_input(choice, b"", tokens) for tokens in _tokens(model))
        yield from (_input(choice, b"", tokens + noise, 1) for tokens in _tokens(model) for noise in _noises(model))
        for generator in ("counted", "torch-cpu"):
            session = new_session(model, Sampling(generator=generator, text_top_k=2, top_k=0))
            for steps in (0, 1, 5):
                for _ in range(steps):
                    session.step(np.zeros(model.info.user_levels, np.int32))
                yield _input(choice, session.native.save_state(), next(_tokens(model)))
        yield from (_input(choice, state, next(_tokens(model))) for state in _damaged(session.native.save_state()))


def _input(choice: int, state: bytes, rest: bytes, noisy: int = 0) -> bytes:
    return _HEAD.pack(choice, noisy, len(state)) + state + rest


def _tokens(model: LanguageModel) -> Iterator[bytes]:
    info = model.info
    count = info.user_levels + 1 + 2 * info.own_levels
    for token in (-2, 0, -1, info.codebook_entries, info.codebook_entries + 1, info.text_entries, 32_767, -32_768):
        row = np.full(count, token, "<i2")
        yield row.tobytes()
        row[: info.user_levels] = 1
        yield row.tobytes() * 4
    yield np.array([*[0] * info.user_levels, *[-2] * (count - info.user_levels)] * 4, "<i2").tobytes()


def _noises(model: LanguageModel) -> Iterator[bytes]:
    count = (1 + model.info.own_levels) * NOISE_ENTRIES
    yield from (np.full(count, value, "<f4").tobytes() for value in (0.0, 1.0, -1.0, np.nan, np.inf, 1e-45))


def _damaged(state: bytes) -> Iterator[bytes]:
    """A state is: generator u8, seed u64, twice temperature f64 and top_k u64, then counted arrays."""
    yield from (state[:size] for size in (1, 9, 17, 40, 49, 2_600, len(state) - 1))
    yield b"\x02" + state[1:]
    for temperature in (-1.0, 1e-300, 1e-4, 1e9, float("nan")):
        yield state[:9] + struct.pack("<d", temperature) + state[17:]
        yield state[:25] + struct.pack("<d", temperature) + state[33:]
    yield state[:17] + b"\xff" * 8 + state[25:]
    yield state[:41] + b"\xff" * 8 + state[49:]
    yield state[:49] + b"\xff" * 2500 + state[49 + 2500 :]
    behind = 49 + 2500
    yield from (state[:behind] + struct.pack("<Q", count) + state[behind + 8 :] for count in (0, 1, 8, 1 << 61))
    yield from (state[: -4 * place] + struct.pack("<f", 3e38) * place for place in (1, 8, 40))
    yield state[:-4] + struct.pack("<f", float("nan"))
