"""All rows of a mechanism together: matrices K on its links, and right-hand sides k with K a = k.

Accelerations of the links are spatial ones, in the links' axes. The algorithms of trees let the world accelerate
against gravity, which adds -g to every acceleration: `against_gravity` gives the right-hand side for these.
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
from delassus.model.links import Links, links_of
from delassus.model.model import WORLD


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Rows that a link takes part in: their numbers `rows`, and K (len(rows), 6)."""

    link: int
    rows: tuple[int, ...]
    K: Any


@dataclass(frozen=True, eq=False)
class DofRow:
    """A part of a row: `factor` times direction `k` of the joint of `link`, the velocity `v`, in row number `row`."""

    row: int
    link: int
    k: int
    v: int
    factor: Any


@dataclass(frozen=True)
class Layout:
    """What is known of a mechanism's rows before its state.

    Attributes:
        m: Number of rows.
        support: Links that move a constraint: those on the way from the base to one, in order.
        roots: For each row the link (or the world) that carries all that it touches: where its loop is closed. That of
            a row on one body or one joint is the world, which holds it.
        pairs: Links that share a row, each pair in order.
        inner: Rows that joints which carry all of their bodies never move.
        grounded: Rows on one body, held by the world.
    """

    m: int
    support: tuple[int, ...]
    roots: tuple[int, ...]
    pairs: frozenset[tuple[int, int]]
    inner: frozenset[int]
    grounded: frozenset[int]


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a mechanism in a state, and the links that carry them."""

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

    @property
    def tied(self) -> int | None:
        """The first row that is on several velocities, and so ties joints to each other; None if there is none."""
        numbers = [dof.row for dof in self.dofs]
        return next((row for row in numbers if numbers.count(row) > 1), None)

    def of_joint(self, link: int) -> list[DofRow]:
        """The rows on the velocities of a link's joint."""
        return [row for row in self.dofs if row.link == link]


@lru_cache(maxsize=256)
def layout_of(mechanism: Mechanism) -> Layout:
    """What is known of a mechanism's rows before its state."""
    model, tree = mechanism.model, links_of(mechanism.model)
    moving: set[int] = set()
    pairs: set[tuple[int, int]] = set()
    roots = [WORLD] * mechanism.m
    inner: set[int] = set()
    grounded: set[int] = set()
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        touched = constraint.links(model)
        driven = [_link_of(tree, v) for v in constraint.velocities(model)]
        moving.update(touched, driven)
        pairs.update((i, j) for i in touched for j in touched if i < j)
        rows = range(at.start, at.stop)
        if len(touched) > 1 or len(set(driven)) > 1:
            carriers = [*touched, *(tree.links[i].parent for i in driven)]
            roots[at] = [_common(tree, carriers)] * len(rows)
        if len(touched) > 1 and constraint.inner(model):
            inner.update(rows)
        if len(touched) == 1:
            grounded.update(rows)
    support = {i for link in moving for i in tree.path(link)}
    ordered = tuple(sorted(support))
    return Layout(mechanism.m, ordered, tuple(roots), frozenset(pairs), frozenset(inner), frozenset(grounded))


def rows_in(mechanism: Mechanism, motions: LinkMotions) -> Rows:
    """The rows of a mechanism in a state."""
    tree = motions.tree
    parts: dict[int, list[tuple[range, Any]]] = {}
    dofs: list[DofRow] = []
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        rows = range(at.start, at.stop)
        for body in constraint.bodies(motions):
            parts.setdefault(body.link, []).append((rows, body.K))
        for joint in constraint.joints(motions):
            link = _link_of(tree, joint.v)
            dofs.append(DofRow(rows[joint.row], link, joint.v - tree.links[link].v, joint.v, joint.factor))
    links = {
        link: LinkRows(link, tuple(r for rows, _ in found for r in rows), _stacked([K for _, K in found]))
        for link, found in parts.items()
    }
    return Rows(layout_of(mechanism), links, tuple(dofs), compliance_of(mechanism))


def compliance_of(mechanism: Mechanism) -> NDArray[numpy.float64]:
    """C (m,): the acceleration that each row gives way with, per unit of its force."""
    compliance = numpy.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        compliance[at] = constraint.per_row("compliance", at.stop - at.start)
    return compliance


def right_hand_side(mechanism: Mechanism, rows: Rows, motions: LinkMotions, acceleration: Any = None) -> Any:
    """k (m,): the desired acceleration, pulled towards the references, less the rows' own velocity products.

    `acceleration` (m,) takes the place of the constraints' desired accelerations.
    """
    k = np.zeros(mechanism.m)
    velocity = row_values(rows, motions.velocity, motions.v)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        count = at.stop - at.start
        Kp, Kd = constraint.per_row("position_gain", count), constraint.per_row("velocity_gain", count)
        desired = constraint.per_row("acceleration", count) if acceleration is None else acceleration[at]
        wanted = np.array(desired) - constraint.velocity_product(motions)
        if numpy.any(Kd):
            reference = constraint.reference_velocity(motions)
            wanted = wanted - Kd * (velocity[at] if reference is None else velocity[at] - reference)
        if numpy.any(Kp):
            wanted = wanted - Kp * constraint.position_error(motions)
        k[at] = wanted
    return k


def against_gravity(rows: Rows, motions: LinkMotions, k: Any) -> Any:
    """k - K g (m,): the right-hand side where all accelerations are those against gravity, a - g."""
    result = np.array(k)
    for link, own in rows.links.items():
        held = [j for j, row in enumerate(own.rows) if row in rows.layout.grounded]
        if not held:  # two bodies fall alike
            continue
        pull = own.K[held, :3] @ motions.gravity(link)
        for j, row in enumerate(own.rows[j] for j in held):
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


def _link_of(tree: Links, v: int) -> int:
    """The link whose joint has a velocity; the first, where joints share it."""
    return next(i for i, link in enumerate(tree.links) if v in link.dofs)


def _common(tree: Links, links: list[int]) -> int:
    """The link, or the world, nearest to some links that carries, or is, all of them."""
    if WORLD in links:
        return WORLD
    paths = [tree.path(link) for link in links]
    shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    return shared[-1] if shared else WORLD


def _stacked(parts: list[Any]) -> Any:
    """Matrices one above the other; plain ones stay plain, so that they cost nothing."""
    plain = all(isinstance(K, numpy.ndarray) for K in parts)
    return numpy.concatenate(parts) if plain else np.concatenate(parts)
