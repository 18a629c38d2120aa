"""All rows of a mechanism together: matrices K on its links, and right-hand sides k with K a = k.

Accelerations of the links are spatial ones, in the links' axes. The algorithms on trees account for gravity by an
acceleration -g of the world, which is added to every acceleration: `against_gravity` returns the right-hand side for
these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.constraints.basis.constraint import BodyRows, Constraint, ConstraintError, JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.layout import Layout, layout_of
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import Links


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Rows that act on a link: their indices `rows`, and K (len(rows), 6)."""

    link: int
    rows: tuple[int, ...]
    K: Any


@dataclass(frozen=True, eq=False)
class DofRow:
    """A part of row `row`: `factor` times the velocity `v`, which is direction `k` of the joint of `link`."""

    row: int
    link: int
    k: int
    v: int
    factor: Any


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a mechanism at a state, and the links that carry them."""

    layout: Layout
    links: dict[int, LinkRows]
    dofs: tuple[DofRow, ...]
    compliance: NDArray[numpy.float64]

    @property
    def m(self) -> int:
        """Number of rows."""
        return self.layout.m

    @property
    def support(self) -> tuple[int, ...]:
        """Links that move a constraint, in order."""
        return self.layout.support

    @cached_property
    def tied(self) -> tuple[int, ...]:
        """Rows on several velocities, or on a velocity and a body: they tie a joint to other parts of the robot."""
        row_indices = [dof.row for dof in self.dofs]
        on_bodies = {row for link_rows in self.links.values() for row in link_rows.rows}
        return tuple(row for row in sorted(set(row_indices)) if row_indices.count(row) > 1 or row in on_bodies)

    @cached_property
    def untied(self) -> Rows:
        """The other rows: on bodies only, or on one velocity."""
        if not self.tied:
            return self
        links = {}
        for link, link_rows in self.links.items():
            free_rows = [j for j, row in enumerate(link_rows.rows) if row not in self.tied]
            if free_rows:
                links[link] = LinkRows(link, tuple(link_rows.rows[j] for j in free_rows), link_rows.K[free_rows])
        dofs = tuple(dof for dof in self.dofs if dof.row not in self.tied)
        return Rows(self.layout, links, dofs, self.compliance)

    def of_joint(self, link: int) -> list[DofRow]:
        """The rows on the velocities of a link's joint."""
        return [row for row in self.dofs if row.link == link]


def rows_in(mechanism: Mechanism, motions: LinkMotions) -> Rows:
    """The rows of a mechanism at a state."""
    tree = motions.tree
    parts: dict[int, list[tuple[range, Any]]] = {}
    dofs: list[DofRow] = []
    touched: list[list[int]] = []
    driven: list[set[int]] = []
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        rows = range(at.start, at.stop)
        body_rows: dict[int, Any] = {}
        for body in constraint.bodies(motions):
            _check_body(constraint, body, len(rows), len(tree.links))
            body_rows[body.link] = body_rows[body.link] + body.K if body.link in body_rows else body.K
        for link, K in body_rows.items():
            parts.setdefault(link, []).append((rows, K))
        touched.append(sorted(body_rows))
        driven.append(set())
        for joint in constraint.joints(motions):
            _check_joint(constraint, joint, len(rows), mechanism.nv)
            link = _link_of(tree, joint.v)
            dofs.append(DofRow(rows[joint.row], link, joint.v - tree.links[link].v, joint.v, joint.factor))
            driven[-1].add(link)
    links = {
        link: LinkRows(link, tuple(r for rows, _ in result for r in rows), _stacked([K for _, K in result]))
        for link, result in parts.items()
    }
    return Rows(layout_of(mechanism, tree, touched, driven), links, tuple(dofs), compliance_of(mechanism))


def compliance_of(mechanism: Mechanism) -> NDArray[numpy.float64]:
    """C (m,): the acceleration of each row per unit of its force."""
    compliance = numpy.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        compliance[at] = constraint.per_row("compliance", at.stop - at.start)
    return compliance


class RowTargets(NamedTuple):
    """Targets of all rows (m,); None where the constraints' own are used.

    Rows without a reference have no position error, and ignore a gain on it.
    """

    acceleration: Any = None
    position_gain: Any = None
    velocity_gain: Any = None

    def of(self, name: str, constraint: Constraint, at: slice) -> Any:
        """One target for the rows of a constraint; a constant if it is the constraint's own."""
        value = getattr(self, name)
        return constraint.per_row(name, at.stop - at.start) if value is None else value[at]


