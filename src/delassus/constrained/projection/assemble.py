"""Assembly: computes a configuration that satisfies the constraints from one that does not.

Least squares of the position errors e(q), by Levenberg–Marquardt on the joints' manifolds, with lengths relative to the
robot's size (`row_sizes`), so that they can be added to angles:

    (J D⁻¹ Jᵀ + μ) y = e,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ,      D = diag M(q₀),

with J the exact derivative of e; the constraint Jacobian equals it only where e = 0. A step is the shortest one, in the
metric of D, that reduces the errors by as much. Every δᵢ² Dᵢ is an energy times a time squared, so steps do not depend
on the units of joints, and heavy parts move less than light ones. The diagonal suffices for this; the factors of M, as
in `project`, are not worth their cost here. Locked joints have D⁻¹ = 0.

The damping μ allows steps at any rank, so redundant rows and singular configurations do no harm. Iterations end when
the errors are below the tolerance, or at a least-squares solution; see `descent`. They converge to a local minimum:
from afar, a closure may exist and not be found. Near one, four iterations are typical. If there is none, the
least-squares solution converges slowly, since μ has to represent the curvature of e: 50 to 100 iterations.
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
        iterations: (…) number of iterations.
        status: (…) values of `Status`.
        mechanism: The mechanism.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> isinstance(dl.assemble(loop, loop.model.posture("home")), dl.constrained.Assembly)
    True
    """

    status_type = Status
    mechanism: Mechanism

    @classmethod
    def of_call(cls, values: tuple[Any, ...], mechanism: Mechanism, _: Any) -> Assembly:
        """Create from the results of a call of `assemble`."""
        q, error, iterations, status = values
        return cls(q, error, as_integer(iterations), as_integer(status)).with_inputs(mechanism=mechanism)

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst configuration."""
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
    """A configuration near q0 that satisfies the constraints, or the least-squares solution; one or a batch.

    Rows without a reference stay where they are, to first order.

    Args:
        mechanism: The robot and its constraints.
        q0: Initial configurations (…, nq) [rad, m].
        locked: Joints that must not move, by name or pattern, such as "arm*".
        iterations: Maximum number of iterations.
        time: (…) [s] time of moving references, required if there are any.
        tolerance: Largest error, relative to the robot's length, or to a radian.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> print(dl.assemble(loop, [0.5, 0.0, 0.0], locked=["crank_joint"]).statuses)
    All rows are met to the tolerance.
    """
    iteration_count("iterations", iterations)
    locked_dofs = locked_velocities(mechanism.model, locked)
    model, start = mechanism.model, normalize(mechanism.model, q0)
    if not mechanism.m:
        status = np.where(np.isfinite(np.sum(start)), float(Status.CONVERGED), float(Status.NOT_FINITE))
        return Assembly(start, np.zeros(0), np.array(0.0), status)
    check_inertias(model)
    sizes = numpy.array(row_sizes(mechanism))
    inverse = 1.0 / np.diagonal(mass_matrix(model, start))
    inverse[list(locked_dofs)] = 0.0

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
    """A step (nv,) of random direction that changes the errors by about a tenth.

    It is scaled by the constraint Jacobian. The derivative of the errors is arbitrarily large near some ridges: if the
    axes of a hinge are antiparallel, the smallest rotation changes the direction of the error.
    """
    scale = np.max(np.diagonal((J * inverse) @ J.T))
    return np.sqrt(inverse * np.where(scale > 0.0, e @ e / scale, 0.0)) * np.array(_aside(mechanism.nv))


def _aside(n: int) -> list[float]:
    """A direction (n,) without symmetries: a tenth of cosines, a golden angle apart."""
    return [0.1 * math.cos(0.5 + math.pi * (3.0 - math.sqrt(5.0)) * k) for k in range(n)]
