"""Progress of a compilation: a line on a terminal, messages for `logging` elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from delassus.common.progress import CLEAR, is_terminal, write_line
from delassus.compiler.backends.native import log

DELAY = 1.0  # seconds of silence
SECONDS_PER_OPERATION: Final = 40e-6
"""Time of LLVM for an operation on one core, approximately."""

QUICKER: Final = 0.25
"""Fraction of that time at LLVM's lowest level."""


@contextmanager
def tracing(name: str) -> Iterator[None]:
    """Report the tracing of a function, if it takes longer than `DELAY`."""
    with _line(f"Delassus traces {name} …"):
        yield


@contextmanager
def compiling(label: str, operations: int, cores: int = 1, level: int = 2) -> Iterator[None]:
    """Report a compilation with its estimated time, if that is longer than `DELAY`."""
    seconds = SECONDS_PER_OPERATION * (1.0 if level else QUICKER)
    estimate = max(1, round(seconds * operations / cores))
    log.debug("compiling %s: %d operations", label, operations)
    start = time.perf_counter()
    with _line(f"Delassus compiles {label}: {operations} operations, about {estimate} s …"):
        yield
    log.info("compiled %s: %d operations in %.2f s", label, operations, time.perf_counter() - start)


@contextmanager
def _line(text: str) -> Iterator[None]:
    """Show a line on the terminal after `DELAY` seconds, and remove it at the end; does nothing without a terminal."""
    terminal = sys.stderr
    finished, visible = threading.Event(), threading.Event()

    def show() -> None:
        if not finished.wait(DELAY):
            visible.set()
            write_line(terminal, text)

    thread = threading.Thread(target=show, name="delassus-progress", daemon=True) if is_terminal(terminal) else None
    if thread is not None:
        try:
            thread.start()
        except RuntimeError:  # the interpreter is about to end, or the system has no more threads
            thread = None
    try:
        yield
    finally:
        if thread is not None:
            finished.set()
            thread.join()
            if visible.is_set():
                write_line(terminal, CLEAR)
