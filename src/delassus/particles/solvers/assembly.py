"""Assembles the matrices of a step: patterns once, values in each step."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.particles.description.bodies import inertias
from delassus.particles.description.lanes import (
    clamp_eigenvalues,
    curvature,
    energy_parts,
    turning_stiffness,
)
from delassus.particles.solvers.structure import Structure
from delassus.particles.solvers.system import System
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.row_laws import kinematic

Array = NDArray[np.float64]


class Assembly(Structure):
    """Assembles the matrices of a step from a state and the structure of a system."""

    def stiffness(self, x: Array, force: Array | None) -> tuple[Array, list[tuple[int, Array]], float]:
        """Forces of energies (nodes, 3), the groups' stiffness blocks, and the energy [J].

        `force` (m,) [N] are the forces ∂V/∂g of rows with geometric stiffness; None without it.
        """
        f, blocks, total = np.zeros((self.particles.nodes, 3)), [], 0.0
        for number, group in self.energies:
            at = x[group.points]
            parts = energy_parts(group.kind, at, group.numbers)
            K = _remove_negative_eigenvalues(group, at, parts.stiffness, parts.mixed, None)
            flat = group.points.reshape(-1)
            for axis in range(3):
                f[:, axis] -= np.bincount(flat, parts.gradient[..., axis].reshape(-1), len(f))
            blocks.append((number, K))
            total += float(parts.value.sum())
        for number, group, rows in self.rows.groups if force is not None else ():
            at, row_forces = x[group.points], np.asarray(force)[rows].reshape(-1, group.kind.rows)
            K, mixed = turning_stiffness(group.kind, at, group.numbers, row_forces)
            blocks.append((number, _remove_negative_eigenvalues(group, at, K, mixed, row_forces)))
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
        """W, c, J, R and b of a step, with E and the matrix to factor: A = W + Jᵀ E⁻¹ J.

        x (n, 3), v (nodes, 3) with prescribed velocities at their new values; M (nodes, 3, 3); `applied` (nodes, 3)
        forces [N, N·m] in addition to gravity and elements.
        """
        h, alpha, beta = blend
        p = self.particles
        _, R, factors, shifted, E = self.rows.compliances(blend)
        g, J = self.rows.at(x)
        flat = v.reshape(-1)
        b = factors * g
        if self.rows.rigid.any() or shifted.any():
            rate = J @ flat
            target = 0.0 if stabilized else kinematic(blend, g, rate, 0.0)
            b = np.where(self.rows.rigid, target, b + shifted * rate)
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
        K = self.pattern.sum_blocks(stiff) if stiff else None
        W = None
        if K is not None:
            if beta != 1.0:
                c = c - (alpha * (1.0 - beta) * h * h * (self.pattern.matrix(K) @ flat)).reshape(-1, 3)
            W = h * h * alpha * beta * K
            W[self.pattern.diagonal] += diagonal
        return System(self, diagonal, W, c.reshape(-1), J, R, b, E, g)

    @cached_property
    def _particle_masses(self) -> Array:
        """(nodes, 3, 3) the blocks of particles, and zeros for those of bricks."""
        M = np.zeros((self.particles.nodes, 3, 3))
        M[: self.particles.n] = self.particles.masses[:, None, None] * np.eye(3)
        return M


def _remove_negative_eigenvalues(group: Any, x: Array, K: Array, mixed: Array, force: Array | None) -> Array:
    """Stiffness in which indefinite matrices are replaced by their positive semidefinite parts."""
    at = np.flatnonzero(mixed)
    if len(at):
        kind = group.kind
        row_forces = np.zeros((len(at), kind.m)) if force is None else force[at]
        K[at] = clamp_eigenvalues(kind, np.asarray(curvature(kind, x[at], group.numbers[at], row_forces)))
    return K
