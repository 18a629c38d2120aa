"""Derivatives by central differences of order eight: a step of 0.01 leaves errors near 1e-13 of the function."""

import numpy as np

STEP = 0.01
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def jacobian(f, n):
    """Columns of ∂f(x)/∂x at x = 0, x (n,)."""
    return jacobian_of_batch(lambda x: np.stack([f(row) for row in x]), n)


def jacobian_of_batch(f, n, step=STEP):
    """The same for a function of a batch (k, n), called once."""
    offsets = np.array([sign * (k + 1) for k in range(len(WEIGHTS)) for sign in (1, -1)])
    weights = np.array([sign * weight for weight in WEIGHTS for sign in (1, -1)]) / step
    x = step * offsets[:, None, None] * np.eye(n)
    values = f(x.reshape(-1, n))
    slopes = np.tensordot(weights, values.reshape(len(weights), n, *values.shape[1:]), 1)
    return np.moveaxis(slopes, 0, -1)
