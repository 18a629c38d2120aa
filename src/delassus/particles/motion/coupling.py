"""Robots and large systems that hold on to each other, through shared rows.

A grip ties a frame of the robot to a particle: three rows of both, J_r v_r - v_p = 0. Each side is stepped by itself,
as if the other were not there; then the impulses of the grips bring both together,

    (J_r W_r⁻¹ J_rᵀ + S A⁻¹ Sᵀ) λ = -(J_r v_r - S v_p + (p_frame - x)/(h β)),

W_r of the robot's own compliant system with its rows, A of the particles'. The matrix has three rows for each grip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.constraints.kinds.point import Point
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.kinematics import frame_placement
from delassus.dynamics.kinematics.manifold import integrate
from delassus.particles.description.checks import ParticlesError
from delassus.particles.motion.state import ParticleState, ParticleStep
from delassus.particles.motion.step import Stepper
from delassus.stepping.compliant.compliant_system import compliant_system

Array = NDArray[np.float64]

_GRIP: Final = "grip of particles "


@dataclass(frozen=True)
class Grip:
    """A frame of a robot that holds a particle.

    Attributes:
        frame: The frame's name.
        particle: The particle's number.
    """

    frame: str
    particle: int


class CoupledStep(NamedTuple):
    """A robot and a large system after a step.

    Attributes:
        q: (nq,) of the robot.
        v: (nv,) of the robot.
        particles: The step of the others.
        force: (grips, 3) [N] on the robot, in the world.
        apart: How far grips and particles are from each other before it [m].
    """

    q: Array
    v: Array
    particles: ParticleStep
    force: Array
    apart: float


def coupled_step(
    robot: Any,
    q: Array,
    v: Array,
    tau: Array,
    stepper: Stepper,
    state: ParticleState,
    grips: Sequence[Grip],
    **options: Any,
) -> CoupledStep:
    """One step of a robot and a large system together.

    Args:
        robot: A model, or a mechanism with its constraints.
        q: (nq,) its configuration.
        v: (nv,) its velocity.
        tau: (nv,) generalised forces.
        stepper: Of the large system.
        state: Of the large system.
        grips: What holds what.
        **options: Of the robot's rows, as of `compliant_system`: compliance, servos, …
    """
    own = robot if isinstance(robot, Mechanism) else Mechanism(robot)
    model, h = own.model, stepper.h
    for grip in grips:
        if not 0 <= grip.particle < stepper.particles.n or stepper.particles.held[grip.particle]:
            raise ParticlesError(f"a grip holds particle {grip.particle}, which is not there, or is held already.")
    points = [Point(grip.frame, axes="world", name=f"{_GRIP}{k}") for k, grip in enumerate(grips)]
    both = Mechanism(model, [*own.constraints, *points])
    system = compliant_system(both, q, v, tau, time_step=h, **options)
    shared = np.concatenate([np.arange(both.m)[both.slices[point.name]] for point in points])
    J = np.asarray(system.J)[shared]
    free, towards = _robot_response(system, np.setdiff1d(np.arange(both.m), shared), J)
    placed = [np.asarray(frame_placement(model, q, frame=grip.frame)[1]) for grip in grips]
    apart = np.concatenate([p - state.x[g.particle] for p, g in zip(placed, grips, strict=True)])
    made = stepper.step(state)
    columns = [3 * g.particle + k for g in grips for k in range(3)]
    unit = np.zeros((3 * stepper.particles.nodes, len(columns)))
    unit[columns, np.arange(len(columns))] = 1.0
    factor = stepper.assembly.factor
    if stepper.method != "cholesky" and stepper.system is not None:  # others leave no factor behind
        factor.take(stepper.system.lower)
    answers = np.stack([factor.solve(u) for u in unit.T], 1)
    G = J @ towards + answers[columns]
    gap = J @ free - made.state.v.reshape(-1)[columns] + apart / h
    impulse = np.linalg.solve(G, -gap)
    v_new = free + towards @ impulse
    change = -(answers @ impulse).reshape(-1, 3)
    x = made.state.x + h * change[: len(made.state.x)]
    pulled = made.state.impulse
    if stepper.system is not None:
        pulled = pulled - (stepper.system.J @ change.reshape(-1)) / stepper.system.E
    after = made.state.at(x=x, v=made.state.v + change, impulse=pulled)
    q_new = np.asarray(integrate(model, q, h * v_new))
    return CoupledStep(
        q_new, v_new, replace(made, state=after), impulse.reshape(-1, 3) / h, float(np.abs(apart).max(initial=0.0))
    )


def _robot_response(system: Any, own: NDArray[np.int64], J: Array) -> tuple[Array, Array]:
    """The robot's velocities (nv,) with its own rows alone, and how they answer to rows J (k, nv), as (nv, k)."""
    W, c = np.asarray(system.W), np.asarray(system.c)
    rows, R, b = (np.asarray(x)[own] for x in (system.J, system.R, system.b))
    m = len(own)
    whole = np.block([[W, -rows.T], [rows, np.diag(R + 1e-12)]])
    right = np.concatenate([np.column_stack([c, J.T]), np.column_stack([-b, np.zeros((m, len(J)))])])
    found = np.linalg.solve(whole, right)[: len(c)]
    return found[:, 0], found[:, 1:]
