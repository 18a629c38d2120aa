"""Numbers, not robots: NumPy functions traced to expression graphs and compiled to native SIMD ufuncs."""

from delassus.compiler import random
from delassus.compiler.differentiation.derivatives import grad, jacobian, jvp, vjp
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map, scan, while_loop

__all__ = ["cond", "grad", "jacobian", "jvp", "map", "random", "scan", "vjp", "while_loop"]
