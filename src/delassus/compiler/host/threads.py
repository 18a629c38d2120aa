"""Distributes large batches over threads.

A batch is cut along one of its axes into pieces that run the same ufunc, which holds no lock while it computes.
States are independent of each other, so the result has the same bits as with one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from itertools import pairwise
from typing import Any

import numpy as np

from delassus.compiler.host.build import Compiled
from delassus.compiler.host.inputs import InputError

_MINIMUM_FLOPS = 8_000_000  # per piece, about 200 µs: for smaller pieces, threads cost more than they save
_ALIGNMENT = 16  # states: pieces consist of complete groups of lanes


class _Workers:
    """The number of threads, and their pool, which is created on first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.pool: ThreadPoolExecutor | None = None

    def resize(self, count: int) -> None:
        with self.lock:
            if count != self.count:
                self.count, self.pool = count, None

    def submit(self, task: Callable[[slice], None], part: slice) -> Future[None] | None:
        """Start a task in the caller's context, with NumPy's `errstate`; None if no thread is available."""
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(self.count, thread_name_prefix="delassus")
            try:
                return self.pool.submit(copy_context().run, task, part)
            except RuntimeError:  # the interpreter is about to end, or the system has no more threads
                self.pool.shutdown(wait=False, cancel_futures=True)  # the task may be in its queue already
                self.pool = None
                return None

    def forget(self) -> None:
        """Reset lock and pool in a forked child: it has no threads of its parent, but maybe a lock that one held."""
        self.lock, self.pool = threading.Lock(), None


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)


def threads(n: int | None = None) -> int:
    """The number of threads of a kernel for a large batch; with `n`, set it first (1 disables threading).

    The default is the number of cores that are available to this process.

    >>> dl.threads() >= 1
    True
    """
    if n is not None:
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise ValueError(f"the number of threads is {n!r}; it must be a positive integer.")
        _workers.resize(int(n))
    return _workers.count


def run(kernel: Compiled, arrays: tuple[Any, ...], out: Any) -> Any:
    """Call a kernel's ufunc, in pieces over the threads if the batch is large enough."""
    plan = None
    for x in arrays:
        if type(x) is np.ndarray and x.size * kernel.flops > 2 * _MINIMUM_FLOPS:  # smaller batches need no plan
            # A single state needs no plan, either.
            if any(np.ndim(x) > len(o.shape) for x, o in zip(arrays, kernel.inputs, strict=False)):
                arrays = tuple(np.asarray(x, kernel.dtype) if type(x) in (float, int) else x for x in arrays)
                plan = _plan(kernel, arrays, out)
            break
    if plan is None:
        try:
            return kernel.ufunc(*arrays) if out is None else kernel.ufunc(*arrays, out=out)
        except ValueError as error:
            raise _explain(kernel, arrays, error) from None
        except OverflowError:
            raise TypeError(
                f"{kernel.name} got an integer that is too large for {kernel.dtype}; pass a float."
            ) from None
    batch, axis, pieces = plan
    kernel.widths.need(many=True)  # before the threads start, which would wait while this thread compiles
    outs = tuple(np.empty(batch + o.shape, kernel.dtype) for o in kernel.outputs) if out is None else _as_tuple(out)

    def piece(part: slice) -> None:
        ins = [
            _slice_batch(x, len(o.shape), axis - len(batch), part) for x, o in zip(arrays, kernel.inputs, strict=True)
        ]
        kernel.ufunc(
            *ins,
            out=tuple(
                _slice_batch(x, len(o.shape), axis - len(batch), part)
                for x, o in zip(outs, kernel.outputs, strict=True)
            ),
        )

    # One piece per thread, the first in this thread: each switch of threads waits for Python's lock.
    tasks: list[tuple[slice, Future[None] | None]] = []
    try:
        for part in pieces[1:]:
            tasks.append((part, _workers.submit(piece, part)))
        piece(pieces[0])
    finally:
        for _, future in tasks:  # also after an error: no thread may write to the arrays afterwards
            if future is not None:
                with suppress(CancelledError):
                    future.exception()
    for part, future in tasks:
        if future is None or future.cancelled():
            piece(part)
        else:
            future.result()
    return outs[0] if len(outs) == 1 else outs


def _explain(kernel: Compiled, arrays: tuple[Any, ...], error: ValueError) -> ValueError:
    """The error of a ufunc, which numbers its operands, with the names of operands whose shapes do not agree."""
    leads = {}
    for x, operand in zip(arrays, kernel.inputs, strict=False):
        shape = np.shape(x)
        lead = max(0, len(shape) - len(operand.shape))
        if shape[lead:] != operand.shape:
            numpy_message = str(error).removeprefix(f"{kernel.name}: ")
            return InputError(
                f"{kernel.name}: {operand.name} has shape {shape}, its core must be {operand.shape}. {numpy_message}"
            )
        leads[operand.name] = shape[:lead]
    try:
        np.broadcast_shapes(*leads.values())
    except ValueError:
        shape_text = ", ".join(f"{name} {lead}" for name, lead in leads.items() if lead)
        return InputError(
            f"{kernel.name}: the batch axes do not broadcast with each other: {shape_text}.", code="batch-mismatch"
        )
    return error


def _as_tuple(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def _plan(kernel: Compiled, arrays: tuple[Any, ...], out: Any) -> tuple[tuple[int, ...], int, list[slice]] | None:
    """Batch shape, the axis to cut, and the pieces; None for a single call, which also reports errors."""
    if len(arrays) != len(kernel.inputs) or not all(type(x) is np.ndarray for x in arrays):
        return None
    count = threads()
    leads = [np.shape(x)[: np.ndim(x) - len(o.shape)] for x, o in zip(arrays, kernel.inputs, strict=True)]
    try:
        batch = np.broadcast_shapes(*leads)
    except ValueError:
        return None
    work = int(np.prod(batch, dtype=object)) * kernel.flops
    piece_count = min(count, work // _MINIMUM_FLOPS)
    if not batch or count == 1 or piece_count < 2 or not _fits(kernel, arrays, out, batch):
        return None
    axis = int(np.argmax(batch))
    size = -(-batch[axis] // piece_count)
    size = -(-size // _ALIGNMENT) * _ALIGNMENT
    # A piece of a single state would need the code for single states: it is added to the previous piece.
    starts = [i for i in range(0, batch[axis], size) if i == 0 or batch[axis] - i > 1]
    pieces = [slice(a, b) for a, b in pairwise((*starts, batch[axis]))]
    return (batch, axis, pieces) if len(pieces) > 1 else None


def _fits(kernel: Compiled, arrays: tuple[Any, ...], out: Any, batch: tuple[int, ...]) -> bool:
    """Whether `out` can be written in pieces: correct shapes, and no memory shared with another array."""
    if out is None:
        return True
    outs = _as_tuple(out)
    return (
        len(outs) == len(kernel.outputs)
        and all(type(x) is np.ndarray and x.shape == batch + o.shape for x, o in zip(outs, kernel.outputs, strict=True))
        and not any(np.may_share_memory(x, y) for k, y in enumerate(outs) for x in (*arrays, *outs[:k]))
    )


def _slice_batch(x: Any, core: int, axis: int, part: slice) -> Any:
    """A piece of an array along a batch axis, counted from the end of the batch; all of it if this axis broadcasts."""
    position = x.ndim - core + axis
    if position < 0 or x.shape[position] == 1:
        return x
    return x[(slice(None),) * position + (part,)]
