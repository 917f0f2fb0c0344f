from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import ResumeLostError
from server.replay_window import Answer, ReplayWindow


def filled(frames: int, max_answers: int = 100, max_bytes: int = 10_000) -> ReplayWindow:
    window = ReplayWindow(max_answers, max_bytes)
    for sequence in range(frames):
        window.add(Answer(f"f{sequence}", 0, sequence))
    return window


def test_what_follows_the_last_frame_received():
    window = filled(5)
    assert window.after(0, -1) == ["f0", "f1", "f2", "f3", "f4"]
    assert window.after(0, 2) == ["f3", "f4"]
    assert window.after(0, 4) == window.after(0, 99) == []


def test_texts_stand_behind_their_frame_and_epochs_follow_one_another():
    window = filled(2)
    window.add(Answer("flushed", 0))
    window.add(Answer("reset_done", 1))
    window.add(Answer("g0", 1, 0))
    assert window.after(0, 0) == ["f1", "flushed", "reset_done", "g0"]
    assert window.after(0, 1) == ["flushed", "reset_done", "g0"]
    assert window.after(1, -1) == ["flushed", "reset_done", "g0"]
    assert window.after(1, 0) == []


def test_acknowledged_answers_are_gone():
    window = filled(5)
    window.acknowledge(0, 2)
    assert len(window) == 2
    assert window.after(0, 2) == ["f3", "f4"]
    with pytest.raises(ResumeLostError, match=r"frame 1 of epoch 0.*frame 2 of epoch 0"):
        window.after(0, 1)


@pytest.mark.parametrize("window", [filled(9, max_answers=4), filled(9, max_bytes=8)])
def test_too_many_push_the_oldest_out(window):
    assert len(window) == 4
    assert window.after(0, 4) == ["f5", "f6", "f7", "f8"]
    with pytest.raises(ResumeLostError):
        window.after(0, 3)


def test_an_answer_larger_than_the_window_is_not_held():
    window = ReplayWindow(10, 3)
    window.add(Answer("large", 0, 0))
    assert len(window) == 0
    assert window.after(0, 0) == []
    with pytest.raises(ResumeLostError):
        window.after(0, -1)


def test_a_restored_window_is_the_same():
    window = filled(9, max_answers=4)
    other = ReplayWindow(100, 1000)
    other.restore(window.content(), window.freed)
    assert other.after(0, 6) == window.after(0, 6) == ["f7", "f8"]
    assert other.freed == window.freed == (0, 4)


@given(
    st.lists(st.tuples(st.sampled_from(["frame", "text", "reset", "ack"]), st.integers(0, 8)), max_size=60),
    st.integers(1, 12),
)
def test_every_frame_is_sent_again_or_its_loss_is_named(script, max_answers):
    window, sent, epoch, sequence = ReplayWindow(max_answers, 1 << 20), [], 0, 0
    for what, number in script:
        if what == "frame":
            sent.append((epoch, sequence))
            window.add(Answer(f"{epoch}.{sequence}", epoch, sequence))
            sequence += 1
        elif what == "text":
            window.add(Answer("text", epoch))
        elif what == "reset":
            epoch, sequence = epoch + 1, 0
        elif sequence:
            window.acknowledge(epoch, min(number, sequence - 1))
        assert len(window) <= max_answers
    for index, held in enumerate([(0, -1), *sent]):
        try:
            frames = [message for message in window.after(*held) if message != "text"]
        except ResumeLostError:
            assert held < window.freed
        else:
            assert frames == [f"{one[0]}.{one[1]}" for one in sent[index:]]
