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
    """Torques by a quadratic program in accelerations, forces and torques: tasks as well as limits allow.

        control = dl.ReactiveControl(
            robot,
            tasks=[dl.FollowCenterOfMass(weight=10.0, stiffness=50.0), …],
            supports=[dl.Support("left_sole", friction=0.5, size=(0.22, 0.1)), …],
        )
        reaction = control(q, v, control.reference(q0))
        reaction.torque, reaction.forces, reaction.describe()

    Attributes:
        actuated: The robot, its constraints and actuators; a model or a mechanism will do.
        tasks: What it is to do.
        supports: Where it stands.
        cone: "pyramid" of four faces inside of the friction cone, "outer pyramid" around it, or "second order" for the
            cone itself.
        torque_limits: Whether the limits of the actuators count.
        joint_limits: Whether ranges and velocities of joints count.
        horizon: The time in which joints may not reach their limits [s].
    """

    @cached_property
    def shape(self) -> QPShape:
        """The sizes of its QPs, and which of their entries are zero."""
        return shape_of(self)

    def qp(self, q: Any, v: Any, reference: Any) -> QP:
        """The QP of a state or a batch, with names, before it is solved."""
        return qp_of(self, q, v, reference)

    programme = OldName("qp")

    def __call__(self, q: Any, v: Any, reference: Any, start: Reaction | None = None) -> Reaction:
        """Torques of a state or a batch: programs are built and solved in one kernel.

        Args:
            q, v: (…, nq) and (…, nv).
            reference: (…, references), see `reference`.
            start: The reaction of a moment before.
        """
        return reaction_of(self, q, v, reference, start)

    def policy(self, reference: Any) -> Kernel[..., Any]:
        """A kernel for `Simulation.run(control=…)`, compiled into the step: torques with a reference.

        `reference` is an array (references,), or a function of time that gives one (and of q and v, if it takes three).
        """
        return policy_of(self, reference)
