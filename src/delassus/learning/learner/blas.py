"""Limits BLAS to one thread while two threads process the halves of a minibatch.

A sum over samples has the same bits for any machine load and any number of threads only if it is split at fixed
indices. The learner splits it, so BLAS must use one thread.
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
    """The functions that get and set the number of threads of OpenBLAS; None for another BLAS."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
        for name in _NAMES:
            with suppress(AttributeError):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS has one thread, if it is the OpenBLAS of NumPy's wheels."""
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
