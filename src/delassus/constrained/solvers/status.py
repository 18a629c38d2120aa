"""Statuses of constrained solves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.outcomes import Outcome, name_of_row, summary, worst_of
from delassus.common.provenance import Provenance
from delassus.common.types import Bools
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.inputs import NO_INPUTS, ConstraintInputs
from delassus.constrained.rows.wrench import constraint_wrench
from delassus.constrained.solvers.optimality import optimality
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import Sentences, warn


class Status(Sentences):
    """Why a solve ended; `sentence` describes it.

    >>> print(dl.Status.CONVERGED)
    All rows are met to the tolerance.
    """

    CONVERGED = 0, "All rows are met to the tolerance."
    LEAST_SQUARES = 1, "The rows cannot all be met; they are met in the least-squares sense."
    ITERATIONS = 2, "The iterations ended before the tolerance was met."
    RANK_LOSS = 3, "Some rows depend on others, so the forces are not unique; a method without rank needs them apart."
    NOT_FINITE = 4, "An input or a result is not a finite number."
    PRECISION = 5, "Rows are so nearly dependent that rounding decides whether they can be met; they are met in part."
    INFEASIBLE = (
        6,
        "No impulses meet all rows, since rows contradict each other; they are met as nearly as they can be.",
    )
    NO_SOLUTION = 7, "There is no solution: with this friction, no impulses obey the laws of contact."

    @classmethod
    def worst_first(cls) -> tuple[Status, ...]:
        """From the worst to the best."""
        middle = cls.NO_SOLUTION, cls.ITERATIONS, cls.PRECISION, cls.INFEASIBLE, cls.RANK_LOSS, cls.LEAST_SQUARES
        return cls.NOT_FINITE, *middle, cls.CONVERGED


class SolverArguments(NamedTuple):
    """The arguments of a solve: state, forces, and optional inputs, None if omitted."""

    q: Any
    v: Any
    tau: Any
    rows: ConstraintInputs = NO_INPUTS
    tolerance: Any = None
    rank: Any = None
    parameters: Any = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> SolverArguments:
        """Copy the arguments of a call, since arrays of a simulation change in place."""
        copies = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
        rows = {name: copies.pop(name) for name in ConstraintInputs._fields if name in copies}
        return cls(**copies, rows=ConstraintInputs(**rows))

    def __getattr__(self, name: str) -> Any:
        if name not in ConstraintInputs._fields:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        warn(f"SolverArguments.{name} was renamed: use rows.{name}.", DeprecationWarning)
        return getattr(self.rows, name)


class _Arrays(NamedTuple):
    acceleration: Any
    force: Any
    residual: Any
    iterations: Any
    status: Any
    imbalance: Any


class Solution(Provenance, Outcome, _Arrays):
    """Accelerations and forces of a mechanism, one state or a batch, with residuals and status.

    Attributes:
        acceleration: (…, nv) [rad/s², m/s²].
        force: (…, m) [N, N·m], on the robot, in the axes of each constraint.
        residual: (…, m) J a + γ + C λ [m/s², rad/s²].
        iterations: (…) number of iterations.
        status: (…) values of `Status`.
        imbalance: (…, nv) M a + c - tau - Jᵀ λ [N·m, N]: residual of the equation of motion.
        mechanism: The mechanism.
        asked: The state, forces and further arguments of the call.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> dl.constrained_dynamics(loop, loop.model.posture("home"), zero, zero).forces["closure"].shape
    (3,)
    """

    status_type = Status
    mechanism: Mechanism
    asked: SolverArguments

    @classmethod
    def of_call(cls, values: tuple[Any, ...], mechanism: Mechanism, arguments: Mapping[str, Any]) -> Solution:
        """Create from the results of a call of `constrained_dynamics`."""
        a, force, residual, iterations, status, imbalance = values
        solution = cls(a, force, residual, as_integer(iterations), as_integer(status), imbalance)
        return solution.with_inputs(mechanism=mechanism, asked=SolverArguments.of(arguments))

    @property
    def forces(self) -> Mapping[str, NDArray[np.float64]]:
        """Views of `force` by the names of the constraints."""
        return {name: self.force[..., rows] for name, rows in self.mechanism.slices.items()}

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst state."""
        return describe_outcome(self.mechanism, self.status, self.residual, "state", "residual", "m/s² or rad/s²")

    def is_optimal(self, tolerance: float = 1e-10) -> bool | Bools:
        """Whether it is a solution to a tolerance, a boolean or (…) of them, recomputed from its fields.

        The equation of motion holds at every joint, and the rows are met, or solved in the least-squares sense.
        """
        arguments = self.asked
        if not self.mechanism.m:
            return self.status == Status.CONVERGED
        arrays = (arguments.q, arguments.v, arguments.tau, self.acceleration, self.force)
        rows = arguments.rows._replace(force=None)  # initial forces do not matter
        result = (
            optimality(self.mechanism, *arrays, rows=rows, tolerance=tolerance, parameters=arguments.parameters) > 0.5
        )
        return bool(result) if np.ndim(result) == 0 else result

    def force_in(self, constraint: str, axes: str = "world") -> NDArray[np.float64]:
        """Force and moment (…, 6) [N, N·m] of a constraint on the body of its first frame, about the origin of that
        frame.

        `axes` is "world", "frame" for the constraint's own first frame, or the name of a frame. A constraint on joints
        has no frame; its forces are `forces[name]`.
        """
        arguments = self.asked
        inputs = {"time": arguments.rows.time, "parameters": arguments.parameters}
        result: NDArray[np.float64] = constraint_wrench(
            self.mechanism, arguments.q, self.force, constraint=constraint, axes=axes, **inputs
        )
        return result


def describe_outcome(mechanism: Mechanism, status: Any, values: Any, item: str, value: str, unit: str) -> str:
    """Describe the solves of `item`s in a sentence or two: those with the worst status, and the largest value."""
    if not status.size:
        return f"There is no {item}."
    worst = worst_of(Status, status)
    is_batch = status.size > 1
    if not values.size or worst is Status.NOT_FINITE:
        where = f" in {item} {_index(np.argmax(status == worst), status.shape)}" if is_batch and values.size else ""
        return f"{worst.sentence[:-1]}{where}."
    size = np.where((status == worst)[..., None], np.abs(values), -1.0)
    at = int(np.argmax(size))
    row = at % size.shape[-1]
    name = name_of_row(mechanism.slices, row)
    where = f" in {item} {_index(at // size.shape[-1], status.shape)}" if status.ndim else ""
    said = summary(worst, status, f"{item}s")
    return f"{said} The largest {value} is {size.max():.3g} ({unit}), of {name!r}{where}."


def _index(k: Any, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(i)) for i in np.unravel_index(int(k), shape))
