"""Sums over subtrees.

Forces, momenta and inertias of a subtree are sums over its links, part by part. If joints share a coordinate (mimic
joints), their torques and blocks of matrices over velocities are added, each times the ratio of its joint.
"""

from __future__ import annotations

from typing import Any, TypeVar

from delassus.model.links import Link, links_of
from delassus.model.model import Model

_Parts = TypeVar("_Parts", tuple[Any, Any], tuple[Any, Any, Any], tuple[Any, ...])


def total(one: _Parts, other: _Parts) -> _Parts:
    """The sum of two tuples, part by part: of motions, forces, or blocks of inertias."""
    return tuple(x + y for x, y in zip(one, other, strict=True))


def at(link: Link) -> slice:
    """The velocities of a link among those of the robot."""
    return slice(link.v, link.v + link.motion.nv)


def add_torques(tau: Any, link: Link, torques: Any) -> None:
    """Add the torques of a link's joint (n,), or (n, …), to the generalized forces (nv,), or (nv, …)."""
    tau[at(link)] = tau[at(link)] + link.ratio * torques


def add_block(matrix: Any, row: Link, column: Link, block: Any) -> None:
    """Add a block to a matrix (nv, nv) over velocities."""
    matrix[at(row), at(column)] = matrix[at(row), at(column)] + row.ratio * column.ratio * block


def add_symmetric(matrix: Any, above: Link, link: Link, block: Any) -> None:
    """Add a block and, unless it is on the diagonal, its transpose on the other side."""
    add_block(matrix, above, link, block)
    if above is not link:
        add_block(matrix, link, above, block.T)


def model_armature(model: Model) -> list[float]:
    """The rotor inertia of each velocity; that of a mimic joint is multiplied by the square of its ratio."""
    armature = [0.0] * model.nv
    for link in links_of(model).links:
        for k, inertia in enumerate(link.armature):
            armature[link.v + k] += link.ratio**2 * inertia
    return armature
