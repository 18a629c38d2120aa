"""`particle_step`: one step of time of a large system, by the compliant scheme.

    M (v⁺ - v) = h ((1-α) f + α f⁺),    x⁺ = x + h ((1-β) v + β v⁺)

The same equations, names and options as `dl.stepping.compliant_step` has for robots.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.rows.options import check_iterations, check_method, checked_tolerance
from delassus.constrained.solvers.status import Status
from delassus.errors import expect
from delassus.particles.contact.solve import touched
from delassus.particles.contact.sweeps import swept_together
from delassus.particles.contact.touches import Touches, find_touches, missed_touches
from delassus.particles.description.bodies import coasted, turned
from delassus.particles.description.particles import Particles
from delassus.particles.motion.state import ParticleState, ParticleStep
from delassus.particles.solvers.assembly import Assembly
from delassus.particles.solvers.choice import METHODS, solve_system
from delassus.particles.solvers.direct import refined
from delassus.particles.solvers.system import Solved, System
from delassus.stepping.compliant.asked import StepError, check_stabilization, checked_blend, checked_step
from delassus.stepping.compliant.scheme import unilateral
from delassus.stepping.scheme.blend import Blend

Array = NDArray[np.float64]

CONTACT_METHODS: Final = ("auto", "newton", "admm", "gradient", "sequential_impulses")
STABILIZATIONS: Final = ("none", "pre", "post")

_PASSES: Final = 5
"""How often a step is solved at most, each time with contacts that the time before went through."""


class Stepper:
    """A system that is stepped many times: what is found once is kept, and used again.

    Args:
        particles: The system.
        time_step: h [s].
        alpha: How implicit forces are: 1 damps, ½ conserves, 0 is explicit.
        beta: How implicit positions are.
        stabilization: How errors of rigid rows and penetrations are taken off: "none" by velocities that rows ask for,
            "pre" or "post" by a motion of its own before or after.
        geometric_stiffness: Whether forces that turn with their elements are implicit.
        method: Of the rows: "cholesky", "multigrid", "cg", "minres", "gauss_seidel", "pgs", "sequential_impulses" or
            "superlu"; "auto" is "multigrid" for elastic sheets of 200 000 unknowns or more, "cholesky" for all else.
        contact_method: "newton", "admm", "gradient" or "sequential_impulses"; "auto" is "newton" for bricks, and "admm"
            for particles that elements tie together, where guesses may run in circles.
        tolerance: Of rows and momentum, as a share of the velocities of a step.
        contact_tolerance: Of contacts, likewise.
        iterations: Of the solver, at most.
        contact_iterations: Of the contact solver, at most.
    """

    def __init__(
        self,
        particles: Particles,
        time_step: float,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        stabilization: str = "none",
        geometric_stiffness: bool = False,
        method: str = "auto",
        contact_method: str = "auto",
        tolerance: float = 1e-9,
        contact_tolerance: float = 1e-4,
        iterations: int | None = None,
        contact_iterations: int = 200,
    ) -> None:
        expect("the system", particles, Particles, "dl.particles.rope()")
        self.h = float(checked_step(time_step))
        self.blend = Blend(self.h, float(checked_blend("alpha", alpha)), float(checked_blend("beta", beta)))
        check_stabilization(stabilization)
        if stabilization not in STABILIZATIONS:
            raise StepError(f"stabilization is {stabilization!r}; here it is one of {', '.join(STABILIZATIONS)}.")
        check_method(method, ("auto", *METHODS))
        check_method(contact_method, CONTACT_METHODS)
        if self.blend.beta == 0.0 and (particles.obstacles or particles.b or any(g.rigid for g in particles.elements)):
            raise StepError("beta is 0: rigid elements and contacts need beta > 0, such as 1; elastic elements do not.")
        self.particles, self.stabilization = particles, stabilization
        if contact_method == "auto":
            contact_method = "admm" if particles.elements else "newton"
        self.assembly = Assembly(particles)
        if method == "auto":
            method = "multigrid" if self.assembly.spreads else "cholesky"
        self.geometric, self.method, self.contact_method = bool(geometric_stiffness), method, contact_method
        self.tolerance = float(checked_tolerance(tolerance, 1e-9))
        self.contact_tolerance = float(checked_tolerance(contact_tolerance, 1e-4))
        check_iterations(iterations or 1)
        check_iterations(contact_iterations)
        usual = 60 if method in ("cholesky", "multigrid", "superlu") else 2000
        self.iterations, self.contact_iterations = iterations or usual, int(contact_iterations)
        self.known: dict[str, Any] = {}
        self.system: System | None = None

    def step(self, state: ParticleState, applied: Array | None = None) -> ParticleStep:
        """The state after a step; `applied` (nodes, 3) are forces on particles and bricks, and torques on bricks."""
        clock = _Clock()
        p, h = self.particles, self.h
        if self.stabilization == "pre":
            state = self.corrected(state, clock)
        v = np.array(state.v)
        for motion in p.motions:
            v[motion.points] = motion.at(state.time + h)
        v[p.pins] = 0.0
        forces = np.zeros((p.nodes, 3)) if applied is None else np.asarray(applied, float)
        M = self.assembly.masses(state.orientations)
        if p.bricks is not None:
            forces = forces + _gyroscopic(p, state, M, v, self.blend)
        force = -state.impulse / h if self.geometric and np.any(state.impulse) else None
        system = self.assembly.system(state.x[: p.n], v, M, self.blend, force, forces, self.stabilization != "none")
        self.system = system
        clock("elements")
        groups = find_touches(p, state.x, v, state.orientations, h)
        clock("contact")
        for _ in range(_PASSES):
            found, contact = self._solve(system, v, state.impulse, groups, state, clock, corrects=False)
            mean = self._mean(state.v, found.v.reshape(-1, 3))
            missed = missed_touches(p, state.x, v, mean, state.orientations, h, groups)
            if not missed:
                break
            groups = groups + missed
        after = self._moved(state, found.v.reshape(-1, 3), mean)
        keys = np.concatenate([np.zeros(0, np.int64), *(t.key for t in groups)])
        after = replace(after, impulse=found.impulse, touched=keys, contact=contact[0])
        if self.stabilization == "post":
            after = self.corrected(after, clock)
        status = found.status if found.status is not Status.CONVERGED else contact[3]
        if not (np.isfinite(after.x).all() and np.isfinite(after.v).all()):
            status = Status.NOT_FINITE
        return ParticleStep(
            after, h, found.error, contact[1], found.iterations, contact[2], status, dict(clock.seconds)
        )

    def corrected(self, state: ParticleState, clock: _Clock) -> ParticleState:
        """A state whose errors of rigid rows, and penetrations, are taken off by a motion that is not kept."""
        p, h = self.particles, self.h
        rest = np.zeros((p.nodes, 3))
        M = self.assembly.masses(state.orientations)
        system = self.assembly.system(state.x[: p.n], rest, M, Blend(h), None, rest, True)
        system.c = np.zeros_like(system.c)
        system.b = np.where(self.assembly.rigid, system.g / h, 0.0)
        near = find_touches(p, state.x, rest, state.orientations, h)
        groups = [t.at(np.flatnonzero(t.gap < 0.0)) for t in near]
        groups = [t for t in groups if len(t.gap)]
        clock("elements")
        if not np.any(system.b) and not groups:
            return state
        found, _ = self._solve(system, rest, np.zeros(self.assembly.m), groups, state, clock, corrects=True)
        u = found.v.reshape(-1, 3)
        moved = replace(state, x=state.x + h * u[: p.n + p.b], orientations=_turned(p, state.orientations, h * u))
        return moved if np.isfinite(moved.x).all() else state

    def _solve(
        self, system: System, v: Array, impulse: Array, groups: list[Touches], state: ParticleState, clock: _Clock,
        corrects: bool,
    ) -> tuple[Solved, tuple[Array, float, int, Status]]:  # fmt: skip
        flat = v.reshape(-1)
        none = (np.zeros((0, 3)), 0.0, 0, Status.CONVERGED)
        if not groups and self.method != "cholesky":
            found = solve_system(system, self.method, flat, impulse, self.tolerance, self.iterations)
            clock("solve")
            return found, none
        gap = np.concatenate([np.zeros(0), *(t.gap for t in groups)])
        wanted = np.zeros((len(gap), 3))
        rate = np.concatenate([np.zeros(0), *(np.einsum("caj,caj->c", t.rows[:, 2], v[t.nodes]) for t in groups)])
        wanted[:, 2] = gap / self.h if corrects else unilateral(self.blend, gap, rate)
        start = np.zeros((len(gap), 3)) if corrects else _before(state, groups)
        friction = 0.0 if corrects else self.particles.friction
        if groups and self.method in ("pgs", "sequential_impulses"):
            found, pushed = swept_together(
                system, groups, wanted.reshape(-1), friction, start.reshape(-1), flat, impulse, self.tolerance,
                self.iterations,
            )  # fmt: skip
            clock("contact")
            return found, (pushed.reshape(-1, 3), found.error, found.iterations, found.status)
        lower = system.lower
        clock("assembly")
        factor = self.assembly.factor.take(lower)
        free = refined(system, factor, flat, impulse, self.tolerance, self.iterations)
        clock("solve")
        if not groups:
            return free, none
        made = touched(
            system, factor, free, groups, wanted.reshape(-1), friction,
            start.reshape(-1), self.contact_method, self.contact_tolerance, self.contact_iterations, self.known,
        )  # fmt: skip
        clock("contact")
        return made.solved, (made.impulse, made.error, made.iterations, made.status)

    def _mean(self, before: Array, after: Array) -> Array:
        """(nodes, 3) the velocities that positions move with."""
        p, mean = self.particles, np.array(self.blend.velocity(before, after))
        mean[: p.n][p.held] = after[: p.n][p.held]
        return mean

    def _moved(self, state: ParticleState, v: Array, mean: Array) -> ParticleState:
        p, h = self.particles, self.h
        x = state.x + h * mean[: p.n + p.b]
        return replace(state, time=state.time + h, x=x, v=v, orientations=_turned(p, state.orientations, h * mean))


def particle_step(particles: Particles, state: ParticleState, *, time_step: float, **options: Any) -> ParticleStep:
    """One step of time of a large system; options as of `Stepper`, which is what many steps are made with."""
    return Stepper(particles, time_step, **options).step(state)


class _Clock:
    """How long parts of a step take."""

    def __init__(self) -> None:
        self.seconds = {"elements": 0.0, "assembly": 0.0, "solve": 0.0, "contact": 0.0}
        self.last = time.perf_counter()

    def __call__(self, what: str) -> None:
        now = time.perf_counter()
        self.seconds[what] += now - self.last
        self.last = now


def _before(state: ParticleState, groups: list[Touches]) -> Array:
    """Impulses (c, 3) of the step before, of contacts that were there."""
    keys = np.concatenate([np.zeros(0, np.int64), *(t.key for t in groups)])
    found = np.zeros((len(keys), 3))
    if len(state.touched):
        order = np.argsort(state.touched)
        at = np.clip(np.searchsorted(state.touched[order], keys), 0, len(order) - 1)
        same = state.touched[order][at] == keys
        found[same] = state.contact[order][at[same]]
    return found


def _gyroscopic(p: Particles, state: ParticleState, M: Array, v: Array, blend: Blend) -> Array:
    """Torques on bricks, as forces (nodes, 3), by which spins change that no other torque acts on."""
    f = np.zeros((p.nodes, 3))
    if p.bricks is not None:
        spin = v[p.n + p.b :]
        change = coasted(p.bricks, state.orientations, spin, blend.h, blend.beta) - spin
        f[p.n + p.b :] = (M[p.n + p.b :] @ change[..., None])[..., 0] / blend.h
    return f


def _turned(p: Particles, orientations: Array, motion: Array) -> Array:
    return np.asarray(turned(None, orientations, motion[p.n + p.b :])) if p.b else orientations
