"""Inputs and results of the stages of a step: named tuples of values of one state.

StepState, StepInputs
  → kinematics   Kinematics     poses of the links, and the directions in which velocities move them
  → collide      Contacts       the contacts that are solved for: gap, point, axes, bodies
  → forces       Forces         forces of actuators, springs and dampers, and their implicit part
  → assemble     ConstraintRows and StepSystem     rows J, the factors of M̂, the response S, velocities g
  → solve        Impulses       impulses of all rows, with restitution that adds no energy
  → integrate    q⁺, v⁺         penetrations corrected
  → close loops  StepResult     loops closed, energy and momentum kept
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from delassus.contact.cones.parameters import ContactParameters
from delassus.step.actuators.external import JointForces

TOLERANCE: Final = 1e-8
"""The residual to which contacts are solved, relative to the velocities that they have without impulses."""

MAX_ITERATIONS: Final = 150.0
"""Largest number of iterations of the contact solver."""


class SolverLimits(NamedTuple):
    """The residual, relative to the scale of velocities, and the number of iterations at which a solve ends."""

    tolerance: Any = TOLERANCE
    iterations: Any = MAX_ITERATIONS


class GroundShape(NamedTuple):
    """The ground in a state: normal (3,) and height [m] of a plane, heights (rows, columns) [m] of a height field."""

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
    """Impulses (m,) [N·s], the largest residual [m/s], iterations, whether the tolerance was met, and the fraction of
    restitution that adds no energy.

    Solvers of the whole step also return its velocity (nv,), and the impulses (nv,) of servos with limits beyond those
    in the system of the step; contact solvers return None.
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
        residual: Of the last step [m/s].
        iterations: Of all steps.
        overflow: Whether more contacts or joint limits were closed than there are slots.
        unsolved: Whether the contact solver ended before its tolerance was met.
        omitted: Whether a contact, joint limit or servo limit outside the reduced set became active.
        clipped: Whether a control or an actuator's force was at its limit.
        angle: The largest angle [rad] by which a joint turned in the last step.
        too_long: Whether a body or joint turned too far in a step.
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
