"""`Tasks`: a robot with tasks, the argument of compiled kernels, and the rows of all tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy

import delassus.numpy as np
from delassus.common.checks import elements
from delassus.common.types import Traced
from delassus.compiler.graph.parameters import Parametric, ParametricComposite
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.scales import length_of
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.control.inverse.actuated import ActuatedMechanism, actuated
from delassus.control.operational.task import Task, TaskError
from delassus.model.description import HasModel
from delassus.model.model import Model, ParametricModel


@dataclass(frozen=True)
class Tasks(HasModel):
    """A mechanism with actuators and tasks.

    Attributes:
        robot: An `ActuatedMechanism`; a mechanism or a model gets its default actuators.
        tasks: `FrameTask`s, `CenterOfMassTask`s, `MomentumTask`s, `PostureTask`s, or user-defined tasks, in the order
            of the rows.

    >>> dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool")).t
    6
    """

    robot: ActuatedMechanism
    tasks: tuple[Task, ...] = ()

    if TYPE_CHECKING:  # constructor arguments, which are more general than the fields

        def __init__(
            self, robot: ActuatedMechanism | Mechanism | Model | ParametricModel, tasks: Task | Iterable[Task] = ()
        ) -> None: ...

    def __new__(cls, robot: Any = None, *_: Any, **__: Any) -> Tasks:
        """Create with parameters, if the robot has some."""
        parametric = isinstance(robot, Parametric)
        return object.__new__(ParametricTasks if parametric else cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "robot", actuated(self.robot))
        task_list = elements(self.tasks)
        for task in task_list:
            if not all(hasattr(task, name) for name in ("count", "jacobian", "bias", "priority", "weight")):
                raise TaskError(f"{task!r} is not a task; pass one such as FrameTask('tool').", code="wrong-type")
        if not task_list:
            raise TaskError("there are no tasks: pass at least one, such as PostureTask().", code="nothing-to-do")
        object.__setattr__(self, "tasks", task_list)
        for task in task_list:  # raises errors for unknown names
            task.jacobian(self.model, self.model.neutral())

    @property
    def model(self) -> Traced:  # type: ignore[override]
        """The robot's model."""
        return self.robot.model

    @property
    def __kernel_model__(self) -> Any:
        """The `ActuatedMechanism` for its kernels."""
        return self.robot

    @property
    def mechanism(self) -> Traced:
        """The robot and its constraints."""
        return self.robot.mechanism

    @property
    def m(self) -> int:
        """Number of rows of constraints."""
        return self.robot.m

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return self.robot.nu

    @cached_property
    def t(self) -> int:
        """Number of rows of all tasks."""
        return sum(task.count(self.model) for task in self.tasks)

    @cached_property
    def ntargets(self) -> int:
        """Total number of values of the targets of all tasks."""
        return sum(self._targets(task) for task in self.tasks)

    def _targets(self, task: Task) -> int:
        return task.targets(self.model) if hasattr(task, "targets") else 0

    @property
    def slices(self) -> Mapping[int, slice]:
        """The rows of each task, by index."""
        return MappingProxyType(dict(enumerate(_ranges([task.count(self.model) for task in self.tasks]))))

    @property
    def target_slices(self) -> Mapping[int, slice]:
        """The targets of each task, by index."""
        return MappingProxyType(dict(enumerate(_ranges([self._targets(task) for task in self.tasks]))))

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The rows of each priority, in order."""
        levels = []
        for priority in sorted({task.priority for task in self.tasks}):
            members = [k for k, task in enumerate(self.tasks) if task.priority == priority]
            levels.append(tuple(row for k in members for row in range(self.slices[k].start, self.slices[k].stop)))
        return tuple(levels)

    @property
    def weights(self) -> Traced:
        """The square root of the weight of each row (t,)."""
        return numpy.sqrt([task.weight for task in self.tasks for _ in range(task.count(self.model))])

    @property
    def sizes(self) -> Traced:
        """Reference sizes of the errors of rows (t,): the length of the robot [m], a radian, or 1 without a unit."""
        length, sizes = length_of(self.mechanism.plain.model), []
        for task in self.tasks:
            turns = task.turns(self.model) if hasattr(task, "turns") else (True,) * task.count(self.model)
            sizes += [1.0 if turn else length for turn in turns]
        return numpy.array(sizes)


@dataclass(frozen=True)
class ParametricTasks(Tasks, ParametricComposite):
    """The tasks of a robot whose model has parameters."""

    @property
    def parametric_part(self) -> Any:
        """The part with parameters: the robot."""
        return self.robot

    def with_parameters(self, parameters: Any) -> Tasks:
        """The tasks with these parameters (nparameters,) of the robot."""
        return Tasks(self.parametric_part.with_parameters(parameters), self.tasks)


@kernel("(nq)->(t,nv)")
def task_jacobian(tasks: Tasks, q: Traced) -> Floats:
    """J (t, nv) of all tasks: ẋ = J v.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> dl.control.task_jacobian(tasks, np.full(7, 0.3)).shape
    (6, 7)
    """
    return np.concatenate([task.jacobian(tasks.model, q) for task in tasks.tasks])


@kernel("(nq),(nv)->(t)")
def task_bias(tasks: Tasks, q: Traced, v: Traced) -> Floats:
    """J̇ v (t,) of all tasks: ẍ = J a + J̇ v.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> dl.control.task_bias(tasks, np.full(7, 0.3), np.ones(7)).shape
    (6,)
    """
    return np.concatenate([task.bias(tasks.model, q, v) for task in tasks.tasks])


@kernel("(nq),(ntargets)->(t)")
def task_error(tasks: Tasks, q: Traced, targets: Traced) -> Floats:
    """Errors of poses relative to targets: (t,) [m, rad].

    >>> tasks = dl.control.Tasks(dl.load("double_pendulum"), dl.control.PostureTask())
    >>> dl.control.task_error(tasks, [0.3, 0.2], [0.1, 0.2]).round(6)
    array([0.2, 0. ])
    """
    parts = []
    for task, at in zip(tasks.tasks, tasks.target_slices.values(), strict=True):
        if at.stop == at.start:
            raise TaskError(
                f"inverse kinematics does not support the task {task!r}, which has no pose error; omit it.",
                code="not-supported",
            )
        parts.append(task.error(tasks.model, q, targets[at]))
    return np.concatenate(parts)


def _ranges(counts: list[int]) -> list[slice]:
    offsets = numpy.cumsum([0, *counts]).tolist()
    return [slice(start, stop) for start, stop in pairwise(offsets)]
