"""Optimizes machine code of large kernels in a background thread, while quickly compiled code runs.

LLVM's lowest optimization level takes a fifth of the time of the usual one. Its code computes the same bits, but runs
slower. So a large kernel is compiled at the lowest level first, and at the usual level in the background; the calling
loop then switches to the optimized code (see `Descriptor.install`). The thread pauses while other kernels are being
compiled, and ends with the process, after its current module.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from delassus.compiler.backends import native
from delassus.compiler.backends.target import Target

LARGE: Final = 4000
"""Number of operations above which a kernel is compiled twice. Smaller ones take LLVM less than 0.3 s."""

_NICENESS: Final = 10
"""Priority of the thread, below that of calls of kernels."""


class _Worker:
    """A queue of jobs, and the thread that runs them in order."""

    def __init__(self) -> None:
        self.jobs: deque[Callable[[], None]] = deque()
        self.changed = threading.Condition()
        self.busy = False
        self.ending = False
        self.thread: threading.Thread | None = None

    def add(self, job: Callable[[], None]) -> None:
        """Append a job, and start the thread if it is not running."""
        with self.changed:
            if self.ending:
                return
            self.jobs.append(job)
            if self.thread is None:
                self.thread = threading.Thread(target=self._work, name="delassus-optimizer", daemon=True)
                with suppress(RuntimeError):  # the interpreter is about to end, or the system has no more threads
                    self.thread.start()
            self.changed.notify_all()

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # of this thread alone, on Linux
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            with self.changed:
                self.busy = False
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.jobs or self.ending)
                if self.ending:
                    return
                job, self.busy = self.jobs.popleft(), True
            try:
                job()
            except Exception as error:  # the quickly compiled code remains in use
                native.log.warning("a kernel could not be optimized; its unoptimized code remains in use: %s", error)
            del job

    def finish(self) -> None:
        """Wait until all jobs have finished."""
        with self.changed:
            alive = self.thread is not None and self.thread.is_alive()
            self.changed.wait_for(lambda: not alive or self.ending or not (self.jobs or self.busy))

    def end(self) -> None:
        """Stop the thread, and wait for it."""
        with self.changed:
            self.ending = True
            self.jobs.clear()
            self.changed.notify_all()
        if self.thread is not None and self.thread.is_alive():
            self.thread.join()


class _Current:
    """The worker of this process; a forked process starts a new one."""

    def __init__(self) -> None:
        self.worker = _Worker()

    def renew(self) -> None:
        """Drop the jobs of the parent process."""
        self.worker = _Worker()


_current: Final = _Current()


def _end() -> None:
    _current.worker.end()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_current.renew)


def quick_target(target: Target) -> Target:
    """The target at LLVM's lowest optimization level."""
    return target.with_opt(0)


def run_later(owner: Any, job: Callable[[Any], None]) -> None:
    """Queue `job(owner)` in the background; it is skipped if the owner has been freed by then."""
    reference = weakref.ref(owner)

    def run() -> None:
        alive = reference()
        if alive is not None:
            job(alive)

    _current.worker.add(run)


def finish_optimizing() -> None:
    """Wait until all kernels that this process has compiled so far are optimized.

    Large kernels are compiled quickly at first, and again with optimizations in the background. Call it before a
    measurement of speed; results do not depend on it.

    >>> dl.compiler.finish_optimizing()
    """
    _current.worker.finish()


def emit_in_background(texts: Iterable[str], target: Target) -> list[bytes] | None:
    """Object code of modules, compiled one by one while no other kernel is compiled; None if the process ends."""
    worker, objects = _current.worker, []
    for text in texts:
        with native.compiling:
            pass
        if worker.ending:
            return None
        with native.optimizing:
            objects.append(native.emit_at_once(text, target))
    return objects
