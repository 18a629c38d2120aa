"""Limits BLAS to one thread: on fronts of a few hundred rows, threads mostly wait for each other.

Supports OpenBLAS, which is part of SciPy's wheels; other libraries are not changed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from scipy.linalg import _fblas


@cache
def _library() -> tuple[Any, Any] | None:
    library = ctypes.CDLL(_fblas.__file__)
    for prefix in ("scipy_openblas", "openblas"):
        try:
            return getattr(library, f"{prefix}_get_num_threads"), getattr(library, f"{prefix}_set_num_threads")
        except AttributeError:
            continue
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Run SciPy's dense algebra on the calling thread."""
    functions = _library()
    if functions is None:
        yield
        return
    before = functions[0]()
    functions[1](1)
    try:
        yield
    finally:
        functions[1](before)
