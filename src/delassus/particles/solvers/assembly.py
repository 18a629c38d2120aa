"""From elements to the matrices of a step: patterns once, then numbers only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.algebra.banded import WIDEST, Band, BandedCholesky
from delassus.particles.algebra.cholesky import Cholesky, Fronts
from delassus.particles.algebra.memory import check_bytes, check_memory
from delassus.particles.algebra.pattern import Pattern
from delassus.particles.description.bodies import inertias
from delassus.particles.description.kinds import ElementKind
from delassus.particles.description.lanes import (
    clamped,
    curvature,
    deformation_parts,
    deformation_value,
    energy_parts,
    turning_stiffness,
    weighted_square,
)
from delassus.particles.description.particles import Particles
from delassus.particles.solvers.lower import Lower
from delassus.particles.solvers.multigrid import CoarseGrid
from delassus.particles.solvers.system import System
from delassus.particles.solvers.turning import Turning
from delassus.stepping.compliant.scheme import elastic, kinematic
from delassus.stepping.scheme.blend import Blend

Array = NDArray[np.float64]

PROXIMAL: Final = 1e-9
"""The share of its own response by which a rigid row yields in the factor; what it yields is taken back afterwards."""

STIFFEST: Final = 1e-12
"""The least such share of an elastic row; what is stiffer yields by so much, and that is taken back, too."""


LARGE: Final = 200_000
"""From so many unknowns on, two grids are faster than factors for sheets."""


class Assembly:
    """What is found once of a system: patterns, places, scales.

    Attributes:
        particles: The system.
        pattern: Of W and of A = W + Jᵀ E⁻¹ J.
        free: (nodes,) which nodes' velocities are unknown.
        held: The places of the others' velocities among those of all.
        groups: The groups of deformations, with the place of their first row.
        energies: The groups of energies.
    """

    def __init__(self, particles: Particles) -> None:
        check_memory(particles)
        self.particles = particles
        self.free = np.concatenate([~particles.held, np.ones(2 * particles.b, bool)])
        self.held = (3 * np.flatnonzero(~self.free)[:, None] + np.arange(3)).reshape(-1)
        self.pattern = Pattern(particles.nodes, [group.points for group in particles.elements])
        self.groups, self.energies, start = [], [], 0
        for number, group in enumerate(particles.elements):
            if group.kind.rows:
                self.groups.append((number, group, slice(start, start + group.rows)))
                start += group.rows
            else:
                self.energies.append((number, group))
        self.m = start
        counts, columns = [], []
        for _, group, _ in self.groups:
            reached = _entries(group.kind)
            counts.append(np.tile(reached.sum((1, 2)), len(group)))
            wide = 3 * group.points[:, None, :, None] + np.arange(3)
            columns.append(np.broadcast_to(wide, (len(group), *reached.shape))[:, reached].reshape(-1))
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])
        # SciPy looks through wider integers at each use, and copies them.
        index = np.int32 if max(int(indptr[-1]), 3 * particles.nodes) < 2**31 else np.int64
        self._columns, self._indptr = np.concatenate([np.zeros(0, index), *columns]).astype(index), indptr.astype(index)
        self._fixed: _Fixed | None = None
        self.rigid = np.concatenate([np.zeros(0, bool), *(np.full(g.rows, g.rigid) for _, g, _ in self.groups)])

    @cached_property
    def response(self) -> Array:
        """(m,) how much each row gives way to an impulse at first, J M⁻¹ Jᵀ [1/kg]: a scale."""
        inverse = np.zeros(self.particles.nodes)
        held = self.particles.held
        inverse[: self.particles.n][~held] = 1.0 / self.particles.masses[~held]
        J = self.rows(self.particles.positions)[1]
        found = np.asarray((J.multiply(J)) @ np.repeat(inverse, 3))
        positive = found > 0.0
        return np.where(positive, found, found[positive].mean() if positive.any() else 1.0)

    @cached_property
    def arms(self) -> Array:
        """(nodes,) what turns the velocity of a node into one in space: 1, or of spins the reach of a brick [m]."""
        p = self.particles
        return np.concatenate([np.ones(p.n + p.b), *([] if p.bricks is None else [p.bricks.reach])])

    @cached_property
    def length(self) -> Array:
        """(m,) one by the size of each row of J as the system is built: that of a rate in radians is an arm [m]."""
        J = self.rows(self.particles.positions)[1]
        size = np.sqrt(0.5 * np.asarray(J.multiply(J).sum(1)).reshape(-1))  # of a rod, 1
        return 1.0 / np.where(size > 0.0, size, 1.0)

    @cached_property
    def symbolic(self) -> Band | Fronts:
        """The order of elimination, and where entries of factors go."""
        band = Band(self.pattern, self.free)
        return band if band.nodes <= WIDEST else self.fronts(self.pattern)

    @property
    def spreads(self) -> bool:
        """Whether factors take longer than two grids do: of large elastic systems that are not lines."""
        if 3 * self.particles.nodes < LARGE or self.rigid.any() or self.particles.b or not self.groups:
            return False
        return not isinstance(self.symbolic, Band)

    def fronts(self, pattern: Pattern) -> Fronts:
        """Fronts of another pattern of the same nodes."""
        return Fronts(pattern, self.places, self.free)

    def new_factor(self) -> Cholesky | BandedCholesky:
        """A factor without numbers yet; there has to be memory for it."""
        check_bytes(f"a factor of {self.particles!r}", self.symbolic.memory)
        return BandedCholesky(self.symbolic) if isinstance(self.symbolic, Band) else Cholesky(self.symbolic)

    @cached_property
    def factor(self) -> Cholesky | BandedCholesky:
        """The factor that is used again in each step."""
        return self.new_factor()

    def rows(self, x: Array) -> tuple[Array, Any]:
        """g (m,) and J (m, 3 nodes) at positions x (n, 3)."""
        g, values = np.empty(self.m), np.empty(len(self._columns))
        for number, group, at in self.groups:
            kind, own, here = group.kind, g[at].reshape(-1, group.kind.rows), self._entries_of(at, values)
            points = x.take(group.points, 0)
            if number in self._steady:
                deformation_value(kind, points, group.numbers, out=own)
                here[:] = self._steady[number][1]
            else:
                deformation_parts(kind, points, group.numbers, out=(own, here.reshape(-1, kind.rows, kind.points, 3)))
        return g, sparse.csr_matrix((values, self._columns, self._indptr), shape=(self.m, 3 * self.particles.nodes))

    def squares(self, system: System, steady: tuple[bool, ...] = (True, False)) -> Iterator[tuple[int, Array]]:
        """The groups' blocks of Jᵀ E⁻¹ J, each to be used before the next is made."""
        for (number, group, at), rows in zip(self.groups, self.rows_of(system.J), strict=True):
            if (number in self._steady) in steady:
                kind, k = group.kind, group.kind.points
                weight = 1.0 / system.E[at].reshape(-1, kind.rows)
                out = self._room[: 9 * len(group) * k * k].reshape(-1, k, k, 3, 3)
                yield number, weighted_square(kind, rows, weight, out=out)

    def rows_of(self, J: Any) -> list[Array]:
        """The rows of each group as (elements, rows, points, 3), without copies."""
        return [
            self._steady[number][0]
            if number in self._steady
            else self._entries_of(at, J.data).reshape(-1, group.kind.rows, group.kind.points, 3)
            for number, group, at in self.groups
        ]

    def _entries_of(self, at: slice, values: Array) -> Array:
        """Those entries of J that are in some rows."""
        return values[self._indptr[at.start] : self._indptr[at.stop]]

    @cached_property
    def _steady(self) -> dict[int, tuple[Array, Array]]:
        """The rows (elements, rows, points, 3) of groups whose rows never change, and the entries of J among them."""
        found = {}
        for number, group, _ in self.groups:
            if group.kind.steady:
                rows = deformation_parts(group.kind, self.particles.positions[group.points], group.numbers).rows
                found[number] = (rows, rows[:, _entries(group.kind)].reshape(-1))
        return found

    @cached_property
    def _room(self) -> Array:
        """Where blocks of a group are before they are summed: new memory in each step would take longer."""
        return np.empty(max((9 * len(g) * g.kind.points**2 for _, g, _ in self.groups), default=0))

    @cached_property
    def lower(self) -> Lower:
        """What a factor reads of A."""
        return Lower(self)

    @cached_property
    def places(self) -> Array:
        """(nodes, 3) where nodes are as the system is built [m]."""
        p = self.particles
        return np.concatenate([p.positions, *([] if p.bricks is None else [p.bricks.positions] * 2)])

    @cached_property
    def turning(self) -> Turning:
        """Whether forces that turn may be explicit."""
        return Turning(self)

    @cached_property
    def coarse(self) -> CoarseGrid:
        """The coarse grid of multigrid."""
        return CoarseGrid(self)

    def stiffness(self, x: Array, force: Array | None) -> tuple[Array, list[tuple[int, Array]], float]:
        """Forces of energies (nodes, 3), the groups' blocks of stiffness, and the energy [J].

        `force` (m,) [N] are those of rows whose turning counts, ∂V/∂g; None where it does not.
        """
        f, blocks, total = np.zeros((self.particles.nodes, 3)), [], 0.0
        for number, group in self.energies:
            at = x[group.points]
            parts = energy_parts(group.kind, at, group.numbers)
            K = _repaired(group, at, parts.stiffness, parts.mixed, None)
            flat = group.points.reshape(-1)
            for axis in range(3):
                f[:, axis] -= np.bincount(flat, parts.gradient[..., axis].reshape(-1), len(f))
            blocks.append((number, K))
            total += float(parts.value.sum())
        for number, group, rows in self.groups if force is not None else ():
            at, own = x[group.points], np.asarray(force)[rows].reshape(-1, group.kind.rows)
            K, mixed = turning_stiffness(group.kind, at, group.numbers, own)
            blocks.append((number, _repaired(group, at, K, mixed, own)))
        return f, blocks, total

    def masses(self, orientations: Array) -> Array:
        """(nodes, 3, 3) blocks of the mass matrix [kg, kg·m²]."""
        p = self.particles
        M = np.array(self._particle_masses)
        if p.bricks is not None:
            M[p.n : p.n + p.b] = p.bricks.masses[:, None, None] * np.eye(3)
            M[p.n + p.b :] = inertias(p.bricks, orientations)
        return M

    def system(
        self, x: Array, v: Array, M: Array, blend: Blend, force: Array | None, applied: Array, stabilized: bool
    ) -> System:
        """W, c, J, R and b of a step, with E and what the factor takes: A = W + Jᵀ E⁻¹ J.

        x (n, 3), v (nodes, 3) with those that are given already as they will be; M (nodes, 3, 3); `applied` (nodes, 3)
        forces [N, N·m] besides gravity and elements.
        """
        h, alpha, beta = blend
        p = self.particles
        _, R, gained, shifted, E = self._compliances(blend)
        g, J = self.rows(x)
        flat = v.reshape(-1)
        b = gained * g
        if self.rigid.any() or shifted.any():
            rate = J @ flat
            asked = 0.0 if stabilized else kinematic(blend, g, rate, 0.0)
            b = np.where(self.rigid, asked, b + shifted * rate)
        f, stiff, _ = self.stiffness(x, force)
        f += applied
        diagonal = M
        if np.any(p.drag):
            drag = np.zeros(p.nodes)
            drag[: p.n] = p.drag
            diagonal = M + (h * alpha * drag)[:, None, None] * np.eye(3)
            f -= (1.0 - alpha) * drag[:, None] * v
        f[: p.n] += p.masses[:, None] * p.gravity
        f[p.n : p.n + p.b] += 0.0 if p.bricks is None else p.bricks.masses[:, None] * p.gravity
        f *= h
        f[: p.n] += p.masses[:, None] * v[: p.n]
        f[p.n :] += (M[p.n :] @ v[p.n :, :, None])[..., 0]
        c = f
        K = self.pattern.summed(stiff) if stiff else None
        W = None
        if K is not None:
            if beta != 1.0:
                c = c - (alpha * (1.0 - beta) * h * h * (self.pattern.matrix(K) @ flat)).reshape(-1, 3)
            W = h * h * alpha * beta * K
            W[self.pattern.diagonal] += diagonal
        return System(self, diagonal, W, c.reshape(-1), J, R, b, E, g)

    @cached_property
    def _particle_masses(self) -> Array:
        """(nodes, 3, 3) the blocks of particles, and room for those of bricks."""
        M = np.zeros((self.particles.nodes, 3, 3))
        M[: self.particles.n] = self.particles.masses[:, None, None] * np.eye(3)
        return M

    def _compliances(self, blend: Blend) -> _Fixed:
        """What stays from step to step: kept for the last blend."""
        if self._fixed is None or self._fixed.blend != blend:
            self._fixed = self._new_compliances(blend)
        return self._fixed

    def _new_compliances(self, blend: Blend) -> _Fixed:
        R, gained, shifted = np.zeros(self.m), np.zeros(self.m), np.zeros(self.m)
        for _, group, at in self.groups:
            if group.compliance is not None:
                C = np.repeat(group.compliance, group.kind.rows)
                B = None if group.damping is None else np.repeat(group.damping, group.kind.rows)
                R[at], gained[at] = elastic(blend, 1.0, 0.0, 0.0, C, B)
                shifted[at] = elastic(blend, 0.0, 1.0, 0.0, C, B)[1]
        E = np.maximum(R, np.where(self.rigid, PROXIMAL, STIFFEST) * self.response)
        return _Fixed(blend, R, gained, shifted, E)


class _Fixed(NamedTuple):
    """R (m,), the factors of g and of its rate in b, of elastic rows, and E, for a blend."""

    blend: Blend
    R: Array
    gained: Array
    shifted: Array
    E: Array


def _entries(kind: ElementKind) -> NDArray[np.bool_]:
    """(rows, points, 3) which entries of J an element has: all, or those that are not zero if they never change."""
    return kind.reached if kind.steady else np.ones((kind.rows, kind.points, 3), bool)


def _repaired(group: Any, x: Array, K: Array, mixed: Array, force: Array | None) -> Array:
    """Stiffness whose indefinite matrices are without their negative eigenvalues."""
    at = np.flatnonzero(mixed)
    if len(at):
        kind = group.kind
        own = np.zeros((len(at), kind.m)) if force is None else force[at]
        K[at] = clamped(kind, np.asarray(curvature(kind, x[at], group.numbers[at], own)))
    return K
