"""Assembly: computes a configuration that satisfies the constraints from one that does not.

Least squares of the errors of position e(q), by Levenberg and Marquardt on the joints' manifolds, with lengths as
shares of the robot's own (`row_sizes`), so that they can be added to angles:

    (J D⁻¹ Jᵀ + μ) y = e,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ,      D = diag M(q₀),

with J the exact derivative of e; the constraints' own Jacobian is that only where e = 0. A step is the shortest in the
metric of D that makes the errors as small as it does: every δᵢ² Dᵢ is an energy times a time squared, so that no step
depends on whether a joint counts in meters or millimeters, and heavy parts move less than light ones. The diagonal is
enough for this; all of M, as in `project`, is not worth its factors here. Joints that are locked have D⁻¹ = 0.

The damping μ makes steps possible whatever the rank, so that redundant rows and singular configurations do no harm; see
`descent`, which ends where errors are below the tolerance, or with an answer of least squares. Steps lead down into the
nearest valley only: from afar there is no guarantee to find a closure that exists. Near one, four iterations are usual;
where there is none, the last digits of the least-squares answer come slowly, since μ has to stand for the curvature of
e: 50 to 100.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.common.outcomes import Outcome
from delassus.common.provenance import Provenance
from delassus.common.types import Traced
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.projection.descent import LeastSquares, descend
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.inputs import TIME, tolerance_input
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.locked import locked_velocities
from delassus.constrained.rows.references import constraint_error, error_derivative
from delassus.constrained.solvers.status import Status, describe_outcome
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import integrate, normalize
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.tree.check import check_inertias


class _Arrays(NamedTuple):
    q: Any
    error: Any
    iterations: Any
    status: Any


class Assembly(Provenance, Outcome, _Arrays):
    """Configurations of a mechanism, one or a batch, and their constraint errors.

    Attributes:
        q: (…, nq) [rad, m].
        error: (…, m) errors of position [m, rad].
        iterations: (…) how many were made.
        status: (…) numbers of `Status`.
        mechanism: What was assembled.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> isinstance(dl.assemble(loop, loop.model.posture("home")), dl.constrained.Assembly)
    True
    """

    status_type = Status
    mechanism: Mechanism

    @classmethod
    def of_call(cls, values: tuple[Any, ...], mechanism: Mechanism, _: Any) -> Assembly:
        """That of a call of `assemble`."""
        q, error, iterations, status = values
        return cls(q, error, as_integer(iterations), as_integer(status)).with_inputs(mechanism=mechanism)

    def describe(self) -> str:
        """How it ended, in a sentence or two: of the worst configuration, where there are several."""
        return describe_outcome(self.mechanism, self.status, self.error, "configuration", "error", "m or rad")


@kernel("(nq)->(nq),(m),(),()", inputs={"time": TIME, "tolerance": tolerance_input(1e-10)}, result=Assembly)
def assemble(
    mechanism: Mechanism,
    q0: Traced,
    *,
    locked: Iterable[str] = (),
    iterations: int = 100,
    time: Traced = None,
    tolerance: Traced = 1e-10,
) -> Assembly:
    """A configuration near q0 that meets the constraints, or the best in the least-squares sense; one or a batch.

    Rows without a reference are held, to first order, where they are.

    Args:
        mechanism: The robot and its constraints.
        q0: Configurations (…, nq) [rad, m] to start from.
        locked: Joints that must not move, by name or pattern, such as "arm*".
        iterations: How many are made at most.
        time: (…) [s] what references move with, needed where they do.
        tolerance: The error that may remain, as a share of the robot's length, or of a radian.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> print(dl.assemble(loop, [0.5, 0.0, 0.0], locked=["crank_joint"]).statuses)
    All rows are met to the tolerance.
    """
    iteration_count("iterations", iterations)
    held = locked_velocities(mechanism.model, locked)
    model, start = mechanism.model, normalize(mechanism.model, q0)
    if not mechanism.m:
        status = np.where(np.isfinite(np.sum(start)), float(Status.CONVERGED), float(Status.NOT_FINITE))
        return Assembly(start, np.zeros(0), np.array(0.0), status)
    check_inertias(model)
    sizes = numpy.array(row_sizes(mechanism))
    inverse = 1.0 / np.diagonal(mass_matrix(model, start))
    inverse[list(held)] = 0.0

    def error(q: Any) -> Any:
        return constraint_error(mechanism, q, time=time)

    J = constraint_jacobian(mechanism, start, time=time) / sizes[:, None]
    problem = LeastSquares(
        error,
        lambda q: error_derivative(mechanism, q, time),
        sizes,
        None,
        inverse,
        lambda q, step: integrate(model, q, step),
        aside=_step_aside(mechanism, inverse, J, error(start) / sizes),
    )
    last, status = descend(problem, start, tolerance, iterations)
    return Assembly(last.q, last.e, last.count, status)


def _step_aside(mechanism: Mechanism, inverse: Any, J: Any, e: Any) -> Any:
    """A step (nv,) that changes the errors by about a tenth, whichever way they go.

    It is measured by the constraints' own Jacobian: that of the errors is as large as you like near some ridges, such
    as axes of a hinge that point against each other, where the least turn changes the direction of the error.
    """
    scale = np.max(np.diagonal((J * inverse) @ J.T))
    return np.sqrt(inverse * np.where(scale > 0.0, e @ e / scale, 0.0)) * np.array(_aside(mechanism.nv))


def _aside(n: int) -> list[float]:
    """A direction (n,) that no symmetry of a mechanism is likely to have: a tenth of cosines, a golden angle apart."""
    return [0.1 * math.cos(0.5 + math.pi * (3.0 - math.sqrt(5.0)) * k) for k in range(n)]
