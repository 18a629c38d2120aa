"""From elements to the matrices of a step: patterns once, then numbers only."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.algebra.banded import WIDEST, Band, BandedCholesky
from delassus.particles.algebra.cholesky import Cholesky, Fronts
from delassus.particles.algebra.memory import check_bytes, check_memory
from delassus.particles.algebra.pattern import Pattern
from delassus.particles.description.bodies import inertias
from delassus.particles.description.lanes import (
    clamped,
    curvature,
    deformation_parts,
    energy_parts,
    turning_stiffness,
)
from delassus.particles.description.particles import Particles
from delassus.particles.solvers.system import System
from delassus.stepping.compliant.scheme import elastic, kinematic
from delassus.stepping.scheme.blend import Blend

Array = NDArray[np.float64]

PROXIMAL: Final = 1e-9
"""The share of its own response by which a rigid row yields in the factor; what it yields is taken back afterwards."""

STIFFEST: Final = 1e-12
"""The least such share of an elastic row; what is stiffer yields by so much, and that is taken back, too."""


class Assembly:
    """What is found once of a system: patterns, places, scales.

    Attributes:
        particles: The system.
        pattern: Of W and of A = W + Jᵀ E⁻¹ J.
        free: (nodes,) which nodes' velocities are unknown.
        groups: The groups of deformations, with the place of their first row.
        energies: The groups of energies.
    """

    def __init__(self, particles: Particles) -> None:
        check_memory(particles)
        self.particles = particles
        self.free = np.concatenate([~particles.held, np.ones(2 * particles.b, bool)])
        self.pattern = Pattern(particles.nodes, [group.points for group in particles.elements])
        self.groups, self.energies, start = [], [], 0
        for number, group in enumerate(particles.elements):
            if group.kind.rows:
                self.groups.append((number, group, slice(start, start + group.rows)))
                start += group.rows
            else:
                self.energies.append((number, group))
        self.m = start
        points = [np.repeat(g.points[:, None, :], g.kind.rows, 1).reshape(-1, g.kind.points) for _, g, _ in self.groups]
        counts = [np.full(len(rows), 3 * rows.shape[1]) for rows in points]
        columns = [(3 * rows[:, :, None] + np.arange(3)).reshape(-1) for rows in points]
        self._columns = np.concatenate([np.zeros(0, np.int64), *columns])
        self._indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])
        self.rigid = np.concatenate([np.zeros(0, bool), *(np.full(g.rows, g.rigid) for _, g, _ in self.groups)])

    @cached_property
    def response(self) -> Array:
        """(m,) how much each row gives way to an impulse at first, J M⁻¹ Jᵀ [1/kg]: a scale."""
        inverse = np.zeros(self.particles.nodes)
        held = self.particles.held
        inverse[: self.particles.n][~held] = 1.0 / self.particles.masses[~held]
        J = self.rows(self.particles.positions, np.ones(self.m))[1]
        found = np.asarray((J.multiply(J)) @ np.repeat(inverse, 3))
        positive = found > 0.0
        return np.where(positive, found, found[positive].mean() if positive.any() else 1.0)

    @cached_property
    def symbolic(self) -> Band | Fronts:
        """The order of elimination, and where entries of factors go."""
        band = Band(self.pattern, self.free)
        return band if band.nodes <= WIDEST else self.fronts(self.pattern)

    def fronts(self, pattern: Pattern) -> Fronts:
        """Fronts of another pattern of the same nodes."""
        p = self.particles
        bodies = [] if p.bricks is None else [p.bricks.positions] * 2
        return Fronts(pattern, np.concatenate([p.positions, *bodies]), self.free)

    def new_factor(self) -> Cholesky | BandedCholesky:
        """A factor without numbers yet; there has to be memory for it."""
        check_bytes(f"a factor of {self.particles!r}", self.symbolic.memory)
        return BandedCholesky(self.symbolic) if isinstance(self.symbolic, Band) else Cholesky(self.symbolic)

    @cached_property
    def factor(self) -> Cholesky | BandedCholesky:
        """The factor that is used again in each step."""
        return self.new_factor()

    def rows(self, x: Array, weight: Array) -> tuple[Array, Any, list[tuple[int, Array]]]:
        """g (m,), J (m, 3 nodes), and the groups' blocks of Jᵀ diag(weight) J, at positions x (n, 3)."""
        g, data, blocks = [], [], []
        for number, group, at in self.groups:
            kind = group.kind
            parts = deformation_parts(kind, x[group.points], group.numbers, weight[at].reshape(-1, kind.rows))
            g.append(parts.value.reshape(-1))
            data.append(parts.rows.reshape(-1))
            blocks.append((number, parts.block))
        values = np.concatenate([np.zeros(0), *data])
        J = sparse.csr_matrix((values, self._columns, self._indptr), shape=(self.m, 3 * self.particles.nodes))
        return np.concatenate([np.zeros(0), *g]), J, blocks

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
        M = np.zeros((p.nodes, 3, 3))
        M[: p.n] = p.masses[:, None, None] * np.eye(3)
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
        R, gained, shifted = self._compliances(blend)
        E = np.maximum(R, np.where(self.rigid, PROXIMAL, STIFFEST) * self.response)
        g, J, blocks = self.rows(x, 1.0 / E)
        flat = v.reshape(-1)
        rate = J @ flat
        b = np.where(self.rigid, 0.0 if stabilized else kinematic(blend, g, rate, 0.0), gained * g + shifted * rate)
        f, stiff, _ = self.stiffness(x, force)
        drag = np.zeros(p.nodes)
        drag[: p.n] = p.drag
        diagonal = M + (h * alpha * drag)[:, None, None] * np.eye(3)
        f = f + applied - (1.0 - alpha) * drag[:, None] * v
        f[: p.n] += p.masses[:, None] * p.gravity
        f[p.n : p.n + p.b] += 0.0 if p.bricks is None else p.bricks.masses[:, None] * p.gravity
        c = (M @ v[..., None])[..., 0] + h * f
        K = self.pattern.summed(stiff) if stiff else None
        W = None
        if K is not None:
            if beta != 1.0:
                c = c - (alpha * (1.0 - beta) * h * h * (self.pattern.matrix(K) @ flat)).reshape(-1, 3)
            W = h * h * alpha * beta * K
            W[self.pattern.diagonal] += diagonal
        return System(self, diagonal, W, c.reshape(-1), J, R, b, E, g, blocks)

    def _compliances(self, blend: Blend) -> tuple[Array, Array, Array]:
        """R (m,), and the factors of g and of its rate in b, of elastic rows."""
        R, gained, shifted = np.zeros(self.m), np.zeros(self.m), np.zeros(self.m)
        for _, group, at in self.groups:
            if group.compliance is not None:
                C = np.repeat(group.compliance, group.kind.rows)
                B = None if group.damping is None else np.repeat(group.damping, group.kind.rows)
                R[at], gained[at] = elastic(blend, 1.0, 0.0, 0.0, C, B)
                shifted[at] = elastic(blend, 0.0, 1.0, 0.0, C, B)[1]
        return R, gained, shifted


def _repaired(group: Any, x: Array, K: Array, mixed: Array, force: Array | None) -> Array:
    """Stiffness whose indefinite matrices are without their negative eigenvalues."""
    at = np.flatnonzero(mixed)
    if len(at):
        kind = group.kind
        own = np.zeros((len(at), kind.m)) if force is None else force[at]
        K[at] = clamped(kind, np.asarray(curvature(kind, x[at], group.numbers[at], own)))
    return K
