"""Inputs and results of the stages of a step: named tuples with the values of one state.

StepState, StepInputs
  → kinematics   Kinematics     poses of the links, and the directions in which velocities move them
  → collide      Contacts       the selected contacts: gap, point, axes, bodies
  → forces       Forces         forces of actuators, springs and dampers, and their implicit part
  → assemble     ConstraintRows and StepSystem     rows J, the factors of M̂, the response S, velocities g
  → solve        Impulses       impulses of all rows, with restitution that adds no energy
  → integrate    q⁺, v⁺         penetrations corrected
  → close loops  StepResult     loops closed, energy and momentum restored
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from delassus.contact.cones.parameters import ContactParameters
from delassus.step.actuators.external import JointForces

TOLERANCE: Final = 1e-8
"""Residual at which the contact solver ends, relative to the row velocities without impulses."""

MAX_ITERATIONS: Final = 150.0
"""Largest number of iterations of the contact solver."""


class SolverLimits(NamedTuple):
    """Termination criteria of a solve: the residual relative to the velocity scale, and the number of iterations."""

    tolerance: Any = TOLERANCE
    iterations: Any = MAX_ITERATIONS


class GroundShape(NamedTuple):
    """The ground of a state: normal (3,) and height [m] of a plane, or heights (rows, columns) [m] of a height
    field."""

    normal: Any = None
    height: Any = None
    heights: Any = None


class StepInputs(NamedTuple):
    """Inputs that all steps of a control period share: control (nu,), h [s], the ground, solver limits, wrenches
    (pushes, 6) on the frames that the scene names, and `JointForces` of a policy."""

    control: Any
    time_step: Any
    ground: GroundShape
    contact: ContactParameters
    solver: SolverLimits = SolverLimits()
    wrench: Any = None
    joint_forces: JointForces | None = None


class StepState(NamedTuple):
    """A state between two steps.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity.
        impulse: (m,) impulses of the last step, rows of the full contact set: the warm start of the next one.
        contact: (slots,) candidates of the slots of the full contact set.
        time: () [s].
        activation: (na,) of actuators that have a state.
    """

    q: Any
    v: Any
    impulse: Any
    contact: Any
    time: Any
    activation: Any


class Impulses(NamedTuple):
    """Impulses (m,) [N·s], the largest residual [m/s], the number of iterations, whether the tolerance is met, and the
    fraction of restitution that adds no energy.

    Solvers of the whole step also return its velocity (nv,), and the impulses (nv,) of servos with limits beyond those
    in the system of the step; contact solvers leave these None.
    """

    impulse: Any
    residual: Any
    iterations: Any
    converged: Any
    restitution_fraction: Any = 1.0
    velocity: Any = None
    servo: Any = None


class StepResult(NamedTuple):
    """A state after one or several steps, with residuals and flags.

    Attributes:
        state: The new state.
        residual: The largest residual of the last step [m/s].
        iterations: The number of solver iterations of all steps.
        overflow: Whether more contacts or joint limits were active than there are slots.
        unsolved: Whether the contact solver ended without meeting its tolerance.
        omitted: Whether a contact, joint limit or servo limit outside the reduced set became active.
        clipped: Whether a control or an actuator's force was at its limit.
        angle: The largest angle [rad] by which a joint rotated in the last step.
        too_long: Whether a body or joint rotated too far in a step.
        energy_limited: Whether restitution was reduced to add no energy.
    """

    state: StepState
    residual: Any
    iterations: Any
    overflow: Any
    unsolved: Any
    omitted: Any
    clipped: Any
    angle: Any
    too_long: Any
    energy_limited: Any
