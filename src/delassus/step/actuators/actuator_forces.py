"""Generalized forces of a model's actuators in a state, MuJoCo's `qfrc_actuator`."""

from __future__ import annotations

from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.forces.passive import passive_forces
from delassus.model.model import Model
from delassus.step.actuators.checks import check_actuators
from delassus.step.actuators.drive import drive
from delassus.step.actuators.joint_ranges import limited_by_joints


@kernel("(nq),(nv),(nu)->(nv)")
def actuator_forces(model: Model, q: Traced, v: Traced, signal: Traced) -> Floats:
    """Generalized forces of the actuators of a model, Σ r f (nv,) [N·m, N], within all limits.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        signal: Control (nu,) of each actuator, or its activation if it has one.

    >>> from dataclasses import replace
    >>> robot = dl.load("pendulum")
    >>> driven = replace(robot, actuators=dl.simulation.motors(robot))
    >>> dl.simulation.actuator_forces(driven, [0.0], [0.0], [2.0])
    array([2.])
    """
    check_actuators(model, model.actuators)
    actuators = limited_by_joints(model, model.actuators)
    return drive(model, actuators, q, v, signal, 0.0).force - passive_forces.function(model, q, v)
