"""Friction pyramids in place of elliptic cones: nonnegative forces along the edges n ± coefficient · t."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.contact.cones.kinds import Cone, Friction, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.step.points.coefficients import coefficients_of
from delassus.step.scene import Scene


def edges_of(scene: Scene, friction: Any, torsional: Any, rolling: Any) -> Any:
    """E (edges and other rows, m), which maps rows with normals and tangents to the rows of the pyramid problem."""
    parts = []
    for own, others in coefficients_of(scene, friction, torsional, rolling):
        for row, coefficient in zip([*own[:2], *own[3:]], others, strict=True):
            for sign in (1.0, -1.0):
                edge = np.zeros(scene.m)
                edge[own[2]], edge[row] = 1.0, sign * coefficient
                parts.append(edge)
    start = scene.bilateral.start
    return np.stack([*parts, *(np.eye(scene.m)[row] for row in range(start, scene.m))])


def pyramids(scene: Scene, R: Any, impratio: Any, friction: Any) -> tuple[Layout, Any]:
    """The cones of the pyramid problem, and R of its rows."""
    cones: list[Cone] = []
    values: list[Any] = []
    ratio = 1.0 if impratio is None else impratio
    for k, own in enumerate(scene.layout.friction):
        edges = 2 * (len(own) - 1)
        square = friction[k] * friction[k]
        cones.append(NonNegative(edges))
        values += [2.0 * square / ratio * (1.0 + square) * R[own[2]]] * edges
    others = [cone for cone in scene.layout.cones if not isinstance(cone, Friction)]
    start = scene.bilateral.start
    return Layout((*cones, *others)), np.stack([*values, *(R[row] for row in range(start, scene.m))])


def normals_of(scene: Scene, values: Any) -> Any:
    """Values per edge converted to rows: a normal has the mean of its edges, tangents have zero."""
    result, at = np.zeros(scene.m), 0
    for own in scene.layout.friction:
        edges = 2 * (len(own) - 1)
        result[own[2]] = np.sum(values[at : at + edges]) / edges
        at += edges
    start = scene.bilateral.start
    result[start:] = values[at:]
    return result
