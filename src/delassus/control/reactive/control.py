"""`ReactiveControl`: a compiled controller for a robot, its supports and its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from delassus.common.deprecated import OldName
from delassus.compiler.host.kernel import Kernel
from delassus.control.qp.quadratic_program import QP
from delassus.control.qp.shape import QPShape
from delassus.control.reactive.data import ControlData
from delassus.control.reactive.reaction import Reaction, policy_of, qp_of, reaction_of
from delassus.control.reactive.zeros import shape_of


@dataclass(frozen=True, eq=False, repr=False)
class ReactiveControl(ControlData):
    """A whole-body controller: solves a QP in accelerations, forces and torques for the tasks, within the limits.

        control = dl.ReactiveControl(
            robot,
            tasks=[dl.FollowCenterOfMass(weight=10.0, stiffness=50.0), …],
            supports=[dl.Support("left_sole", friction=0.5, size=(0.22, 0.1)), …],
        )
        reaction = control(q, v, control.reference(q0))
        reaction.torque, reaction.forces, reaction.describe()

    Attributes:
        actuated: The robot with constraints and actuators; a model or a mechanism is converted.
        tasks: The tasks.
        supports: The frames in contact with the ground.
        cone: Friction: "pyramid" with four faces inside the cone, "outer pyramid" around it, or "second order" for the
            cone itself.
        torque_limits: Whether to respect the limits of the actuators.
        joint_limits: Whether to respect position and velocity limits of joints.
        horizon: Time [s] within which joints must not reach their limits.

    >>> robot = dl.load("arm7")
    >>> control = dl.control.ReactiveControl(robot, tasks=[dl.control.FollowPosture(stiffness=100.0)])
    >>> control(np.zeros(7), np.zeros(7), control.reference(np.full(7, 0.1))).acceleration
    array([10., 10., 10., 10., 10., 10., 10.])
    """

    @cached_property
    def shape(self) -> QPShape:
        """Sizes of its QPs, and their structural zeros."""
        return shape_of(self)

    def qp(self, q: Any, v: Any, reference: Any) -> QP:
        """The QP of a state or a batch, with names, before it is solved."""
        return qp_of(self, q, v, reference)

    programme = OldName("qp")

    def __call__(self, q: Any, v: Any, reference: Any, start: Reaction | None = None) -> Reaction:
        """Torques of a state or a batch; one kernel builds and solves the QPs.

        Args:
            q, v: (…, nq) and (…, nv).
            reference: (…, references), see `reference`.
            start: The reaction of the previous period, as a warm start.
        """
        return reaction_of(self, q, v, reference, start)

    def policy(self, reference: Any) -> Kernel[..., Any]:
        """A kernel for `Simulation.run(control=…)`, compiled into the step, which returns torques for a reference.

        `reference` is an array (references,), or a function of time, or of time, q and v, that returns one.
        """
        return policy_of(self, reference)
