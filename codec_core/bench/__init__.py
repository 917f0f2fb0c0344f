"""Measuring: how fast this machine is, how much memory it takes, how far that is from what is possible, and from others.

What is measured is in :mod:`.speed`, :mod:`.memory`, :mod:`.limits`, :mod:`.stages` and :mod:`.peers`; ``mimi bench`` asks and
shows.
"""

from __future__ import annotations
