"""The symbolic structure of a system: patterns, positions, scales, factors."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.particles.algebra.banded import WIDEST, Band, BandedCholesky
from delassus.particles.algebra.cholesky import Cholesky, Fronts
from delassus.particles.algebra.memory import check_bytes, check_memory
from delassus.particles.algebra.pattern import Pattern
from delassus.particles.description.particles import Particles
from delassus.particles.solvers.coarse import CoarseGrid
from delassus.particles.solvers.geometric_stability import GeometricStiffness
from delassus.particles.solvers.lower_blocks import Lower
from delassus.particles.solvers.rows import Rows

Array = NDArray[np.float64]

LARGE: Final = 200_000
"""Number of unknowns from which two grids are faster than factors for sheets."""


class Structure:
    """The structure of a system: patterns, positions, scales.

    Attributes:
        particles: The system.
        pattern: Of W and of A = W + Jᵀ E⁻¹ J.
        free: (nodes,) whether nodes are free.
        held: Indices of prescribed velocities among all.
        rows: Those of deformations.
        energies: The groups of energies, with their indices.
    """

    def __init__(self, particles: Particles) -> None:
        check_memory(particles)
        self.particles = particles
        self.free = np.concatenate([~particles.is_prescribed, np.ones(2 * particles.b, bool)])
        self.is_prescribed = (3 * np.flatnonzero(~self.free)[:, None] + np.arange(3)).reshape(-1)
        self.pattern = Pattern(particles.nodes, [group.points for group in particles.elements])
        self.rows = Rows(particles)
        numbered = enumerate(particles.elements)
        self.energies = [(number, group) for number, group in numbered if not group.kind.rows]

    @cached_property
    def arms(self) -> Array:
        """(nodes,) factors from the velocity of a node to that of a point: 1, or for angular velocities the size of a
        brick [m].
        """
        p = self.particles
        return np.concatenate([np.ones(p.n + p.b), *([] if p.bricks is None else [p.bricks.reach])])

    @cached_property
    def symbolic(self) -> Band | Fronts:
        """The symbolic factorization."""
        band = Band(self.pattern, self.free)
        return band if band.nodes <= WIDEST else self.fronts(self.pattern)

    @property
    def spreads(self) -> bool:
        """Whether two grids are faster than factors: for large elastic systems other than lines."""
        if 3 * self.particles.nodes < LARGE or self.rows.rigid.any() or self.particles.b or not self.rows.groups:
            return False
        return not isinstance(self.symbolic, Band)

    def fronts(self, pattern: Pattern) -> Fronts:
        """Fronts of another pattern of the same nodes."""
        return Fronts(pattern, self.places, self.free)

    def new_factor(self) -> Cholesky | BandedCholesky:
        """A new numeric factor, after a check of memory."""
        check_bytes(f"a factor of {self.particles!r}", self.symbolic.memory)
        return BandedCholesky(self.symbolic) if isinstance(self.symbolic, Band) else Cholesky(self.symbolic)

    @cached_property
    def factor(self) -> Cholesky | BandedCholesky:
        """The factor that is reused in each step."""
        return self.new_factor()

    @cached_property
    def lower(self) -> Lower:
        """The blocks of A that a factor reads."""
        return Lower(self.symbolic.source, self.pattern, self.rows, self.free)

    @cached_property
    def places(self) -> Array:
        """(nodes, 3) initial positions of nodes [m]."""
        p = self.particles
        return np.concatenate([p.positions, *([] if p.bricks is None else [p.bricks.positions] * 2)])

    @cached_property
    def turning(self) -> GeometricStiffness:
        """The criterion for explicit geometric stiffness."""
        return GeometricStiffness(self.particles, self.rows)

    @cached_property
    def coarse(self) -> CoarseGrid:
        """The coarse grid of multigrid."""
        return CoarseGrid(self.particles, self.pattern, self.free, self.places)
