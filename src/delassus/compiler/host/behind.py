"""Kernels behind functions.

A function for users often checks what it is given, calls a kernel and wraps what it gets. It is no kernel itself; the
one that it is around is found by its name in the function's code.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from delassus.compiler.host.kernel import Kernel
from delassus.errors import DelassusError


def kernel_behind(function: Any) -> Kernel[..., Any] | None:
    """The first kernel that a function names; None if it names none."""
    if not isinstance(function, FunctionType):
        return None
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    return next((x for x in named if isinstance(x, Kernel)), None)


def check_kernel(x: Any) -> None:
    """Raise unless something is a kernel; for a function around one, say which."""
    if isinstance(x, Kernel):
        return
    kernel = kernel_behind(x)
    if kernel is None:
        name = getattr(x, "__name__", repr(x))
        raise DelassusError(f"{name} is no kernel; dl.aba is one, and so is what @dl.kernel makes.")
    raise DelassusError(
        f"{x.__name__} is a function around a kernel, and a kernel is what can be exported: take "
        f"{kernel.definition.function.__module__}.{kernel.name}."
    )
