"""The view's words; tests/e2e runs it on a terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from codec_core.cli.stream_view import StreamView
from codec_core.client import Frame, Notice, Stream
from codec_core.client.observation import StreamStats

LATENCY = {"p50": 12.4, "p95": 30.0, "p99": 41.0, "max": 55.5}


class Standing(Stream):
    """A stream that stands where a test wants it."""

    @property
    def stats(self) -> StreamStats:
        return StreamStats(25.0, 24, 80.0, 160.0, 0, dict(LATENCY), 2, 3)


@pytest.fixture
def stream() -> Stream:
    return Standing("ws://127.0.0.1:1")


def drawn(view: StreamView, stream: Stream) -> str:
    output = io.StringIO()
    Console(file=output, width=100).print(view.rendered(stream))
    return output.getvalue()


def test_what_is_drawn(stream: Stream):
    view = StreamView("voice.wav -> [bold]ws://h", quiet=True)
    view.sent(np.full(1920, 0.5, np.float32))
    view.received(Frame(0, 0, codes=np.arange(20, dtype=np.int32)))
    shown = drawn(view, stream)
    view.received(Frame(1, 0, codes=np.arange(20, dtype=np.int32), latency_ms=4.0))
    shown = drawn(view, stream)
    assert shown.count("▀▀") == 8  # sixteen levels, two a line
    for text in (
        "█",
        "-6.0 dBFS, peak -6.0",
        "0    1    2",
        "p50 12, p95 30, p99 41, max 56 ms",
        "80 ms unanswered, 160 ms unsent",
    ):
        assert text in shown, shown
    assert "24 in 0 s, 2 resumes" in shown
    assert "[bold]ws://h" in shown
    assert " 16" not in shown.split("latency")[0]


def test_silence_and_full_scale_fit_the_meter(stream: Stream):
    view = StreamView("x", quiet=True)
    for amplitude, cells in ((0.0, 0), (1.0, 40), (4.0, 40)):
        view.sent(np.full(10, amplitude, np.float32))
        assert drawn(view, stream).count("█") == cells


def test_where_the_input_is_codes_the_answer_is_heard(stream: Stream):
    view = StreamView("x", quiet=True)
    view.sent(np.array([[3], [4]]))
    view.received(Frame(0, 0, pcm=np.full(10, 0.1, np.float32)))
    shown = drawn(view, stream)
    assert "-20.0 dBFS" in shown
    assert "3    4" in shown


def test_lines_elsewhere_than_on_a_terminal(stream: Stream, capsys: pytest.CaptureFixture[str]):
    view = StreamView("x", quiet=False)
    with view.shown(stream) as interval_s:
        assert interval_s == 1
        view.tick(stream)
        view.notice(Notice("lost", "gone\x1b[2J"))
        view.tick(stream)
    errors = capsys.readouterr().err.splitlines()
    assert errors[0] == "streaming: 0 s, 24 frames, latency 12 ms, p95 30 ms, lag 80 ms, 2 resumes"
    assert errors[1] == "warning: lost: gone [2J"
    assert errors[2].startswith("line lost, trying again: ")
    assert view.warnings == ["lost: gone\x1b[2J"]


def test_quiet_says_nothing(stream: Stream, capsys: pytest.CaptureFixture[str]):
    view = StreamView("x", quiet=True)
    with view.shown(stream):
        view.tick(stream)
        view.notice(Notice("warning", "clipping"))
    assert capsys.readouterr() == ("", "")
    assert view.warnings == ["warning: clipping"]
