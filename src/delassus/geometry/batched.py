"""Gaps and contacts of shapes for arrays of poses, as kernels."""

from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import ArrayLike

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.geometry.pairs.boxes import PLACES, box_touches
from delassus.geometry.shapes.registry import SHAPES, Placed


@kernel("(3,3),(3),(3),(3)->(),(3)")
def _distances(shape: str, R: Any, p: Any, size: Any, x: Any) -> tuple[Floats, Floats]:
    kind = SHAPES[shape]
    return kind.distance(Placed(R, p, size[: kind.lengths]), x)


def distances_from(shape: str, R: ArrayLike, p: ArrayLike, size: ArrayLike, x: ArrayLike) -> tuple[Floats, Floats]:
    """Signed distances (…) [m] of points x (…, 3) from shapes, negative inside, and outward normals (…, 3).

    Args:
        shape: The name of a shape that has a distance field.
        R: (…, 3, 3) rotations from the shapes' axes to the world's.
        p: (…, 3) centers [m].
        size: (…, lengths) as in `Placed` [m].
        x: (…, 3) [m].
    """
    lengths = numpy.asarray(size, float)
    unused = numpy.zeros((*lengths.shape[:-1], 3 - lengths.shape[-1]))
    return _distances(shape, R, p, numpy.concatenate([lengths, unused], -1), x)


@kernel(f"(3,3),(3),(3),(3,3),(3),(3)->({PLACES}),({PLACES},3),(3)")
def box_pairs(
    _: None, R: Any, p: Any, size: Any, R_other: Any, p_other: Any, size_other: Any
) -> tuple[Floats, Floats, Floats]:
    """Gaps (points,) [m], contact points (points, 3) and the normal (3,) of two boxes; unused points have gaps ∞."""
    touches = box_touches(Placed(R, p, size), Placed(R_other, p_other, size_other), absent=numpy.inf)
    return np.stack([touch.gap for touch in touches]), np.stack([touch.point for touch in touches]), touches[0].normal
