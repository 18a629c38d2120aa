"""Derivatives by central differences of order eight: a step of 0.01 leaves errors near 1e-13 of the function."""

import numpy as np

STEP = 0.01
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def jacobian(f, n):
    """Columns of ∂f(x)/∂x at x = 0, x (n,)."""
    columns = [
        sum(w * (f((k + 1) * STEP * e) - f(-(k + 1) * STEP * e)) for k, w in enumerate(WEIGHTS)) / STEP
        for e in np.eye(n)
    ]
    return np.stack(columns, axis=-1)
