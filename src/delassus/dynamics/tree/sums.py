"""Sums over subtrees.

A parent feels the sum of what the links on it hand on: forces, momenta, inertias, in parts that add up one by one.
Torques, and blocks of matrices over velocities, add up where joints share a coordinate (mimicry), each with the ratio
by which it moves.
"""

from __future__ import annotations

from typing import Any, TypeVar

from delassus.model.links import Link, links_of
from delassus.model.model import Model

_Parts = TypeVar("_Parts", tuple[Any, Any], tuple[Any, Any, Any], tuple[Any, ...])


def total(one: _Parts, other: _Parts) -> _Parts:
    """The sum of two motions or forces, half by half, of two inertias, block by block, or the like."""
    return tuple(x + y for x, y in zip(one, other, strict=True))


def at(link: Link) -> slice:
    """The velocities of a link among those of the robot."""
    return slice(link.v, link.v + link.motion.nv)


def add_torques(tau: Any, link: Link, torques: Any) -> None:
    """Add what a link's joint feels (n,), or (n, …), to the generalized forces (nv,), or (nv, …)."""
    tau[at(link)] = tau[at(link)] + link.ratio * torques


def add_block(matrix: Any, row: Link, column: Link, block: Any) -> None:
    """Add a block to a matrix (nv, nv) over velocities."""
    matrix[at(row), at(column)] = matrix[at(row), at(column)] + row.ratio * column.ratio * block


def add_symmetric(matrix: Any, above: Link, link: Link, block: Any) -> None:
    """Add a block, and its transpose on the other side of the diagonal, if it is not on it."""
    add_block(matrix, above, link, block)
    if above is not link:
        add_block(matrix, link, above, block.T)


def model_armature(model: Model) -> list[float]:
    """The rotor inertia seen by each velocity; those of mimicking joints count with the square of the ratio."""
    armature = [0.0] * model.nv
    for link in links_of(model).links:
        for k, inertia in enumerate(link.armature):
            armature[link.v + k] += link.ratio**2 * inertia
    return armature