OWN: Final = RowTargets()
"""No targets other than those of the constraints."""


def right_hand_side(mechanism: Mechanism, rows: Rows, motions: LinkMotions, targets: RowTargets = OWN) -> Any:
    """k (m,): target acceleration plus feedback, minus the rows' own velocity products."""
    k = np.zeros(mechanism.m)
    velocity = row_values(rows, motions.velocity, motions.v)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        Kp, Kd = (targets.of(name, constraint, at) for name in ("position_gain", "velocity_gain"))
        a = np.array(targets.of("acceleration", constraint, at)) - constraint.velocity_product(motions)
        if _matters(Kd):
            reference = constraint.reference_velocity(motions)
            a = a - Kd * (velocity[at] if reference is None else velocity[at] - reference)
        if _matters(Kp) and (constraint.has_reference or targets.position_gain is None):
            a = a - Kp * constraint.position_error(motions)
        k[at] = a
    return k


def _matters(gain: Any) -> bool:
    """Whether a gain may be nonzero."""
    return not isinstance(gain, numpy.ndarray) or bool(numpy.any(gain))


def against_gravity(rows: Rows, motions: LinkMotions, k: Any) -> Any:
    """k - K g (m,): the right-hand side for accelerations relative to free fall, a - g."""
    result = np.array(k)
    for link, link_rows in rows.links.items():
        grounded = [j for j, row in enumerate(link_rows.rows) if row in rows.layout.grounded]
        if not grounded:
            continue
        gravity_values = link_rows.K[grounded, :3] @ motions.gravity(link)
        for j, row in enumerate(link_rows.rows[j] for j in grounded):
            result[row] = result[row] - gravity_values[j]
    return result


def row_values(rows: Rows, motions: Any, x: Any, tied: Mapping[int, Any] = MappingProxyType({})) -> Any:
    """K times the links' motions (pairs by link), plus the velocities' own rows of x (nv,): (m,).

    `tied` has the values (1,) of the rows that tie joints, if they are known already.
    """
    values = np.zeros(rows.m)
    for row, value in tied.items():
        values[row] = value[0]
    rows = rows.untied if tied else rows
    for link, link_rows in rows.links.items():
        lin, ang = motions[link]
        here = link_rows.K[:, :3] @ lin + link_rows.K[:, 3:] @ ang
        for j, row in enumerate(link_rows.rows):
            values[row] = values[row] + here[j]
    for dof in rows.dofs:
        values[dof.row] = values[dof.row] + dof.factor * x[dof.v]
    return values


def _check_body(constraint: Constraint, body: BodyRows, count: int, links: int) -> None:
    """Raise an error if rows on a body do not fit the constraint or the model."""
    if not 0 <= body.link < links:
        raise ConstraintError(
            f"the constraint {constraint.label!r} has rows on link {body.link}; the model has links 0 to {links - 1}. "
            "Omit rows on the world.",
            code="index-out-of-range",
        )
    if np.shape(body.K) != (count, 6):
        raise ConstraintError(
            f"the constraint {constraint.label!r} has rows of shape {np.shape(body.K)} on link {body.link}; the shape "
            f"must be ({count}, 6), with one row for each of count.",
            code="wrong-shape",
        )


def _check_joint(constraint: Constraint, joint: JointRow, count: int, nv: int) -> None:
    """Raise an error if a row on a velocity does not fit the constraint or the model."""
    if not (0 <= joint.v < nv and 0 <= joint.row < count):
        raise ConstraintError(
            f"the constraint {constraint.label!r} has the velocity {joint.v} in its row {joint.row}; the model has "
            f"velocities 0 to {nv - 1}, the constraint rows 0 to {count - 1}.",
            code="index-out-of-range",
        )


def _link_of(tree: Links, v: int) -> int:
    """The link whose joint has a velocity; the first, if joints share it."""
    return next(i for i, link in enumerate(tree.links) if v in link.dofs)


def _stacked(parts: list[Any]) -> Any:
    """Stack matrices vertically; constant ones stay constant, so that they cost nothing."""
    plain = all(isinstance(K, numpy.ndarray) for K in parts)
    return numpy.concatenate(parts) if plain else np.concatenate(parts)
