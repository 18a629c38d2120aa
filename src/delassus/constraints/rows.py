"""All rows of a mechanism together: matrices K on its links, and right-hand sides k with K a = k.

Accelerations of the links are spatial ones, in the links' axes. The algorithms of trees let the world accelerate
against gravity, which adds -g to every acceleration: `shifted` gives the right-hand side for these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.motions import LinkMotions
from delassus.model.links import links_of


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Rows that a link takes part in: their numbers `rows`, and K (len(rows), 6)."""

    link: int
    rows: tuple[int, ...]
    K: NDArray[numpy.float64]


@dataclass(frozen=True)
class DofRow:
    """A row on a velocity: number `row`, `factor` times direction `k` of the joint of `link`, the velocity `v`."""

    row: int
    link: int
    k: int
    v: int
    factor: float


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a mechanism, and the links that carry them."""

    m: int
    links: dict[int, LinkRows]
    dofs: tuple[DofRow, ...]
    compliance: NDArray[numpy.float64]
    support: tuple[int, ...]
    """Links that move a constraint: those on the way from the base to one, in order."""

    def of_joint(self, link: int) -> list[DofRow]:
        """The rows on the velocities of a link's joint."""
        return [row for row in self.dofs if row.link == link]


@lru_cache(maxsize=256)
def rows_of(mechanism: Mechanism) -> Rows:
    """The rows of a mechanism."""
    tree = links_of(mechanism.model)
    parts: dict[int, list[tuple[range, NDArray[numpy.float64]]]] = {}
    dofs: list[DofRow] = []
    compliance = numpy.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        rows = range(at.start, at.stop)
        compliance[at] = constraint.per_row("compliance", len(rows))
        for body in constraint.bodies(mechanism.model):
            parts.setdefault(body.link, []).append((rows, body.K))
        for row, joint in zip(rows, constraint.joints(mechanism.model), strict=False):
            link = next(i for i, link in enumerate(tree.links) if joint.v in link.dofs)
            dofs.append(DofRow(row, link, joint.v - tree.links[link].v, joint.v, joint.factor))
    links = {
        link: LinkRows(link, tuple(r for rows, _ in found for r in rows), numpy.concatenate([K for _, K in found]))
        for link, found in parts.items()
    }
    support = {i for link in (*links, *(row.link for row in dofs)) for i in tree.path(link)}
    return Rows(mechanism.m, links, tuple(dofs), compliance, tuple(sorted(support)))


def right_hand_side(mechanism: Mechanism, motions: LinkMotions, acceleration: Any = None) -> Any:
    """k (m,): the desired acceleration, pulled towards the references, less the rows' own velocity products.

    `acceleration` (m,) takes the place of the constraints' desired accelerations.
    """
    k = np.zeros(mechanism.m)
    rows = rows_of(mechanism)
    velocity = row_values(rows, motions.velocity, motions.v)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        count = at.stop - at.start
        Kp, Kd = constraint.per_row("position_gain", count), constraint.per_row("velocity_gain", count)
        desired = constraint.per_row("acceleration", count) if acceleration is None else acceleration[at]
        wanted = np.array(desired) - constraint.velocity_product(motions)
        if numpy.any(Kd):
            wanted = wanted - Kd * velocity[at]
        if numpy.any(Kp):
            wanted = wanted - Kp * constraint.position_error(motions)
        k[at] = wanted
    return k


def shifted(rows: Rows, motions: LinkMotions, k: Any) -> Any:
    """k - K g (m,): the right-hand side where all accelerations are those against gravity, a - g."""
    result = np.array(k)
    for link, own in rows.links.items():
        pull = own.K[:, :3] @ motions.gravity(link)
        for j, row in enumerate(own.rows):
            result[row] = result[row] - pull[j]
    return result


def row_values(rows: Rows, motions: Any, x: Any) -> Any:
    """K times the links' motions (pairs by link), plus the velocities' own rows of x (nv,): (m,)."""
    values = np.zeros(rows.m)
    for link, own in rows.links.items():
        lin, ang = motions[link]
        here = own.K[:, :3] @ lin + own.K[:, 3:] @ ang
        for j, row in enumerate(own.rows):
            values[row] = values[row] + here[j]
    for dof in rows.dofs:
        values[dof.row] = values[dof.row] + dof.factor * x[dof.v]
    return values
