"""The data of a reactive controller: a robot, its supports and its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy

from delassus.common.checks import elements, one_of, positive_number
from delassus.control.inverse.actuated import actuated
from delassus.control.reactive.references import reference_of, rest_of
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supported import SupportedRobot
from delassus.control.reactive.supports import CONES, ReactiveError, Support
from delassus.control.reactive.task import Task
from delassus.errors import short


@dataclass(frozen=True)
class ControlData(SupportedRobot):
    """The data of a `ReactiveControl`, and the layout of its tasks and references."""

    actuated: Any
    tasks: tuple[Task, ...] = ()
    supports: tuple[Support, ...] = ()
    cone: str = "pyramid"
    torque_limits: bool = True
    joint_limits: bool = True
    horizon: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "actuated", actuated(self.actuated))
        object.__setattr__(self, "tasks", elements(self.tasks))
        object.__setattr__(self, "supports", elements(self.supports))
        one_of("cone", self.cone, CONES)
        positive_number("horizon", self.horizon)
        for label, values, kind in (("tasks", self.tasks, Task), ("supports", self.supports, Support)):
            for x in values:
                if not isinstance(x, kind):
                    such = "FollowPosture()" if kind is Task else "Support('left_foot')"
                    raise ReactiveError(
                        f"{short(repr(x))} is not one of the controller's {label}; pass one such as {such}.",
                        code="wrong-type",
                    )
        for support in self.supports:
            self.model.frame(support.frame)
        for label, names in (
            ("give tasks a name each", [task.name for task in self.tasks]),
            (
                "supports and constraints have a frame or a name each",
                [*(support.frame for support in self.supports), *self.actuated.mechanism.slices],
            ),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ReactiveError(f"{', '.join(map(repr, twice))} occurs twice: {label}.", code="duplicate-name")
        _ = self._places  # raises errors for unknown names
        for name, weight, rows in (w for task in self.tasks for w in task.weights(self.plain, self.sizes)):
            shape = numpy.shape(weight)
            if shape and shape[-1] != rows:
                raise ReactiveError(
                    f"the weight of {name!r} has shape {shape}; it must fit {rows} rows.", code="wrong-shape"
                )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.actuated, self.tasks, self.supports, self.cone, self.torque_limits, self.joint_limits))

    @property
    def references(self) -> int:
        """Length of a reference."""
        return max((at.stop for _, at in self._places), default=0)

    @property
    def task_slices(self) -> Mapping[str, slice]:
        """The slices of the tasks in `task_errors`."""
        return MappingProxyType(dict(self._task_slices))

    @cached_property
    def _task_slices(self) -> tuple[tuple[str, slice], ...]:
        q, v = self.plain.neutral(), numpy.zeros(self.nv)
        s = Situation.of(self, self.places, q, v, self.reference(q))
        slices, at = {}, 0
        for task in self.tasks:
            rows = sum(len(term.target) for term in task.terms(s))
            slices[task.name] = slice(at, at + rows)
            at += rows
        return tuple(slices.items())

    @property
    def task_rows(self) -> int:
        """Number of rows of all tasks."""
        return max((at.stop for at in self.task_slices.values()), default=0)

    # --- references -----------------------------------------------------------------------------------------------

    @property
    def places(self) -> Mapping[str, slice]:
        """The slice of each part of a reference: "com.position", "com.weight", "left_sole.active"."""
        return MappingProxyType(dict(self._places))

    @cached_property
    def _places(self) -> tuple[tuple[str, slice], ...]:
        slices, at = {}, 0
        for name, value in rest_of(self, self.tasks, self.plain.neutral()).items():
            slices[name] = slice(at, at + numpy.size(value))
            at += numpy.size(value)
        return tuple(slices.items())

    def reference(self, q: Any, changed: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """A reference (…, references) to stay at rest at a configuration q (nq,), with parts changed by name.

            control.reference(q0, {"com.position": c, "right_foot.active": 0.0})

        Values may have batch axes, or be traced, in a function of time that is compiled into a step.
        """
        return reference_of(self, self.tasks, q, {**(changed or {}), **more})
