"""Numbers, not robots: NumPy functions traced to expression graphs and compiled to native SIMD ufuncs."""

from delassus.compiler import random
from delassus.compiler.branch import cond
from delassus.compiler.control import map, scan, while_loop
from delassus.compiler.derivatives import grad, jacobian, jvp, vjp

__all__ = ["cond", "grad", "jacobian", "jvp", "map", "random", "scan", "vjp", "while_loop"]
