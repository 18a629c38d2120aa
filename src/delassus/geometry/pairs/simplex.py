"""The nearest point on the surface of a tetrahedron, by comparison of its 4 vertices, 6 edges and 4 triangles.

The candidate of a feature is the foot of the perpendicular, as weights of the corners, if it is within the feature.
Distances are computed from the weighted corners. The weights of a sliver are inexact, so its candidate may be farther
than another one, but never outside of the tetrahedron.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy

import delassus.numpy as np

_SLIVER: Final = 1e-26
"""Squared sine of the angle between edges below which a triangle is degenerate."""

_NONE: Final = 1e300
"""Placeholder for the squared distance of a feature without a foot."""


def nearest_weights(corners: list[Any], target: Any) -> Any:
    """Weights (4,) of four corners (3,), at least one of them zero, whose mean is the nearest point to a target (3,).

    Corners may coincide. Cost: about 450 operations.
    """
    arms = [corner - target for corner in corners]
    best, weights = _square(arms[0]), np.array(numpy.eye(4)[0])
    proposals = [(_square(arms[i]), numpy.eye(4)[i]) for i in range(1, 4)]
    proposals += [_edge(arms, i, j) for i, j in itertools.combinations(range(4), 2)]
    proposals += [_triangle(arms, *triple) for triple in itertools.combinations(range(4), 3)]
    for square, proposal in proposals:
        nearer = square < best
        best, weights = np.where(nearer, square, best), np.where(nearer, proposal, weights)
    return weights


def _square(x: Any) -> Any:
    return x @ x


def _edge(arms: list[Any], i: int, j: int) -> tuple[Any, Any]:
    """The foot from 0 on the edge of two corners."""
    edge = arms[j] - arms[i]
    size = _square(edge)
    fraction = -(arms[i] @ edge) / np.where(size > 0.0, size, 1.0)
    inside = (fraction > 0.0) & (fraction < 1.0)
    foot = arms[i] + fraction * edge
    return np.where(inside, _square(foot), _NONE), _weights({i: 1.0 - fraction, j: fraction})


def _triangle(arms: list[Any], i: int, j: int, k: int) -> tuple[Any, Any]:
    """The foot from 0 on the triangle of three corners: areas of sub-triangles about the normal."""
    a, b, c = arms[i], arms[j], arms[k]
    u, w = b - a, c - a
    normal = np.cross(u, w)
    square = _square(normal)
    usable = square > _SLIVER * _square(u) * _square(w)
    scale = 1.0 / np.where(usable, square, 1.0)
    t, s = -(np.cross(a, w) @ normal) * scale, -(np.cross(u, a) @ normal) * scale
    r = 1.0 - s - t
    inside = usable & (s > 0.0) & (t > 0.0) & (r > 0.0)
    foot = a + t * u + s * w
    return np.where(inside, _square(foot), _NONE), _weights({i: r, j: t, k: s})


def _weights(parts: dict[int, Any]) -> Any:
    return np.stack([np.array(parts.get(k, 0.0)) for k in range(4)])
