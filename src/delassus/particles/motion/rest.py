"""`at_rest`: the equilibrium of a system, by damped steps of increasing length.

An implicit step of length h with forces that turn implicitly is Newton's method for the balance of forces, held back by
the masses, the more so the shorter h is. Velocities are dropped after each, steps grow as the balance gets better.
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
        state: Where it is; of no convergence, the best that was found.
        moved: How far the last step moved a particle [m].
        steps: How many were made.
        status: Whether it came to rest.
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
    """Where a system comes to rest: `moved` is below the tolerance, as a share of its size.

    Args:
        particles: The system, without obstacles and bricks.
        state: Where it starts; by default, as it was built.
        time_step: The first step [s].
        longest: The longest one [s].
        tolerance: Of the motion of a step, as a share of the system's size.
        steps: How many are made at most.
        **options: As of `Stepper`.
    """
    check_integer("steps", steps)
    if particles.obstacles or particles.b:
        raise ParticlesError(
            f"{particles!r} has obstacles or bricks, and at_rest does not support contacts: its long steps would pass "
            "through them. Leave them out, or simulate with drag until it is slow.",
            code="not-supported",
        )
    state = initial_state(particles) if state is None else state
    check_state(particles, state)
    size = float(np.ptp(state.x, axis=0).max()) or 1.0
    # Long steps have large velocities: what is small beside these is not small beside the system.
    finest: dict[str, Any] = {"method": "cholesky", "tolerance": 1e-15, "iterations": 8} | options
    stepper = Stepper(particles, time_step, geometric_stiffness=True, **finest)
    h, best, least, made, before = time_step, state, np.inf, 0, np.inf
    for made in range(1, steps + 1):
        stepper.h, stepper.blend = h, Blend(h)
        after = stepper.step(state.at(v=np.zeros_like(state.v)))
        moved = float(np.abs(after.state.x - state.x).max())
        if not np.isfinite(moved):
            h, state, before = 0.1 * h, best, np.inf
            continue
        if moved <= least:
            best, least = after.state, moved
        if moved <= tolerance * size and h >= min(longest, 1e2 * time_step):
            return Rest(after.state.at(v=np.zeros_like(state.v)), moved, made, Status.CONVERGED)
        # The slower it moves, the longer steps may be; one that moved too far is followed by shorter ones.
        speed = max(moved / h, 1e-300)
        faster = 3.0 if moved <= tolerance * size else float(np.clip(before / speed, 0.2, 3.0))
        grown = float(np.clip(h * faster, 1e-3 * time_step, longest))
        # Impulses are those of forces that stay: they grow with the step.
        state = after.state.at(v=np.zeros_like(state.v), impulse=after.state.impulse * (grown / h))
        h, before = grown, speed
    return Rest(best.at(v=np.zeros_like(state.v)), least, made, Status.ITERATIONS)
