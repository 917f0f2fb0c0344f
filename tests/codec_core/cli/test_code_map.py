from __future__ import annotations

import numpy as np

from codec_core.cli.code_map import SHOWN_FRAMES, CodeMap


def test_two_levels_a_line_and_the_newest_frame_on_the_right():
    codes = CodeMap(2048)
    codes.add([0, 2047, 5])
    codes.add([0, 1024, 6])
    drawn = codes.drawn()
    assert drawn.plain == "▀▀\n▀▀"
    styles = [str(span.style) for span in drawn.spans]
    assert styles[0].partition(" ")[0] == styles[1].partition(" ")[0]
    assert styles[0].rpartition(" ")[2] != styles[1].rpartition(" ")[2]
    assert styles[2].endswith("on default")


def test_it_scrolls(rng: np.random.Generator):
    codes = CodeMap()
    for _ in range(SHOWN_FRAMES + 10):
        codes.add(rng.integers(0, 2048, 8).tolist())
    assert [len(line) for line in codes.drawn().plain.splitlines()] == [SHOWN_FRAMES] * 4


def test_every_code_has_a_colour_and_neighbours_have_like_ones():
    codes = CodeMap(2048)
    colours = [codes._colour([code], 0) for code in range(0, 2048, 16)]
    parts = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours])
    assert len(set(colours)) > 100
    assert np.abs(np.diff(parts, axis=0)).max() <= 24
