"""Numbers, not robots: NumPy functions traced to expression graphs and compiled to native SIMD ufuncs."""

from delassus.compiler import random
from delassus.compiler.differentiation.derivatives import grad, jacobian, jvp, vjp
from delassus.compiler.host.signature import Input
from delassus.compiler.tracing.branch import cond
from delassus.compiler.tracing.control import map, scan, while_loop

__all__ = ["Input", "cond", "grad", "jacobian", "jvp", "map", "random", "scan", "vjp", "while_loop"]
