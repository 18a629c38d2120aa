"""`particle_step`: one time step of a large system by the compliant scheme.

    M (v⁺ - v) = h ((1-α) f + α f⁺),    x⁺ = x + h ((1-β) v + β v⁺)

Equations, names and options are those of `dl.stepping.compliant_step`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import TIME_STEPS, number_in_range
from delassus.common.options import Shortcuts
from delassus.common.outcomes import worst_of
from delassus.common.types import ArrayLike
from delassus.constrained.solvers.status import Status
from delassus.errors import expect
from delassus.particles.contact.bricks import Touches
from delassus.particles.contact.detection import find_missing_touches, find_touches
from delassus.particles.description.bodies import coast, rotate_quaternion
from delassus.particles.description.checks import broadcast_to_shape
from delassus.particles.description.particles import Particles
from delassus.particles.motion.options import ContactSolver, ParticleScheme, RowSolver
from delassus.particles.motion.solution import (
    Clock,
    StepSolution,
    Ways,
    closing,
    gaps,
    impulses_before,
    keys,
    solution,
)
from delassus.particles.motion.state import ParticleState, ParticleStep, check_state
from delassus.particles.solvers.assembly import Assembly
from delassus.particles.solvers.choice import BY_BLOCKS
from delassus.particles.solvers.coupled_system import CoupledSystem, Tie
from delassus.particles.solvers.rows import PROXIMAL
from delassus.particles.solvers.system import System
from delassus.step.compliant.arguments import StepError
from delassus.step.scheme.blend import Blend

Array = NDArray[np.float64]

_SHORTCUTS: Final = Shortcuts(
    "Stepper", "particles time_step", scheme=ParticleScheme(), rows=RowSolver(), contact=ContactSolver()
)

_PASSES: Final = 5
"""Maximum number of solves of a step, each with the contacts that the previous one penetrated."""


class Stepper:
    """Makes many steps of a system and reuses its symbolic structure.

    Args:
        particles: The system.
        time_step: h [s].
        scheme: A `ParticleScheme`.
        rows: A `RowSolver`, or a method.
        contact: A `ContactSolver`, or a method.
        **shortcuts: alpha, beta, stabilization, geometric_stiffness (scheme); method, tolerance, iterations (rows);
            contact_method, contact_tolerance, contact_iterations (contact).

    >>> rope = dl.particles.rope(segments=3)
    >>> stepper = dl.particles.Stepper(rope, 1e-2)
    >>> stepper.step(dl.particles.initial_state(rope)).state.x.shape
    (4, 3)
    """

    def __init__(
        self,
        particles: Particles,
        time_step: float,
        *,
        scheme: ParticleScheme | None = None,
        rows: str | RowSolver | None = None,
        contact: str | ContactSolver | None = None,
        **shortcuts: Any,
    ) -> None:
        expect("the system", particles, Particles, "dl.particles.rope()")
        scheme, by, touching = _SHORTCUTS.fill(shortcuts, scheme=scheme, rows=rows, contact=contact)
        self.h = number_in_range("time_step", time_step, TIME_STEPS)
        self.blend = Blend(self.h, scheme.alpha, scheme.beta)
        method, contact_method = by.method, touching.method
        if self.blend.beta == 0.0 and (particles.obstacles or particles.b or particles.rows):
            raise StepError(
                "beta is 0: elements with rows, elastic ones among them, and contacts need beta > 0, such as 1; "
                "elements that are energies do not.",
                code="conflicting-arguments",
            )
        self.particles, self.stabilization = particles, scheme.stabilization
        if contact_method == "auto":
            contact_method = "admm" if particles.elements else "newton"
        self.assembly = Assembly(particles)
        if method == "auto":
            method = "multigrid" if self.assembly.spreads else "cholesky"
        self.geometric = scheme.geometric_stiffness
        if self.geometric is None and method in BY_BLOCKS:
            self.geometric = False
        default_iterations = 60 if method in ("cholesky", "multigrid", "superlu") else 2000
        iterations = default_iterations if by.iterations is None else int(by.iterations)
        tolerances = float(by.tolerance), float(touching.tolerance)
        self.ways = Ways(method, contact_method, *tolerances, iterations, int(touching.iterations))
        self.known: dict[str, Any] = {}
        self.system: System | None = None

    def step(self, state: ParticleState, applied: ArrayLike | None = None, tie: Tie | None = None) -> ParticleStep:
        """Make one time step.

        Args:
            state: State before the step.
            applied: (nodes, 3) forces on particles and bricks [N], then torques on bricks [N·m].
            tie: Coupling of particles to another system, such as the hand of a robot.
        """
        check_state(self.particles, state)
        clock = Clock()
        p, h = self.particles, self.h
        corrected = Status.CONVERGED
        if self.stabilization == "pre":
            state, corrected = self.correct_positions(state, clock)
        v = np.array(state.v)
        for motion in p.motions:
            v[motion.points] = motion.at(state.time + h)
        v[p.pins] = 0.0
        forces = broadcast_to_shape("applied", 0.0 if applied is None else applied, (p.nodes, 3))
        M = self.assembly.masses(state.orientations)
        gyroscopic, flight = _gyroscopic(p, state, M, v, self.blend)
        forces = forces + gyroscopic
        system = self._system(state, v, M, forces, tie)
        clock("elements")
        outcome, groups, mean = self._solve(system, state, v, clock)
        impulse, tie_impulse = outcome.solved.impulse, np.zeros((0, 3))
        if isinstance(system, CoupledSystem):
            impulse, tie_impulse = system.split(impulse)
        after = replace(
            state, time=state.time + h, x=state.x + h * mean[: p.n + p.b], v=outcome.solved.v.reshape(-1, 3),
            orientations=_rotate_bodies(p, state.orientations, h * mean), impulse=impulse, touched=keys(groups),
            contact=outcome.contact,
        )  # fmt: skip
        if self.stabilization == "post":
            after, corrected = self.correct_positions(after, clock)
        finite = np.isfinite(after.x).all() and np.isfinite(after.v).all()
        status = worst_of(Status, np.array([outcome.worst(corrected), flight])) if finite else Status.NOT_FINITE
        return ParticleStep(
            after, h, outcome.solved.error, outcome.error, outcome.solved.iterations, outcome.iterations,
            status, dict(clock.seconds), tie_impulse / h,
        )  # fmt: skip

    def _system(self, state: ParticleState, v: Array, M: Array, forces: Array, tie: Tie | None) -> System:
        x = state.x[: self.particles.n]
        turning = -state.impulse / self.h if self._turns(state.impulse) else None
        system = self.assembly.system(x, v, M, self.blend, turning, forces, self.stabilization != "none")
        self.system = system if tie is None else CoupledSystem(system, tie, x, v, self.blend, PROXIMAL)
        return self.system

    def _solve(
        self, system: System, state: ParticleState, v: Array, clock: Clock
    ) -> tuple[StepSolution, list[Touches], Array]:
        """The solution, its contacts, and the velocities (nodes, 3) that positions are integrated with."""
        p, x, turned_by = self.particles, state.x, state.orientations
        impulse = np.concatenate([state.impulse, np.zeros(len(system.R) - self.assembly.rows.m)])
        groups = find_touches(p, x, v, turned_by, self.h)
        clock("contact")
        for _ in range(_PASSES):
            target, start = closing(self.blend, groups, v), impulses_before(state, groups)
            outcome = solution(self.ways, system, v, impulse, groups, target, p.friction, start, self.known, clock)
            after = outcome.solved.v.reshape(-1, 3)
            mean = self.blend.velocity(state.v, after)
            if mean is not after:
                mean[: p.n][p.is_prescribed] = after[: p.n][p.is_prescribed]
            missed = find_missing_touches(p, x, v, mean, turned_by, self.h, groups)
            if not missed:
                break
            groups = groups + missed
        return outcome, groups, mean

    def _turns(self, impulse: Array) -> bool:
        """Whether the rotation of element forces is implicit in a step."""
        if not np.any(impulse):
            return False
        return self.assembly.turning.unstable(impulse, self.blend) if self.geometric is None else bool(self.geometric)

    def correct_positions(self, state: ParticleState, clock: Clock) -> tuple[ParticleState, Status]:
        """Correct errors of rigid rows and penetrations by a displacement that does not change velocities."""
        p, h = self.particles, self.h
        zero_velocity = np.zeros((p.nodes, 3))
        M = self.assembly.masses(state.orientations)
        system = self.assembly.system(state.x[: p.n], zero_velocity, M, Blend(h), None, zero_velocity, True)
        system.c = np.zeros_like(system.c)
        system.b = np.where(self.assembly.rows.rigid, system.g / h, 0.0)
        groups_near = find_touches(p, state.x, zero_velocity, state.orientations, h)
        groups = [t for t in (t.at(np.flatnonzero(t.gap < 0.0)) for t in groups_near) if len(t.gap)]
        clock("elements")
        if not np.any(system.b) and not groups:
            return state, Status.CONVERGED
        target, none = gaps(groups) / h, np.zeros(self.assembly.rows.m)
        start = np.zeros((len(target), 3))
        outcome = solution(self.ways, system, zero_velocity, none, groups, target, 0.0, start, self.known, clock)
        u = outcome.solved.v.reshape(-1, 3)
        corrected = replace(
            state, x=state.x + h * u[: p.n + p.b], orientations=_rotate_bodies(p, state.orientations, h * u)
        )
        return (corrected if np.isfinite(corrected.x).all() else state), outcome.worst()


def particle_step(particles: Particles, state: ParticleState, *, time_step: float, **options: Any) -> ParticleStep:
    """One time step of a large system; options as for `Stepper`, which is faster for many steps.

    >>> rope = dl.particles.rope(segments=3)
    >>> dl.particles.particle_step(rope, dl.particles.initial_state(rope), time_step=1e-2).state.x.shape
    (4, 3)
    """
    return Stepper(particles, time_step, **options).step(state)


def _gyroscopic(p: Particles, state: ParticleState, M: Array, v: Array, blend: Blend) -> tuple[Array, Status]:
    """Gyroscopic torques on bricks, as forces (nodes, 3), and `Status.ITERATIONS` if a brick rotates too far in the
    step for its angular momentum to be conserved."""
    f = np.zeros((p.nodes, 3))
    if p.bricks is None:
        return f, Status.CONVERGED
    spin = v[p.n + p.b :]
    after, conserved = coast(p.bricks, state.orientations, spin, blend.h, blend.beta)
    f[p.n + p.b :] = (M[p.n + p.b :] @ (after - spin)[..., None])[..., 0] / blend.h
    return f, Status.CONVERGED if conserved.all() else Status.ITERATIONS


def _rotate_bodies(p: Particles, orientations: Array, motion: Array) -> Array:
    return np.asarray(rotate_quaternion(None, orientations, motion[p.n + p.b :])) if p.b else orientations
