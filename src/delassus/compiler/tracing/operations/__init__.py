"""The functions of NumPy on traced arrays: importing this room registers all of them as handlers."""

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
