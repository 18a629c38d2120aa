"""Meshes, as their convex hulls: size (n, 3), the vertices in the axes of the body."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Placed, ShapeKind, Touch, lengths, register_shape
from delassus.geometry.surfaces import Surface


@register_shape("mesh")
class Mesh(ShapeKind):
    """A mesh touches with vertices of its hull."""

    def ground_points(self, size: Any, on_field: bool) -> int:
        """Its vertices."""
        return len(size)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """Its vertices."""
        return [point_touch(surface, body.at(np.array(vertex))) for vertex in body.size]

    def support(self, body: Placed, direction: Any) -> Any:
        """A vertex; cost: one scalar product a vertex."""
        vertices = lengths(body.size)
        return body.at(np.take(vertices, np.argmax(vertices @ (body.R.T @ direction)), axis=0))

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """None: readers check vertices."""
        return ()

    def flat_lengths(self, size: Any) -> tuple[float, ...]:
        """Of the box around it."""
        return tuple(numpy.ptp(numpy.array(size), axis=0).tolist())

    def outline(self, size: Any) -> Array:
        """Its vertices."""
        return numpy.array(size)
