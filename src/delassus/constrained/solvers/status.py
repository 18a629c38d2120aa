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
from delassus.constrained.rows.wrench import constraint_wrench
from delassus.constrained.solvers.optimality import ROWS, optimality
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import Sentences


class Status(Sentences):
    """How a solve ended; `sentence` says it in words.

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
    """The arguments of a solve: state, forces, and optional inputs, None where they were not given."""

    q: Any
    v: Any
    tau: Any
    mask: Any = None
    force: Any = None
    acceleration: Any = None
    time: Any = None
    proximal: Any = None
    position_gain: Any = None
    velocity_gain: Any = None
    tolerance: Any = None
    rank: Any = None
    parameters: Any = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SolverArguments:
        """From what was given, arrays as they are now: those of a simulation change in place."""
        return cls(**{name: x.copy() if isinstance(x, np.ndarray) else x for name, x in given.items()})

    def select(self, *names: str) -> dict[str, Any]:
        """The arguments of these names that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class _Arrays(NamedTuple):
    acceleration: Any
    force: Any
    residual: Any
    iterations: Any
    status: Any
    imbalance: Any


class Solution(Provenance, Outcome, _Arrays):
    """Accelerations and forces of a mechanism, one state or a batch, and how good they are.

    Attributes:
        acceleration: (…, nv) [rad/s², m/s²].
        force: (…, m) [N, N·m], on the robot, in the axes of each constraint.
        residual: (…, m) J a + γ + C λ [m/s², rad/s²].
        iterations: (…) how many were made.
        status: (…) numbers of `Status`.
        imbalance: (…, nv) M a + c - tau - Jᵀ λ [N·m, N]: how well the equation of motion holds.
        mechanism: What was solved.
        asked: The state, forces and further arguments that it is the answer to.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> dl.constrained_dynamics(loop, loop.model.posture("home"), zero, zero).forces["closure"].shape
    (3,)
    """

    status_type = Status
    mechanism: Mechanism
    asked: SolverArguments

    @classmethod
    def of_call(cls, values: tuple[Any, ...], mechanism: Mechanism, given: Mapping[str, Any]) -> Solution:
        """That of a call of `constrained_dynamics`."""
        a, force, residual, iterations, status, imbalance = values
        solution = cls(a, force, residual, as_integer(iterations), as_integer(status), imbalance)
        return solution.with_inputs(mechanism=mechanism, asked=SolverArguments.of(given))

    @property
    def forces(self) -> Mapping[str, NDArray[np.float64]]:
        """Views of `force` by the names of the constraints."""
        return {name: self.force[..., rows] for name, rows in self.mechanism.slices.items()}

    def describe(self) -> str:
        """How it ended, in a sentence or two: of the worst state, where there are several."""
        return describe_outcome(self.mechanism, self.status, self.residual, "state", "residual", "m/s² or rad/s²")

    def is_optimal(self, tolerance: float = 1e-10) -> bool | Bools:
        """Whether it is a solution to a tolerance, a boolean or (…) of them, computed anew from its fields.

        The equation of motion holds at every joint, and rows are met, or as nearly as they can be (least squares).
        """
        asked = self.asked
        if not self.mechanism.m:
            return self.status == Status.CONVERGED
        given = asked.select(*ROWS.inputs, "parameters")
        arrays = (asked.q, asked.v, asked.tau, self.acceleration, self.force)
        result = optimality(self.mechanism, *arrays, tolerance=tolerance, **given) > 0.5
        return bool(result) if np.ndim(result) == 0 else result

    def force_in(self, constraint: str, axes: str = "world") -> NDArray[np.float64]:
        """Force and moment (…, 6) [N, N·m] of a constraint on the body of its first frame, about that frame's origin.

        `axes` are "world", "frame" for those of the constraint's own first frame, or those of a frame by its name. A
        constraint on joints has no frame; its forces are `forces[name]`.
        """
        asked = self.asked
        given = asked.select("time", "parameters")
        result: NDArray[np.float64] = constraint_wrench(
            self.mechanism, asked.q, self.force, constraint=constraint, axes=axes, **given
        )
        return result


def describe_outcome(mechanism: Mechanism, status: Any, values: Any, item: str, value: str, unit: str) -> str:
    """How a solve of some items ended, in a sentence or two: of those with the worst status, the largest value."""
    if not status.size:
        return f"There is no {item}."
    worst = worst_of(Status, status)
    several = status.size > 1
    if not values.size or worst is Status.NOT_FINITE:
        where = f" in {item} {_index(np.argmax(status == worst), status.shape)}" if several and values.size else ""
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
