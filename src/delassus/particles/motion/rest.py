"""`at_rest`: the equilibrium of a system, by damped steps of increasing length.

An implicit step of length h with implicitly rotating forces is Newton's method for the balance of forces, damped by the
masses, more so for small h. Velocities are set to zero after each step, and steps grow as the residual decreases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.common.checks import check_integer
from delassus.constrained.solvers.status import Status
from delassus.particles.description.checks import ParticlesError
from delassus.particles.description.particles import Particles
from delassus.particles.motion.state import ParticleState, check_state, initial_state
from delassus.particles.motion.step import Stepper
from delassus.step.scheme.blend import Blend


@dataclass(frozen=True, eq=False)
class Rest:
    """A system at rest.

    Attributes:
        state: The equilibrium, or the best state found.
        moved: Largest displacement of a particle in the last step [m].
        steps: Number of steps.
        status: Whether an equilibrium was found.

    >>> rest = dl.particles.at_rest(dl.particles.rope((0, 0, 0), (1, 0, 0), 4, density=0.1, length=1.2))
    >>> rest.status.name
    'CONVERGED'
    """

    state: ParticleState
    moved: float
    steps: int
    status: Status


def at_rest(
    particles: Particles,
    state: ParticleState | None = None,
    *,
    time_step: float = 0.05,
    longest: float = 1e4,
    tolerance: float = 1e-10,
    steps: int = 500,
    **options: Any,
) -> Rest:
    """The equilibrium of a system: `moved` is below the tolerance, relative to its size.

    Args:
        particles: The system, without obstacles and bricks.
        state: Initial state; by default that of the description.
        time_step: Initial time step [s].
        longest: Longest time step [s].
        tolerance: Largest displacement of a step, relative to the system's size.
        steps: Maximum number of steps.
        **options: Options of `Stepper`.

    >>> rest = dl.particles.at_rest(dl.particles.rope((0, 0, 0), (1, 0, 0), 4, density=0.1, length=1.2))
    >>> rest.state.x[2]
    array([ 0.5  ,  0.   , -0.302])
    """
    check_integer("steps", steps)
    if particles.obstacles or particles.b:
        raise ParticlesError(
            f"{particles!r} has obstacles or bricks, and at_rest does not support contacts: its long steps would pass "
            "through them. Omit them, or simulate with drag until it is slow.",
            code="not-supported",
        )
    state = initial_state(particles) if state is None else state
    check_state(particles, state)
    size = float(np.ptp(state.x, axis=0).max()) or 1.0
    # Long steps have large velocities, relative to which displacements are small even if they are not.
    finest: dict[str, Any] = {"method": "cholesky", "tolerance": 1e-15, "iterations": 8} | options
    stepper = Stepper(particles, time_step, geometric_stiffness=True, **finest)
    h, best, least, count, before = time_step, state, np.inf, 0, np.inf
    for count in range(1, steps + 1):
        stepper.h, stepper.blend = h, Blend(h)
        after = stepper.step(state.at(v=np.zeros_like(state.v)))
        displacement = float(np.abs(after.state.x - state.x).max())
        if not np.isfinite(displacement):
            h, state, before = 0.1 * h, best, np.inf
            continue
        if displacement <= least:
            best, least = after.state, displacement
        if displacement <= tolerance * size and h >= min(longest, 1e2 * time_step):
            return Rest(after.state.at(v=np.zeros_like(state.v)), displacement, count, Status.CONVERGED)
        # Steps grow as the motion slows down, and shrink after a step that moved too far.
        speed = max(displacement / h, 1e-300)
        faster = 3.0 if displacement <= tolerance * size else float(np.clip(before / speed, 0.2, 3.0))
        grown = float(np.clip(h * faster, 1e-3 * time_step, longest))
        # Impulses of constant forces grow with the step.
        state = after.state.at(v=np.zeros_like(state.v), impulse=after.state.impulse * (grown / h))
        h, before = grown, speed
    return Rest(best.at(v=np.zeros_like(state.v)), least, count, Status.ITERATIONS)
