"""Results of a reactive controller, and policies that are compiled into the step of a simulation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.common.checks import array_of_shape, real_array
from delassus.compiler.host.kernel import Kernel, kernel
from delassus.control.qp.quadratic_program import QP
from delassus.control.qp.scaled import Data
from delassus.control.qp.solution import QPOutcome, QPSolution
from delassus.control.qp.status import QPStatus, describe_worst
from delassus.control.reactive.build import build_qp, task_errors
from delassus.control.reactive.data import ControlData
from delassus.control.reactive.react import compute_reaction, react
from delassus.control.reactive.supports import ReactiveError
from delassus.control.reactive.tasks import Nominal
from delassus.control.reactive.zeros import shape_of
from delassus.errors import expect

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reaction(QPOutcome):
    """Torques of a controller for a state or a batch, with residual and status of its QP: see `QPOutcome`.

    Attributes:
        control: The controller.
        q, v, reference: The state and the reference.
        torque: (…, nu) forces of the actuators [N·m, N], always finite and within limits.
        force: (…, nf) of supports and constraints [N, N·m].
        acceleration: (…, nv) [rad/s², m/s²].

    >>> robot = dl.load("arm7")
    >>> control = dl.control.ReactiveControl(robot, tasks=[dl.control.FollowPosture(stiffness=100.0)])
    >>> reaction = control(np.zeros(7), np.zeros(7), control.reference(np.full(7, 0.1)))
    >>> reaction.torque.shape, reaction.residual < 1e-6
    ((7,), np.True_)
    """

    control: ControlData
    q: Array
    v: Array
    reference: Array
    torque: Array
    force: Array
    acceleration: Array

    @property
    def x(self) -> Array:
        """(…, n) accelerations and forces."""
        return np.concatenate([self.acceleration, self.force], -1)

    @property
    def forces(self) -> Mapping[str, Array]:
        """Views of `force` by the names of supports and constraints."""
        return {name: self.force[..., rows] for name, rows in self.control.force_slices.items()}

    @property
    def task_errors(self) -> Mapping[str, Array]:
        """Residuals of each task, J x - target, in its units [m/s², rad/s², N, N·m]."""
        slices = self.control.task_slices
        if not self.control.task_rows:
            return {name: np.zeros(0) for name in slices}
        errors = task_errors(self.control, self.q, self.v, self.reference, self.x)
        return {name: errors[..., rows] for name, rows in slices.items()}

    @property
    def solution(self) -> QPSolution:
        """The solution of the QP: active and violated rows."""
        qp = qp_of(self.control, self.q, self.v, self.reference)
        return QPSolution(self.multipliers, self.primal, self.dual, self.iterations, self.status, qp, self.x)

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a single state with the task of largest residual."""
        if np.ndim(self.status):
            return describe_worst(self.status, "states")
        if self.status == QPStatus.NOT_FINITE:
            return f"{QPStatus.NOT_FINITE.sentence[:-1]}, and so are the torques."
        text, errors = self.solution.describe(), self.task_errors
        targets = {
            task.name: float(np.abs(errors[task.name]).max(initial=0.0))
            for task in self.control.tasks
            if not isinstance(task, Nominal)
        }
        most = max(targets, key=lambda name: targets[name], default=None)
        return text if most is None else f"{text} Of all tasks, {most!r} misses most, by {targets[most]:.3g}."


def qp_of(control: ControlData, q: Any, v: Any, reference: Any) -> QP:
    """The QP of a state or a batch, with names."""
    q, v, reference = _check_state(control, q, v, reference)
    data: Any = build_qp(control, q, v, reference)
    passive = np.abs(control.actuated.passive).argmax(axis=0)
    names = [f"motion {control.velocity_names[k]}" for k in passive]
    for name, rows in control.force_slices.items():
        names += [f"{name} held {k}" for k in range(rows.stop - rows.start)]
    names += control.row_names
    names += [f"{support.frame} cone" for support in control.supports if control.cone == "second order"]
    unknowns = [f"a {name}" for name in control.velocity_names]
    for name, rows in control.force_slices.items():
        unknowns += [f"f {name} {k}" for k in range(rows.stop - rows.start)]
    shape = shape_of(control)
    arrays = dict(zip(Data._fields, data, strict=True))
    return QP(**arrays, cones=shape.cones, names=tuple(names), unknowns=tuple(unknowns), shape=shape)


def reaction_of(control: ControlData, q: Any, v: Any, reference: Any, start: Reaction | None) -> Reaction:
    """Solve with the project's own solver, in one kernel."""
    q, v, reference = _check_state(control, q, v, reference)
    if start is not None:
        expect("start", start, Reaction, "the reaction of a moment before")
    start_inputs = {} if start is None else {"start": start.x, "push": start.multipliers}
    result: Any = react(control, q, v, reference, **start_inputs)
    return Reaction(
        result.multipliers,
        result.primal,
        result.dual,
        np.asarray(result.iterations).astype(int),
        np.asarray(result.status).astype(int),
        control=control,
        q=q,
        v=v,
        reference=reference,
        torque=result.torque,
        force=result.force,
        acceleration=result.acceleration,
    )


def policy_of(control: ControlData, reference: Any) -> Kernel[..., Any]:
    """Torques for a reference that is an array, or a function of time, or of time, q and v."""
    if control.plain.actuators and any(
        (actuator.gain, actuator.bias) != ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for actuator in control.plain.actuators
    ):
        raise ReactiveError(
            f"{control.model.name!r} has actuators other than motors, whose controls are not torques. Simulate it with "
            "actuators=dl.simulation.motors(robot).",
            code="not-supported",
        )
    if callable(reference):
        takes_state = len(inspect.signature(reference).parameters) == 3
        function = reference if takes_state else lambda time, q, v: reference(time)
    else:
        constant = real_array("reference", reference)
        if constant.shape != (control.references,):
            raise ReactiveError(
                f"the reference has shape {constant.shape}; it must have {control.references} values.",
                code="wrong-shape",
            )
        if not np.isfinite(constant).all():
            raise ReactiveError("the reference has values that are not finite; they must be finite.", code="not-finite")

        def function(time: Any, q: Any, v: Any) -> Any:
            return constant

    @kernel(f"(),(nq),(nv)->({control.nu})")
    def policy(model: Any, time: Any, q: Any, v: Any) -> Any:
        """Torques (nu,) [N·m, N]."""
        values = dnp.array(function(time, q, v))
        if values.shape != (control.references,):
            raise ReactiveError(
                f"the reference has shape {values.shape}; it must have {control.references} values.", code="wrong-shape"
            )
        if control.moves:
            values[control.places["time"]] = time
        return compute_reaction(control, q, v, values).torque

    return policy


def _check_state(control: ControlData, q: Any, v: Any, reference: Any) -> tuple[Array, Array, Array]:
    sizes = {"q": control.nq, "v": control.nv, "reference": control.references}
    arrays = []
    for (name, size), value in zip(sizes.items(), (q, v, reference), strict=True):
        arrays.append(array_of_shape(name, value, (..., size)))
    try:
        np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape[:-1]}" for name, x in zip(sizes, arrays, strict=True))
        raise ReactiveError(f"the batch axes do not broadcast: {shapes}.", code="batch-mismatch") from None
    return arrays[0], arrays[1], arrays[2]
