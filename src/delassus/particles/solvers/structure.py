"""The structure of a system that is known before its values: patterns, positions, scales, factors."""

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
"""From so many unknowns on, two grids are faster than factors for sheets."""


class Structure:
    """The structure of a system: patterns, positions, scales.

    Attributes:
        particles: The system.
        pattern: Of W and of A = W + Jᵀ E⁻¹ J.
        free: (nodes,) which nodes' velocities are unknown.
        held: The places of the others' velocities among those of all.
        rows: Those of deformations.
        energies: The groups of energies, with their numbers.
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
        """(nodes,) what turns the velocity of a node into one in space: 1, or of spins the reach of a brick [m]."""
        p = self.particles
        return np.concatenate([np.ones(p.n + p.b), *([] if p.bricks is None else [p.bricks.reach])])

    @cached_property
    def symbolic(self) -> Band | Fronts:
        """The order of elimination, and where entries of factors go."""
        band = Band(self.pattern, self.free)
        return band if band.nodes <= WIDEST else self.fronts(self.pattern)

    @property
    def spreads(self) -> bool:
        """Whether factors take longer than two grids do: of large elastic systems that are not lines."""
        if 3 * self.particles.nodes < LARGE or self.rows.rigid.any() or self.particles.b or not self.rows.groups:
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

    @cached_property
    def lower(self) -> Lower:
        """What a factor reads of A."""
        return Lower(self.symbolic.source, self.pattern, self.rows, self.free)

    @cached_property
    def places(self) -> Array:
        """(nodes, 3) where nodes are as the system is built [m]."""
        p = self.particles
        return np.concatenate([p.positions, *([] if p.bricks is None else [p.bricks.positions] * 2)])

    @cached_property
    def turning(self) -> GeometricStiffness:
        """Whether forces that turn may be explicit."""
        return GeometricStiffness(self.particles, self.rows)

    @cached_property
    def coarse(self) -> CoarseGrid:
        """The coarse grid of multigrid."""
        return CoarseGrid(self.particles, self.pattern, self.free, self.places)
