"""Energies and momenta of large systems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delassus.particles.description.bodies import inertias
from delassus.particles.description.lanes import deformation_value, energy_value
from delassus.particles.description.particles import Particles
from delassus.particles.motion.state import ParticleState

Array = NDArray[np.float64]


def total_kinetic_energy(particles: Particles, state: ParticleState) -> float:
    """½ vᵀ M v [J].

    >>> rope = dl.particles.rope(segments=3)
    >>> dl.particles.total_kinetic_energy(rope, dl.particles.initial_state(rope))
    0.0
    """
    n, b, v = particles.n, particles.b, state.v
    total = 0.5 * float(np.sum(particles.masses * np.sum(v[:n] ** 2, 1)))
    if particles.bricks is not None:
        spin = v[n + b :]
        total += 0.5 * float(np.sum(particles.bricks.masses * np.sum(v[n : n + b] ** 2, 1)))
        total += 0.5 * float(np.einsum("bi,bij,bj->", spin, inertias(particles.bricks, state.orientations), spin))
    return total


def total_elastic_energy(particles: Particles, state: ParticleState) -> float:
    """½ g²/C of elastic elements and V of energies [J]; zero for rigid elements.

    >>> rope = dl.particles.rope(segments=3)
    >>> isinstance(dl.particles.total_elastic_energy(rope, dl.particles.initial_state(rope)), float)
    True
    """
    total = 0.0
    for group in particles.elements:
        x = state.x[group.points]
        if not group.kind.rows:
            total += float(np.sum(energy_value(group.kind, x, group.numbers)))
        elif group.compliance is not None:
            g = np.asarray(deformation_value(group.kind, x, group.numbers))
            C = np.where(group.compliance > 0.0, group.compliance, np.inf)
            total += 0.5 * float(np.sum(np.sum(g**2, 1) / C))
    return total


def total_energy(particles: Particles, state: ParticleState) -> float:
    """Kinetic, elastic and gravitational energy [J].

    >>> rope = dl.particles.rope(segments=3)
    >>> isinstance(dl.particles.total_energy(rope, dl.particles.initial_state(rope)), float)
    True
    """
    masses = [particles.masses] + ([] if particles.bricks is None else [particles.bricks.masses])
    height = -float(np.sum(np.concatenate(masses) * (state.x @ particles.gravity)))
    return total_kinetic_energy(particles, state) + total_elastic_energy(particles, state) + height


def total_momentum(particles: Particles, state: ParticleState) -> tuple[Array, Array]:
    """Linear momentum (3,) [kg·m/s], and angular momentum (3,) about the origin [kg·m²/s].

    >>> rope = dl.particles.rope(segments=3)
    >>> linear, angular = dl.particles.total_momentum(rope, dl.particles.initial_state(rope))
    >>> linear
    array([0., 0., 0.])
    """
    n, b = particles.n, particles.b
    masses = np.concatenate([particles.masses] + ([] if particles.bricks is None else [particles.bricks.masses]))
    p = masses[:, None] * state.v[: n + b]
    turning = np.cross(state.x, p).sum(0)
    if particles.bricks is not None:
        turning = turning + np.einsum("bij,bj->i", inertias(particles.bricks, state.orientations), state.v[n + b :])
    return p.sum(0), turning
