"""Contact problems with friction pyramids, as linear complementarity problems 0 ≤ z ⊥ M z + q ≥ 0.

With the corners d_k of the polygon that replaces the circle, λ_t = Σ β_k d_k, and Coulomb's law reads

    0 ≤ λ_n ⊥ σ_n ≥ 0        0 ≤ β_k ⊥ d_kᵀ σ_t + ξ ≥ 0        0 ≤ ξ ⊥ friction λ_n - Σ β_k ≥ 0

with the sliding speed ξ (Stewart, Trinkle). A half-line is one complementarity condition. An interval is two: from a
point c in it the impulse c + a - b rises by a ≤ upper - c and falls by b ≤ c - lower. Free rows are eliminated first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.contact.cones.kinds import Free, NonNegative
from delassus.contact.cones.pyramid import corners, project_pyramid
from delassus.contact.systems.protocol import natural_residual
from delassus.contact.systems.scaled import Scaled
from delassus.linalg.filtered_system import least_norm
from delassus.linalg.schur import eliminate_rows


class Pyramids(NamedTuple):
    """A problem in scaled units, with pyramids in place of cones. It has the interface of `Scaled`."""

    scaled: Scaled
    faces: int
    pyramid: str

    def corrected_velocity(self, velocity: Any) -> Any:
        """σ + Γ(σ): in the normal rows, friction · max_k(-d_kᵀ σ_t) takes the place of friction · ‖σ_t‖."""
        result, d = np.array(velocity), corners(self.faces, self.pyramid)
        for k, at in enumerate(self.scaled.layout.blocks):
            slides = np.maximum(np.max(-velocity[at][:2] @ d), 0.0)
            result[at.stop - 1] = result[at.stop - 1] + self.scaled.friction[k] * slides
        return result

    def project(self, x: Any) -> Any:
        """Project impulses (m,) onto pyramids and bounds."""
        layout = self.scaled.layout
        parts = [self.scaled.project(x)[: layout.scalars]] if layout.scalars else []
        for k, at in enumerate(layout.blocks):
            parts.append(project_pyramid(x[at], self.scaled.friction[k], self.faces, self.pyramid))
        return np.concatenate(parts)

    def residual(self, impulse: Any, velocity: Any) -> Any:
        """λ - P(λ - σ - Γ(σ)) (m,): zero for a solution."""
        return natural_residual(self, impulse, velocity)

    def error(self, impulse: Any) -> Any:
        """The largest residual of a row, relative to its limit.

        With large friction, the projection hides the penetration of a contact, so the normals are also tested on their
        own.
        """
        velocity, limit = self.scaled.velocity(impulse), self.scaled.limit
        shares = [np.max(np.abs(self.residual(impulse, velocity)) / limit)]
        for at in self.scaled.layout.blocks:
            n = at.stop - 1
            shares.append(np.abs(np.minimum(impulse[n], velocity[n])) / limit[n])
        return np.max(np.stack(shares))


class Complementarity(NamedTuple):
    """M (n, n) and q (n,), and the map from z (n,) to impulses (m,)."""

    M: Any
    q: Any
    impulse: Callable[[Any], Any]


def complementarity_of(problem: Pyramids) -> Complementarity:
    """The linear complementarity problem of a contact problem, scaled to a largest free velocity of one."""
    scaled, layout = problem.scaled, problem.scaled.layout
    free, half = len(layout.rows(Free)), len(layout.rows(NonNegative))
    size = np.max(np.abs(scaled.g))
    size = np.where(size > 0.0, size, 1.0)
    G, g = scaled.G, scaled.g / size
    reduced = eliminate_rows(G, g[:free], least_norm) if free else None
    if reduced is not None:
        G, g = reduced.S, g[free:] + reduced.shift
    m, intervals, K = layout.m - free, layout.intervals, problem.faces
    n = half + 4 * intervals + (K + 2) * layout.contacts
    S, C, q, shift = numpy.zeros((m, n)), np.zeros((n, n)), np.zeros(n), np.zeros(m)  # λ = S z + shift
    S[:half, :half] = numpy.eye(half)
    for j in range(intervals):
        row, (a, b, a_full, b_full) = half + j, range(half + 4 * j, half + 4 * j + 4)
        lower, upper = scaled.lower[j] / size, scaled.upper[j] / size
        shift[row] = np.minimum(np.maximum(lower, 0.0), upper)
        S[row, a], S[row, b] = 1.0, -1.0
        for z, full, room in ((a, a_full, upper - shift[row]), (b, b_full, shift[row] - lower)):
            C[z, full], C[full, z], q[full] = 1.0, -1.0, room
    for k in range(layout.contacts):
        row, normal = half + intervals + 3 * k, half + 4 * intervals + (K + 2) * k
        edges, speed = slice(normal + 1, normal + 1 + K), normal + 1 + K
        S[row + 2, normal] = 1.0
        S[row : row + 2, edges] = corners(K, problem.pyramid)
        # ξ is scaled such that large coefficients do not occur.
        unit = 1.0 / np.maximum(scaled.friction[k], 1.0)
        C[edges, speed], C[speed, edges], C[speed, normal] = unit, -unit, unit * scaled.friction[k]

    def impulse(z: Any) -> Any:
        impulses = S @ z + shift
        if reduced is None:
            return size * impulses
        return size * np.concatenate([reduced.impulses(impulses), impulses])

    return Complementarity(S.T @ G @ S + C, S.T @ (G @ shift + g) + q, impulse)
