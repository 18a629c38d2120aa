"""Delassus: constrained robot dynamics, written in NumPy, compiled to native SIMD code for your robot."""

from delassus.compiler.kernel import kernel
from delassus.compiler.threads import threads
from delassus.dynamics.aba import aba
from delassus.errors import DelassusError, DelassusWarning

__version__ = "0.1.0"

__all__ = ["DelassusError", "DelassusWarning", "__version__", "aba", "kernel", "threads"]
