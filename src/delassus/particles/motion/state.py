"""States of large systems, and results of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.types import ArrayLike
from delassus.constrained.solvers.status import Status
from delassus.errors import expect
from delassus.particles.description.checks import ParticlesError, broadcast_to_shape
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ParticleState:
    """Positions, velocities, and the impulses of the previous step.

    Attributes:
        time: [s].
        x: (n + b, 3) positions of particles, then of the centers of bricks [m].
        v: (n + 2 b, 3) velocities of particles, of bricks [m/s], angular velocities of bricks in the world [rad/s].
        orientations: (b, 4) quaternions of bricks.
        impulse: (rows,) impulses of the elements' rows [N·s].
        touched: (c,) keys of contacts, for warm starts.
        contact: (c, 3) impulses t1, t2, n of contacts [N·s].

    >>> dl.particles.initial_state(dl.particles.rope(segments=3)).v.shape
    (4, 3)
    """

    time: float
    x: Array
    v: Array
    orientations: Array
    impulse: Array
    touched: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    contact: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def at(self, **changes: Any) -> ParticleState:
        """A copy with changed fields."""
        return replace(self, **changes)


def initial_state(
    particles: Particles, x: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0
) -> ParticleState:
    """A state; by default the described positions at rest. Arguments as for `ParticleState`.

    >>> dl.particles.initial_state(dl.particles.rope(segments=3)).x.shape
    (4, 3)
    """
    n, b = particles.n, particles.b
    position_parts = [particles.positions] + ([] if particles.bricks is None else [particles.bricks.positions])
    x = np.concatenate(position_parts) if x is None else broadcast_to_shape("x", x, (n + b, 3))
    v = np.zeros((particles.nodes, 3)) if v is None else broadcast_to_shape("v", v, (particles.nodes, 3))
    for name, value in (("x", x), ("v", v)):
        if not np.isfinite(value).all():
            raise ParticlesError(
                f"{name} of the state has values that are not finite; all must be finite.", code="not-finite"
            )
    turns = np.zeros((0, 4)) if particles.bricks is None else np.array(particles.bricks.orientations)
    return ParticleState(float(time), np.array(x), np.array(v), turns, np.zeros(particles.rows))


def check_state(particles: Particles, state: ParticleState) -> None:
    """Raise an error unless a state belongs to this system."""
    expect("the state", state, ParticleState, "dl.particles.initial_state(rope)")
    n, b, c = particles.n, particles.b, len(state.touched)
    shapes = {"x": (n + b, 3), "v": (particles.nodes, 3), "orientations": (b, 4), "impulse": (particles.rows,)}
    for name, shape in (shapes | {"contact": (c, 3)}).items():
        shape_found = np.shape(getattr(state, name))
        if shape_found != shape:
            raise ParticlesError(
                f"the state belongs to another system: its {name} has shape {shape_found}, and {particles!r} needs "
                f"{shape}.",
                code="other-system",
            )


@dataclass(frozen=True, eq=False)
class ParticleStep:
    """Result of a time step.

    Attributes:
        state: State after the step.
        time_step: h [s].
        residual: Residual of rows and momentum, relative to the velocities of the step.
        contact_residual: Residual of contacts, likewise.
        iterations: Number of iterations of the row solver.
        contact_iterations: Number of iterations of the contact solver.
        status: Status of the solve; the state is the best found.
        seconds: Computing times of elements, assembly, solve and contact [s].
        tied: (k, 3) mean forces of particles on their tie [N], in the world.

    >>> rope = dl.particles.rope(segments=3)
    >>> step = dl.particles.particle_step(rope, dl.particles.initial_state(rope), time_step=1e-2)
    >>> step.time_step
    0.01
    """

    state: ParticleState
    time_step: float
    residual: float
    contact_residual: float
    iterations: int
    contact_iterations: int
    status: Status
    seconds: Mapping[str, float]
    tied: Array = field(default_factory=lambda: np.zeros((0, 3)))

    @property
    def force(self) -> Array:
        """(rows,) mean forces of the elements' rows [N, N·m]; negative for a rod in tension."""
        return np.asarray(self.state.impulse / self.time_step)

    def describe(self) -> str:
        """Describe the result in a sentence or two."""
        touched = (
            f" {len(self.state.touched)} contacts, to {self.contact_residual:.2g}." if len(self.state.touched) else ""
        )
        return (
            f"{self.status.sentence} The residual is {self.residual:.2g} after {self.iterations} iterations.{touched}"
        )
