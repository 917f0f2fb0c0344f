from __future__ import annotations

import numpy as np
import pytest

from codec_core.client.outbox import Chunk, Outbox, Place
from codec_core.errors import InternalError, UnavailableError


def outbox(*, keeps: bool = True, max_held_bytes: int = 1 << 20) -> Outbox:
    return Outbox(2, keeps=keeps, max_held_bytes=max_held_bytes)


def send_all(box: Outbox, most_bytes: int = 1000) -> list[bytes | str]:
    sent: list[bytes | str] = []
    while (entry := box.peek(most_bytes)) is not None:
        sent.append(entry.data if isinstance(entry, Chunk) else entry.kind)
        box.advance()
    return sent


def test_input_goes_out_in_order_cut_to_size():
    box = outbox()
    box.append(b"abcdef")
    box.append_control("flush")
    box.append(b"gh")
    box.append(b"")
    assert (box.unsent_bytes, box.held_bytes, box.has_unsent) == (8, 0, True)
    assert send_all(box, 4) == [b"abcd", b"ef", "flush", b"gh"]
    assert (box.unsent_bytes, box.held_bytes, box.has_unsent) == (0, 8, False)
    assert box.peek(4) is None


def test_going_back_sends_again_from_there_what_stands_at_the_place_included():
    box = outbox()
    box.append(b"abcd")
    box.append_control("flush")
    box.append(b"efgh")
    send_all(box)
    cases = ((0, 0, [b"abcd", "flush", b"efgh"]), (1, 0, [b"cd", "flush", b"efgh"]), (3, 1, [b"gh"]), (4, 1, []))
    for units, flushes, again in cases:
        box.rewind(0, units, flushes)
        assert send_all(box) == again
    for flushes, again in ((0, ["flush", b"ef", b"gh"]), (1, [b"ef", b"gh"])):
        box.rewind(0, 2, flushes)
        assert box.unsent_bytes == 4
        assert send_all(box) == again


def test_what_is_safe_is_forgotten_to_the_byte():
    box = outbox()
    box.append(b"abcdefgh")
    send_all(box)
    box.release(0, 3)
    assert box.held_bytes == 2
    box.release(0, 1)
    box.rewind(0, 3, 0)
    assert send_all(box) == [b"gh"]
    with pytest.raises(UnavailableError, match=r"from 2 of epoch 0 asked for again.*max_held_bytes"):
        box.rewind(0, 2, 0)


def test_what_is_not_sent_is_never_forgotten():
    box = outbox(max_held_bytes=4)
    box.append(b"abcd")
    send_all(box)
    box.append(b"efgh")
    box.release(0, 100)
    assert send_all(box) == [b"efgh"]


def test_the_room_has_a_bound_and_the_oldest_goes():
    box = outbox(max_held_bytes=6)
    for pair in (b"ab", b"cd", b"ef", b"gh", b"ij"):
        box.append(pair)
    send_all(box)
    assert box.held_bytes == 6
    box.rewind(0, 2, 0)
    assert send_all(box) == [b"ef", b"gh", b"ij"]
    with pytest.raises(UnavailableError):
        box.rewind(0, 1, 0)


def test_without_a_promise_to_resume_nothing_is_kept():
    box = outbox(keeps=False)
    box.append(b"abcd")
    box.append_control("flush")
    send_all(box)
    assert box.held_bytes == 0
    with pytest.raises(UnavailableError):
        box.rewind(0, 0, 0)


def test_a_reset_starts_places_anew_and_stands_between_them():
    box = outbox()
    box.append(b"abcd")
    box.append_control("reset")
    box.append(b"ef")
    assert box.end == Place(1, 2)
    send_all(box)
    box.rewind(0, 1, 0)
    assert send_all(box) == [b"cd", "reset", b"ef"]
    box.rewind(1, 0, 0)
    assert send_all(box) == [b"ef"]
    box.release(1, 0)
    box.rewind(1, 0, 0)
    assert send_all(box) == [b"ef"]
    with pytest.raises(UnavailableError):
        box.rewind(0, 1, 0)


def test_flushes_are_counted_in_their_epoch():
    box = outbox()
    kinds = ("flush", "flush", "reset", "flush", "close")
    assert [box.append_control(kind).ordinal for kind in kinds] == [1, 2, 0, 1, 0]
    send_all(box)
    for epoch, flushes, again in ((0, 1, list(kinds[1:])), (0, 2, list(kinds[2:])), (1, 0, list(kinds[3:])), (1, 1, ["close"])):
        box.rewind(epoch, 0, flushes)
        assert send_all(box) == again


def test_a_service_cannot_hold_what_was_never_given():
    box = outbox()
    box.append(b"ab")
    with pytest.raises(InternalError):
        box.rewind(0, 2, 0)


def test_any_course_sends_each_byte_in_its_place(rng: np.random.Generator):
    """What a service holds that goes back, crashes and checkpoints at random is the input, in the end."""
    box, given, held, safe = outbox(), bytearray(), bytearray(), 0
    for _ in range(3000):
        match int(rng.integers(5)):
            case 0:
                data = rng.bytes(2 * int(rng.integers(1, 20)))
                given += data
                box.append(data)
            case 1 | 2:
                entry = box.peek(int(rng.integers(1, 30)))
                if isinstance(entry, Chunk):
                    held += entry.data
                    box.advance()
            case 3:
                safe = int(rng.integers(safe, len(held) // 2 + 1))
                box.release(0, safe)
            case _:
                back = int(rng.integers(safe, len(held) // 2 + 1))
                del held[2 * back :]
                box.rewind(0, back, 0)
        assert held == given[: len(held)]
        assert box.unsent_bytes == len(given) - len(held)
    assert len(given) > 5000


def test_messages_of_opus_are_places_by_samples_and_stay_whole():
    outbox = Outbox(1, keeps=True, max_held_bytes=1 << 20)
    for index in range(4):
        outbox.append(bytes([index]) * 10, 3840)
    assert outbox.end == Place(0, 4 * 3840)
    sent = []
    while (entry := outbox.peek(4)) is not None:
        assert isinstance(entry, Chunk)
        sent.append(entry.data)
        outbox.advance()
    assert [len(data) for data in sent] == [10] * 4
    assert (outbox.unsent_bytes, outbox.held_bytes) == (0, 40)
    outbox.rewind(0, 2 * 3840, 0)
    again = outbox.peek(4)
    assert isinstance(again, Chunk)
    assert again.data == sent[2]
    outbox.rewind(0, 2 * 3840 + 1, 0)
    partly = outbox.peek(4)
    assert isinstance(partly, Chunk)
    assert partly.data == sent[2]
    outbox.release(0, 2 * 3840 - 1)
    assert outbox.held_bytes == 10
