"""Names of types in public signatures.

ArrayLike    numbers as arguments of users: arrays, lists, numbers
Floats       arrays of floating-point numbers that functions return, for one state or a batch
Bools        arrays of booleans that functions return
Objects      arrays of enumeration members, such as the statuses of a batch
Traced       an array inside of a kernel
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ArrayLike", "Bools", "Floats", "Objects", "Traced"]

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[np.object_]

Traced: TypeAlias = Any
"""Values of one state in traced code: an array of the tracer while a kernel is recorded, and an array of NumPy if the
same code runs on plain arrays. Callers of a kernel pass anything that is `ArrayLike`, with leading batch axes. For type
checkers it is `Any`, since no type has the operations of both."""
