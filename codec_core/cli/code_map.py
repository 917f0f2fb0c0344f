"""Codes as a map that scrolls: a row a level, a column a frame, a colour for where in the codebook a code lies."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.text import Text

SHOWN_LEVELS: Final = 16
SHOWN_FRAMES: Final = 60
_HUES: Final = 6


class CodeMap:
    """The newest frames of codes.

    Args:
        entries: of a codebook.

    """

    def __init__(self, entries: int = 2048) -> None:
        self._entries = max(2, entries)
        self._frames: deque[list[int]] = deque(maxlen=SHOWN_FRAMES)

    def add(self, codes: list[int]) -> None:
        """Take a frame."""
        self._frames.append(codes)

    @property
    def newest(self) -> list[int]:
        """The newest frame; empty before the first."""
        return self._frames[-1] if self._frames else []

    def drawn(self) -> Text:
        """Draw two levels a line, the upper half of a cell and the lower; the oldest frame is on the left."""
        from rich.text import Text  # noqa: PLC0415 - slow to load

        levels = min(SHOWN_LEVELS, len(self.newest))
        text = Text()
        for upper in range(0, levels, 2):
            text.append("\n" if upper else "")
            for frame in self._frames:
                lower = self._colour(frame, upper + 1) if upper + 1 < levels else "default"
                text.append("▀", style=f"{self._colour(frame, upper)} on {lower}")
        return text

    def _colour(self, frame: list[int], level: int) -> str:
        """Go once around the colours from the first code of the book to the last."""
        if level >= len(frame):
            return "default"
        hue = _HUES * min(frame[level], self._entries - 1) / self._entries
        sector, part = int(hue), hue % 1
        rising, falling = int(60 + 180 * part), int(240 - 180 * part)
        red, green, blue = (
            (240, rising, 60),
            (falling, 240, 60),
            (60, 240, rising),
            (60, falling, 240),
            (rising, 60, 240),
            (240, 60, falling),
        )[sector]
        return f"#{red:02x}{green:02x}{blue:02x}"
