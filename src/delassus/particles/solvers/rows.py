"""The sparse rows of deformations: a pattern that is computed once, and values in each step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.description.kinds import ElementKind
from delassus.particles.description.lanes import deformation_parts, deformation_value, weighted_square
from delassus.particles.description.particles import Particles
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.row_laws import elastic

Array = NDArray[np.float64]

PROXIMAL: Final = 1e-9
"""Compliance of a rigid row in the factor, relative to its response; iterations compensate it."""

STIFFEST: Final = 1e-12
"""Smallest such compliance of an elastic row; stiffer rows get this one, which iterations compensate, too."""


class Rows:
    """The rows of all deformations of a system.

    Attributes:
        particles: The system.
        groups: The groups of deformations, by their index among all groups, with the indices of their rows.
        m: Number of rows.
        rigid: (m,) whether rows are rigid.
    """

    def __init__(self, particles: Particles) -> None:
        self.particles = particles
        self.groups, start = [], 0
        for number, group in enumerate(particles.elements):
            if group.kind.rows:
                self.groups.append((number, group, slice(start, start + group.rows)))
                start += group.rows
        self.m = start
        counts, columns = [], []
        for _, group, _ in self.groups:
            stored = _entries(group.kind)
            counts.append(np.tile(stored.sum((1, 2)), len(group)))
            wide = 3 * group.points[:, None, :, None] + np.arange(3)
            columns.append(np.broadcast_to(wide, (len(group), *stored.shape))[:, stored].reshape(-1))
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])
        # SciPy would check wider integers at each use, and copy them.
        index = np.int32 if max(int(indptr[-1]), 3 * particles.nodes) < 2**31 else np.int64
        self._columns, self._indptr = np.concatenate([np.zeros(0, index), *columns]).astype(index), indptr.astype(index)
        self._fixed: Compliances | None = None
        self.rigid = np.concatenate([np.zeros(0, bool), *(np.full(g.rows, g.rigid) for _, g, _ in self.groups)])

    def at(self, x: Array) -> tuple[Array, Any]:
        """g (m,) and J (m, 3 nodes) at positions x (n, 3)."""
        g, values = np.empty(self.m), np.empty(len(self._columns))
        for number, group, at in self.groups:
            kind, row_values, entries = group.kind, g[at].reshape(-1, group.kind.rows), self._entries_of(at, values)
            points = x.take(group.points, 0)
            if number in self._steady:
                deformation_value(kind, points, group.numbers, out=row_values)
                entries[:] = self._steady[number][1]
            else:
                deformation_parts(
                    kind, points, group.numbers, out=(row_values, entries.reshape(-1, kind.rows, kind.points, 3))
                )
        return g, sparse.csr_matrix((values, self._columns, self._indptr), shape=(self.m, 3 * self.particles.nodes))

    def squares(self, J: Any, E: Array, steady: tuple[bool, ...] = (True, False)) -> Iterator[tuple[int, Array]]:
        """The groups' blocks of Jᵀ E⁻¹ J, each of which is valid until the next is computed."""
        for (number, group, at), rows in zip(self.groups, self.blocks(J), strict=True):
            if (number in self._steady) in steady:
                kind, k = group.kind, group.kind.points
                weight = 1.0 / E[at].reshape(-1, kind.rows)
                out = self._room[: 9 * len(group) * k * k].reshape(-1, k, k, 3, 3)
                yield number, weighted_square(kind, rows, weight, out=out)

    def blocks(self, J: Any) -> list[Array]:
        """The rows of each group as (elements, rows, points, 3), without copies."""
        return [
            self._steady[number][0]
            if number in self._steady
            else self._entries_of(at, J.data).reshape(-1, group.kind.rows, group.kind.points, 3)
            for number, group, at in self.groups
        ]

    def _entries_of(self, at: slice, values: Array) -> Array:
        """The entries of J in selected rows."""
        return values[self._indptr[at.start] : self._indptr[at.stop]]

    @cached_property
    def _steady(self) -> dict[int, tuple[Array, Array]]:
        """The rows (elements, rows, points, 3) of groups with constant rows, and their entries of J."""
        constant = {}
        for number, group, _ in self.groups:
            if group.kind.steady:
                rows = deformation_parts(group.kind, self.particles.positions[group.points], group.numbers).rows
                constant[number] = (rows, rows[:, _entries(group.kind)].reshape(-1))
        return constant

    @cached_property
    def _room(self) -> Array:
        """Reused memory for the blocks of a group before they are summed; allocating it in each step would be
        slower.
        """
        return np.empty(max((9 * len(g) * g.kind.points**2 for _, g, _ in self.groups), default=0))

    @cached_property
    def response(self) -> Array:
        """(m,) initial response of each row to an impulse, J M⁻¹ Jᵀ [1/kg]: a scale."""
        inverse = np.zeros(self.particles.nodes)
        prescribed = self.particles.is_prescribed
        inverse[: self.particles.n][~prescribed] = 1.0 / self.particles.masses[~prescribed]
        J = self.at(self.particles.positions)[1]
        values = np.asarray((J.multiply(J)) @ np.repeat(inverse, 3))
        positive = values > 0.0
        return np.where(positive, values, values[positive].mean() if positive.any() else 1.0)

    @cached_property
    def length(self) -> Array:
        """(m,) one over the norm of each row of the initial J: for an angle it is a lever arm [m]."""
        J = self.at(self.particles.positions)[1]
        size = np.sqrt(0.5 * np.asarray(J.multiply(J).sum(1)).reshape(-1))  # of a rod, 1
        return 1.0 / np.where(size > 0.0, size, 1.0)

    def compliances(self, blend: Blend) -> Compliances:
        """The compliances for a blend, cached for the last one."""
        if self._fixed is None or self._fixed.blend != blend:
            self._fixed = self._new(blend)
        return self._fixed

    def _new(self, blend: Blend) -> Compliances:
        R, factors, shifted = np.zeros(self.m), np.zeros(self.m), np.zeros(self.m)
        for _, group, at in self.groups:
            if group.compliance is not None:
                C = np.repeat(group.compliance, group.kind.rows)
                B = None if group.damping is None else np.repeat(group.damping, group.kind.rows)
                R[at], factors[at] = elastic(blend, 1.0, 0.0, 0.0, C, B)
                shifted[at] = elastic(blend, 0.0, 1.0, 0.0, C, B)[1]
        E = np.maximum(R, np.where(self.rigid, PROXIMAL, STIFFEST) * self.response)
        return Compliances(blend, R, factors, shifted, E)


class Compliances(NamedTuple):
    """R (m,), the factors of g and of its rate in b, of elastic rows, and E, for a blend."""

    blend: Blend
    R: Array
    gained: Array
    shifted: Array
    E: Array


def _entries(kind: ElementKind) -> NDArray[np.bool_]:
    """(rows, points, 3) the stored entries of J of an element: all, or the nonzeros if they are constant."""
    return kind.dependency_pattern if kind.steady else np.ones((kind.rows, kind.points, 3), bool)
