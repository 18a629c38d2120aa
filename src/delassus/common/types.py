"""Names of types in public signatures.

ArrayLike    numbers as users give them: arrays, lists, numbers
Floats       arrays of numbers that functions of the host return, one state or a batch
Bools        the same of booleans
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
"""Values of one state in code that is traced: an array of the tracer while a kernel is recorded, and one of NumPy when
the same code runs on numbers. Callers of a kernel give anything that is `ArrayLike`, with batch axes in front. Type
checkers see `Any`: no type has the operations of both."""
