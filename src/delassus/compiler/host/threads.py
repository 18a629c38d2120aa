"""Distributes large batches over threads.

A batch is cut along one of its axes into pieces that run the same ufunc, which holds no lock while it computes.
States do not depend on their neighbors, so the result is bit for bit that of one thread.
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

_MINIMUM_FLOPS = 8_000_000  # per piece, some 200 µs: less is not worth the hand-over
_ALIGNMENT = 16  # states: pieces of whole groups of lanes


class _Workers:
    """How many threads there are to be, and the pool of them once it was needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.pool: ThreadPoolExecutor | None = None

    def resize(self, count: int) -> None:
        with self.lock:
            if count != self.count:
                self.count, self.pool = count, None

    def submit(self, task: Callable[[slice], None], part: slice) -> Future[None] | None:
        """Start a task in the caller's context (NumPy's `errstate`, for one); None if no thread can take it."""
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(self.count, thread_name_prefix="delassus")
            try:
                return self.pool.submit(copy_context().run, task, part)
            except RuntimeError:  # the interpreter is about to end, or the system has no more threads
                self.pool.shutdown(wait=False, cancel_futures=True)  # the task may be waiting there already
                self.pool = None
                return None

    def forget(self) -> None:
        """In a forked child: it has none of its parent's threads, and one of them may have held the lock."""
        self.lock, self.pool = threading.Lock(), None


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)


def threads(n: int | None = None) -> int:
    """How many threads a kernel may use for a large batch; with `n`, set it first (1 turns threading off).

    At the start it is the number of cores that this process may use.

    >>> dl.threads() >= 1
    True
    """
    if n is not None:
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise ValueError(f"the number of threads is a positive integer, not {n!r}.")
        _workers.resize(int(n))
    return _workers.count


def run(kernel: Compiled, arrays: tuple[Any, ...], out: Any) -> Any:
    """Call a kernel's ufunc, in pieces over the threads if the batch is large enough."""
    plan = None
    for x in arrays:
        if type(x) is np.ndarray and x.size * kernel.flops > 2 * _MINIMUM_FLOPS:  # else not even worth a plan
            # Nor is one state, whatever it costs.
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
            raise TypeError(f"{kernel.name} got an integer that is too large for {kernel.dtype}.") from None
    batch, axis, pieces = plan
    kernel.widths.need(many=True)  # not in the threads, which would wait if this one compiles something else
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

    # One piece per thread, the first of them here: each change of threads waits for Python's lock.
    tasks: list[tuple[slice, Future[None] | None]] = []
    try:
        for part in pieces[1:]:
            tasks.append((part, _workers.submit(piece, part)))
        piece(pieces[0])
    finally:
        for _, other in tasks:  # also after an error: nobody may write to the arrays any more
            if other is not None:
                with suppress(CancelledError):
                    other.exception()
    for part, other in tasks:
        if other is None or other.cancelled():
            piece(part)
        else:
            other.result()
    return outs[0] if len(outs) == 1 else outs


def _explain(kernel: Compiled, arrays: tuple[Any, ...], error: ValueError) -> ValueError:
    """The error of a ufunc, which counts its operands, with the names of those whose shapes do not fit."""
    leads = {}
    for x, operand in zip(arrays, kernel.inputs, strict=False):
        shape = np.shape(x)
        lead = max(0, len(shape) - len(operand.shape))
        if shape[lead:] != operand.shape:
            said = str(error).removeprefix(f"{kernel.name}: ")
            return InputError(
                f"{kernel.name}: {operand.name} has shape {shape}, its core must be {operand.shape}. {said}"
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
    """Batch shape, the axis to cut and the pieces; None to leave it all to one call, errors included."""
    if len(arrays) != len(kernel.inputs) or not all(type(x) is np.ndarray for x in arrays):
        return None
    count = threads()
    leads = [np.shape(x)[: np.ndim(x) - len(o.shape)] for x, o in zip(arrays, kernel.inputs, strict=True)]
    try:
        batch = np.broadcast_shapes(*leads)
    except ValueError:
        return None
    work = int(np.prod(batch, dtype=object)) * kernel.flops
    number = min(count, work // _MINIMUM_FLOPS)
    if not batch or count == 1 or number < 2 or not _fits(kernel, arrays, out, batch):
        return None
    axis = int(np.argmax(batch))
    size = -(-batch[axis] // number)
    size = -(-size // _ALIGNMENT) * _ALIGNMENT
    # A piece of a single state would ask for code of its own: it goes to the piece before.
    starts = [i for i in range(0, batch[axis], size) if i == 0 or batch[axis] - i > 1]
    pieces = [slice(a, b) for a, b in pairwise((*starts, batch[axis]))]
    return (batch, axis, pieces) if len(pieces) > 1 else None


def _fits(kernel: Compiled, arrays: tuple[Any, ...], out: Any, batch: tuple[int, ...]) -> bool:
    """Whether given outputs can be written in pieces: right shape, no memory shared with another array."""
    if out is None:
        return True
    outs = _as_tuple(out)
    return (
        len(outs) == len(kernel.outputs)
        and all(type(x) is np.ndarray and x.shape == batch + o.shape for x, o in zip(outs, kernel.outputs, strict=True))
        and not any(np.may_share_memory(x, y) for k, y in enumerate(outs) for x in (*arrays, *outs[:k]))
    )


def _slice_batch(x: Any, core: int, axis: int, part: slice) -> Any:
    """A piece of an array along a batch axis (counted from the end of the batch), whole where it broadcasts."""
    position = x.ndim - core + axis
    if position < 0 or x.shape[position] == 1:
        return x
    return x[(slice(None),) * position + (part,)]
