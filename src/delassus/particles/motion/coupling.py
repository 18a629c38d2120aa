"""Coupling of robots and large systems through shared rows.

A grip ties a frame of the robot to a particle: three rows on both, J_r v_r - v_p = 0. The robot is reduced to the free
motion of the frames and their response to impulses, J_r W_r⁻¹ J_rᵀ, W_r of its own compliant system with its rows; then
the rows of the grips are solved together with the elements and contacts of the large system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.constraints.kinds.point import Point
from delassus.constraints.mechanism.mechanism import Mechanism, Robot
from delassus.dynamics.kinematics.kinematics import frame_placement
from delassus.particles.description.checks import ParticlesError
from delassus.particles.motion.state import ParticleState, ParticleStep
from delassus.particles.motion.step import Stepper
from delassus.particles.solvers.coupled_system import Tie
from delassus.step.compliant.arguments import StepError
from delassus.step.compliant.compliant_system import compliant_system
from delassus.step.scheme.manifold_step import integrate_velocity

Array = NDArray[np.float64]

_GRIP: Final = "grip of particles "


@dataclass(frozen=True)
class Grip:
    """A frame of a robot that holds a particle.

    Attributes:
        frame: The frame's name.
        particle: The particle's index.

    >>> dl.particles.Grip("tool", 0).particle
    0
    """

    frame: str
    particle: int


class CoupledStep(NamedTuple):
    """A robot and a large system after a step.

    Attributes:
        q: (nq,) of the robot.
        v: (nv,) of the robot.
        particles: Result of the large system.
        force: (grips, 3) [N] on the robot, in the world.
        apart: Distance of grips and particles before the step [m].

    >>> arm = dl.load("pendulum")
    >>> rope = dl.particles.rope((0, 0, -1), (0, 0, -2), 4, density=0.1, pinned="none")
    >>> stepper, zero = dl.particles.Stepper(rope, 1e-2), np.zeros(1)
    >>> grip = dl.particles.Grip(arm.frame_list[-1].name, 0)
    >>> dl.particles.coupled_step(arm, zero, zero, zero, stepper, dl.particles.initial_state(rope), [grip]).force.shape
    (1, 3)
    """

    q: Array
    v: Array
    particles: ParticleStep
    force: Array
    apart: float


def coupled_step(
    robot: Robot,
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
        tau: (nv,) generalized forces.
        stepper: Stepper of the large system.
        state: State of the large system.
        grips: Grips between robot and particles.
        **options: Options of the robot's rows, as for `compliant_system`: compliance, servos, …

    >>> arm = dl.load("pendulum")
    >>> rope = dl.particles.rope((0, 0, -1), (0, 0, -2), 4, density=0.1, pinned="none")
    >>> stepper, zero = dl.particles.Stepper(rope, 1e-2), np.zeros(1)
    >>> grip = dl.particles.Grip(arm.frame_list[-1].name, 0)
    >>> dl.particles.coupled_step(arm, zero, zero, zero, stepper, dl.particles.initial_state(rope), [grip]).q
    array([0.])
    """
    mechanism = robot if isinstance(robot, Mechanism) else Mechanism(robot)
    model, blend = mechanism.model, stepper.blend
    _check(grips, stepper)
    points = [Point(grip.frame, axes="world", name=f"{_GRIP}{k}") for k, grip in enumerate(grips)]
    extended = Mechanism(model, [*mechanism.constraints, *points])
    arguments: dict[str, Any] = {"time_step": blend.h, "alpha": blend.alpha, "beta": blend.beta} | options
    system = compliant_system(extended, q, v, tau, **arguments)
    if np.shape(system.J) != (extended.m, model.nv):
        raise ParticlesError(
            f"the robot's rows have shape {np.shape(system.J)}, and those of its constraints and grips "
            f"{(extended.m, model.nv)}: pass one state instead of a batch, without contacts, limits and joint "
            "friction.",
            code="wrong-shape",
        )
    shared = np.concatenate([np.arange(extended.m)[extended.slices[point.name]] for point in points])
    J = np.asarray(system.J)[shared]
    free, towards = _robot_response(system, np.setdiff1d(np.arange(extended.m), shared), J)
    grip_points = np.array([frame_placement(model, q, frame=grip.frame)[1] for grip in grips])
    particles_held = np.array([grip.particle for grip in grips])
    rates, freed = (J @ np.asarray(v, float)).reshape(-1, 3), (J @ free).reshape(-1, 3)
    step = stepper.step(state, tie=Tie(particles_held, grip_points, rates, freed, J @ towards))
    after = free + towards @ (blend.h * step.tied.reshape(-1))
    displacement = blend.h * blend.velocity(np.asarray(v, float), after)
    q_new, v_new, _ = integrate_velocity(model, (), np.asarray(q, float), after, blend.h, displacement)
    distance = float(np.abs(grip_points - state.x[particles_held]).max())
    return CoupledStep(np.asarray(q_new), np.asarray(v_new), step, step.tied, distance)


def _check(grips: Sequence[Grip], stepper: Stepper) -> None:
    """Raise an error unless there are grips, on free particles."""
    if not grips:
        raise ParticlesError("there are no grips; step the robot and the particles separately.", code="nothing-to-do")
    if stepper.blend.beta == 0.0:
        raise StepError("beta is 0: grips are rigid and need beta > 0, such as 1.", code="conflicting-arguments")
    n = stepper.particles.n
    for grip in grips:
        if not isinstance(grip.particle, int | np.integer) or not 0 <= grip.particle < n:
            raise ParticlesError(
                f"a grip of {grip.frame} holds particle {grip.particle!r}; there are {n}, numbered from 0 to {n - 1}.",
                code="index-out-of-range",
            )
        if stepper.particles.is_prescribed[grip.particle]:
            raise ParticlesError(
                f"a grip of {grip.frame} holds particle {grip.particle}, whose motion is prescribed; free it.",
                code="conflicting-arguments",
            )


def _robot_response(system: Any, row_indices: NDArray[np.int64], J: Array) -> tuple[Array, Array]:
    """The robot's velocities (nv,) under its own rows, and their response to rows J (k, nv), as (nv, k)."""
    W, c = np.asarray(system.W), np.asarray(system.c)
    rows, R, b = (np.asarray(x)[row_indices] for x in (system.J, system.R, system.b))
    m = len(row_indices)
    coupling = 0.0 if system.coupling is None else np.asarray(system.coupling)[np.ix_(row_indices, row_indices)]
    matrix = np.block([[W, -rows.T], [rows, np.diag(R + 1e-12) + coupling]])
    right = np.concatenate([np.column_stack([c, J.T]), np.column_stack([-b, np.zeros((m, len(J)))])])
    solution = np.linalg.solve(matrix, right)[: len(c)]
    return solution[:, 0], solution[:, 1:]
