"""Progress lines on a terminal, which are erased at the end; elsewhere nothing is written."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Final, TextIO

SILENCE: Final = 2.0
"""Time [s] after which a loop shows its first line."""

_INTERVAL: Final = 0.2
"""Time [s] between two lines."""

CLEAR: Final = "\r\x1b[K"
"""The sequence that clears a line of a terminal."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # not a stream, or closed
        return False


def write_line(stream: TextIO, text: str) -> None:
    """Write to a terminal; errors are ignored."""
    with suppress(OSError, ValueError):  # closed meanwhile, or unable to write "…"
        stream.write(text)
        stream.flush()


class ProgressLine:
    """The progress of a loop as a line: "Delassus simulates: 42 % of 100000 periods, about 31 s left"."""

    def __init__(self, what: str, total: int, unit: str) -> None:
        self._stream = sys.stderr
        self._active = is_terminal(self._stream)
        self._what, self._total, self._unit = what, total, unit
        self._start = time.monotonic() if self._active else 0.0
        self._next, self._is_shown = self._start + SILENCE, False

    def show(self, done: int) -> None:
        """Show the number of finished iterations of the loop."""
        if not self._active or time.monotonic() < self._next:
            return
        now = time.monotonic()
        left = (now - self._start) * (self._total - done) / max(done, 1)
        share = 100 * done // max(self._total, 1)
        text = f"Delassus {self._what}: {share} % of {self._total} {self._unit}, about {left:.0f} s left"
        write_line(self._stream, CLEAR + text)
        self._next, self._is_shown = now + _INTERVAL, True

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            write_line(self._stream, CLEAR)
