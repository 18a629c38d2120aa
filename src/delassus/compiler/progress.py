"""A word to those who wait for a kernel: a line on a terminal, which goes again; elsewhere, messages for `logging`."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

DELAY: Final = 1.0  # seconds of silence
SECONDS_PER_OPERATION: Final = 40e-6
"""What LLVM takes, about, on a machine of 2024; several cores share it."""

log = logging.getLogger("delassus")


@contextmanager
def compiling(what: str, operations: int) -> Iterator[None]:
    """Say what is being compiled, if it takes longer than `DELAY`."""
    estimate = SECONDS_PER_OPERATION * operations
    with _line(f"Delassus compiles {what}: {operations} operations, about {max(1, round(estimate))} s …"):
        log.debug("compiling %s: %d operations", what, operations)
        start = time.perf_counter()
        yield
        log.info("compiled %s: %d operations in %.2f s", what, operations, time.perf_counter() - start)


@contextmanager
def _line(text: str) -> Iterator[None]:
    """Show a line on the terminal from `DELAY` seconds on, and remove it in the end; nothing where there is none."""
    terminal = sys.stderr
    if terminal is None or not terminal.isatty():
        yield
        return
    done, shown = threading.Event(), threading.Event()

    def show() -> None:
        if not done.wait(DELAY):
            shown.set()
            terminal.write(text)
            terminal.flush()

    thread = threading.Thread(target=show, name="delassus-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown.is_set():
            terminal.write("\r\x1b[K")
            terminal.flush()
