"""Kernels on plain numbers: while a function runs as it is written, so do the kernels that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from delassus.compiler.tracing.trace import untraced

_plain: ContextVar[bool] = ContextVar("delassus_plain", default=False)

is_plain = _plain.get
"""Whether kernels that are called run as plain functions."""


@contextmanager
def plainly() -> Iterator[None]:
    """Compute with numbers for a while, by plain functions, also in the middle of a trace: for constants of it."""
    token = _plain.set(True)
    try:
        with untraced():
            yield
    finally:
        _plain.reset(token)
