"""Limits BLAS to one thread while two threads process the halves of a minibatch.

A sum over samples has the same bits on any machine load and any number of threads only if it is cut at fixed places:
the learner cuts, and BLAS must not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")


@cache
def _functions() -> tuple[Any, Any] | None:
    """How many threads OpenBLAS has, and the function that sets it; None for another BLAS."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
        for name in _NAMES:
            with suppress(AttributeError):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS has one thread in here, if it is the one that NumPy's wheels bring along."""
    functions = _functions()
    if functions is None:
        yield
        return
    get, put = functions
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
