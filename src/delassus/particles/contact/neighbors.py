"""Pairs of bodies that may touch, by balls around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]


def near_pairs(centers: Array, radius: Array, reach: float) -> NDArray[np.int64]:
    """(pairs, 2) of balls that are nearer than `reach` to each other [m], the smaller number first."""
    pairs = cKDTree(centers).query_pairs(2.0 * float(radius.max()) + reach, output_type="ndarray")
    if not len(pairs):
        return np.zeros((0, 2), np.int64)
    i, j = pairs.T
    apart = np.linalg.norm(centers[i] - centers[j], axis=1)
    near = pairs[apart < radius[i] + radius[j] + reach]
    return np.asarray(near[np.lexsort((near[:, 1], near[:, 0]))], np.int64)
