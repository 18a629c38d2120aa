"""`ReactiveControl`: a robot, what it stands on, and what it is to do; what a controller is compiled for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy

from delassus.common.checks import elements, one_of, positive_number
from delassus.control.inverse.actuated import RANK, actuated
from delassus.control.reactive.limits import limited_joints, row_names, torque_limits
from delassus.control.reactive.references import moves_in_time, reference_of, rest_of
from delassus.control.reactive.supports import CONES, ReactiveError, Support
from delassus.control.reactive.task import Task
from delassus.errors import short
from delassus.model.model import Model
from delassus.model.of_model import OfModel

if TYPE_CHECKING:
    from delassus.compiler.host.kernel import Kernel
    from delassus.control.programmes.programme import QP
    from delassus.control.programmes.shape import ProgrammeShape
    from delassus.control.reactive.reaction import Reaction


@dataclass(frozen=True)
class ReactiveControl(OfModel):
    """Torques by a quadratic programme in accelerations, forces and torques: tasks as well as limits allow.

        control = dl.ReactiveControl(robot, tasks=[dl.FollowCenterOfMass(weight=10.0, stiffness=50.0), …],
                                     supports=[dl.Support("left_sole", friction=0.5, size=(0.22, 0.1)), …])
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

    actuated: Any
    tasks: tuple[Task, ...] = ()
    supports: tuple[Support, ...] = ()
    cone: str = "pyramid"
    torque_limits: bool = True
    joint_limits: bool = True
    horizon: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "actuated", actuated(self.actuated))
        object.__setattr__(self, "tasks", _several(self.tasks))
        object.__setattr__(self, "supports", _several(self.supports))
        one_of("cone", self.cone, CONES)
        positive_number("horizon", self.horizon)
        for what, given, kind in (("tasks", self.tasks, Task), ("supports", self.supports, Support)):
            for x in given:
                if not isinstance(x, kind):
                    such = "FollowPosture()" if kind is Task else "Support('left_foot')"
                    raise ReactiveError(
                        f"{short(repr(x))} is none of the controller's {what}, such as {such}.", code="wrong-type"
                    )
        for support in self.supports:
            self.model.frame(support.frame)
        for what, names in (
            ("give tasks a name each", [task.name for task in self.tasks]),
            (
                "supports and constraints have a frame or a name each",
                [*(support.frame for support in self.supports), *self.actuated.mechanism.slices],
            ),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ReactiveError(f"{', '.join(map(repr, twice))} is there twice: {what}.", code="duplicate-name")
        _ = self._places  # what tasks name exists
        for name, weight, rows in (w for task in self.tasks for w in task.weights(self.plain, self.sizes)):
            shape = numpy.shape(weight)
            if shape and shape[-1] != rows:
                raise ReactiveError(
                    f"the weight of {name!r} has shape {shape}; it is for {rows} rows.", code="wrong-shape"
                )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.actuated, self.tasks, self.supports, self.cone, self.torque_limits, self.joint_limits))

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The robot."""
        return self.actuated.model

    @property
    def plain(self) -> Model:
        """The robot, with numbers in place of parameters."""
        found: Model = self.actuated.mechanism.plain.model
        return found

    # --- sizes ----------------------------------------------------------------------------------------------------

    @property
    def nu(self) -> int:
        """Number of actuators."""
        found: int = self.actuated.nu
        return found

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """What each velocity is called: its joint, with a number if that has several."""
        names = [f"velocity {k}" for k in range(self.nv)]
        for joint, start in zip(self.plain.joints, self.plain.v_starts, strict=True):
            for k in range(joint.kind.nv if joint.mimic is None else 0):
                names[start + k] = joint.name if joint.kind.nv == 1 else f"{joint.name} {k}"
        return tuple(names)

    @property
    def force_slices(self) -> Mapping[str, slice]:
        """Where the forces of supports, and of constraints, are in f."""
        found, at = {}, 0
        for support in self.supports:
            found[support.frame] = slice(at, at + support.rows)
            at += support.rows
        for name, rows in self.actuated.mechanism.slices.items():
            found[name] = slice(at + rows.start, at + rows.stop)
        return MappingProxyType(found)

    @property
    def nf(self) -> int:
        """Number of forces."""
        found: int = sum(support.rows for support in self.supports) + self.actuated.m
        return found

    @property
    def n(self) -> int:
        """Number of unknowns, accelerations and forces."""
        return self.nv + self.nf

    @property
    def equalities(self) -> int:
        """Rows of the equation of motion without actuators, and those of supports and constraints."""
        return self.nv - self.actuated.rank + self.nf

    @property
    def rows(self) -> int:
        """Rows with bounds."""
        return len(row_names(self))

    @property
    def cone_rows(self) -> int:
        """Rows of friction cones."""
        return 3 * len(self.supports) if self.cone == "second order" else 0

    @property
    def multipliers(self) -> int:
        """Of all rows."""
        return self.equalities + self.rows + self.cone_rows

    @property
    def references(self) -> int:
        """Numbers of a reference."""
        return max((at.stop for _, at in self._places), default=0)

    @property
    def task_slices(self) -> Mapping[str, slice]:
        """Where the errors of tasks are in `task_errors`."""
        return MappingProxyType(dict(self._task_slices))

    @cached_property
    def _task_slices(self) -> tuple[tuple[str, slice], ...]:
        from delassus.control.reactive.situation import Situation

        q, v = self.plain.neutral(), numpy.zeros(self.nv)
        s = Situation.of(self, q, v, self.reference(q))
        found, at = {}, 0
        for task in self.tasks:
            rows = sum(len(term.target) for term in task.terms(s))
            found[task.name] = slice(at, at + rows)
            at += rows
        return tuple(found.items())

    @property
    def task_rows(self) -> int:
        """Errors of all tasks."""
        return max((at.stop for at in self.task_slices.values()), default=0)

    # --- actuators and limits -------------------------------------------------------------------------------------

    @cached_property
    def inverse_actuation(self) -> tuple[tuple[float, ...], ...]:
        """B⁺ (nu, nv): forces of actuators by generalised forces."""
        inverse = numpy.linalg.pinv(self.actuated.B, rcond=RANK)
        inverse[numpy.abs(inverse) < 1e-15 * numpy.abs(inverse).max(initial=0.0)] = 0.0
        return tuple(map(tuple, inverse.tolist()))

    @cached_property
    def torque_limit(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(2, nu) the least and the largest forces of actuators, infinite if they do not count."""
        if not self.torque_limits:
            return (-math.inf,) * self.nu, (math.inf,) * self.nu
        lower, upper = torque_limits(self.actuated)
        for name, low, high in zip(self.actuated.names, lower, upper, strict=True):
            if low > high:
                raise ReactiveError(
                    f"the force of {name!r} is {low:g} at least and {high:g} at most: nothing is both.",
                    code="empty-interval",
                )
        return tuple(lower.tolist()), tuple(upper.tolist())

    @cached_property
    def limited_torques(self) -> tuple[int, ...]:
        """The actuators that have limits."""
        return tuple(k for k, ends in enumerate(zip(*self.torque_limit, strict=True)) if any(map(math.isfinite, ends)))

    @cached_property
    def limited_joints(self) -> tuple[tuple[str, int, int], ...]:
        """Name, coordinate and velocity of the joints that have limits."""
        return tuple(limited_joints(self.plain)) if self.joint_limits else ()

    # --- references -----------------------------------------------------------------------------------------------

    @property
    def places(self) -> Mapping[str, slice]:
        """Where each thing that tasks follow is in a reference: "com.position", "com.weight", "left_sole.active"."""
        return MappingProxyType(dict(self._places))

    @cached_property
    def _places(self) -> tuple[tuple[str, slice], ...]:
        found, at = {}, 0
        for name, value in rest_of(self, self.plain.neutral()).items():
            found[name] = slice(at, at + numpy.size(value))
            at += numpy.size(value)
        return tuple(found.items())

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of each support, and the number of all forces "nf" and torques "nu"."""
        return {support.frame: support.rows for support in self.supports} | {"nf": self.nf, "nu": self.nu}

    @cached_property
    def moves(self) -> bool:
        """Whether a constraint moves in time: the reference has a "time" [s] then."""
        return moves_in_time(self.actuated.mechanism.plain)

    def reference(self, q: Any, changed: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """A reference (…, references): to stay as in a configuration q (nq,), but for what is given by its name.

            control.reference(q0, {"com.position": c, "right_foot.active": 0.0})

        Values may have batch axes, or be traced, in a function of time that is compiled into a step.
        """
        return reference_of(self, q, {**(changed or {}), **more})

    # --- what it does ---------------------------------------------------------------------------------------------

    @cached_property
    def shape(self) -> ProgrammeShape:
        """Of its programmes, with where they are zero."""
        from delassus.control.reactive.zeros import shape_of

        return shape_of(self)

    def programme(self, q: Any, v: Any, reference: Any) -> QP:
        """The programme of a state or a batch of them, with names, not solved."""
        from delassus.control.reactive.reaction import programme_of

        return programme_of(self, q, v, reference)

    def __call__(self, q: Any, v: Any, reference: Any, start: Reaction | None = None) -> Reaction:
        """Torques of a state or a batch: programmes are built and solved in one kernel.

        Args:
            q, v: (…, nq) and (…, nv).
            reference: (…, references), see `reference`.
            start: The reaction of a moment before.
        """
        from delassus.control.reactive.reaction import reaction_of

        return reaction_of(self, q, v, reference, start)

    def policy(self, reference: Any) -> Kernel[..., Any]:
        """A kernel for `Simulation.run(control=…)`, compiled into the step: torques with a reference.

        `reference` is an array (references,), or a function of time that gives one (and of q and v, if it takes three).
        """
        from delassus.control.reactive.reaction import policy_of

        return policy_of(self, reference)


def _several(given: Any) -> tuple[Any, ...]:
    return elements(given)
