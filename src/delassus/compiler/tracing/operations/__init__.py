"""NumPy functions on traced arrays: importing this package registers their handlers."""

from delassus.compiler.tracing.operations import (
    elementwise,
    gather,
    interpolation,
    linalg,
    movement,
    products,
    reductions,
    scatter,
    sorting,
)

__all__ = [
    "elementwise",
    "gather",
    "interpolation",
    "linalg",
    "movement",
    "products",
    "reductions",
    "scatter",
    "sorting",
]
