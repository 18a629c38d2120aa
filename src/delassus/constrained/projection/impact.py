"""Impacts: velocity jumps when constraints become active.

During an impact configurations do not change, and finite forces have no effect; only the impulses Λ of the constraints
act:

    M (v⁺ - v) = Jᵀ Λ,      J v⁺ - w = -e (J v - w),

w are the velocities of the references and e the coefficient of restitution of each row (Newton): 0 if the row sticks, 1
for a lossless rebound. This is the smallest motion (`least_motion`) that removes (1 + e)(J v - w): it exists for any
rank of J, and its impulse is the smallest of all with the same effect. With resting references and equal e for all
rows, kinetic energy does not increase: the part that belongs to the rows is multiplied by e². With different e it can
increase, a known property of Newton's law. Rows act in both directions, so an impulse may pull. Select the rows that
take part with `mask`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.common.types import Traced
from delassus.compiler.host.inputs import Input
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.projection.least_motion import LeastMotion
from delassus.constrained.rows.inputs import TIME, per_row
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.problem import switch_factors
from delassus.constrained.rows.references import velocities_asked
from delassus.constraints.basis.constraint import frozen_numbers
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.dynamics.tree.check import check_inertias
from delassus.errors import BadArgument, expect

_TOLERANCE: Final = 1e-15
"""Residual velocity at which iterations end, relative to the largest impact velocity, scaled by mobility."""

_ITERATIONS: Final = 50
"""Maximum number of proximal iterations; three are typical."""

_AGREEMENTS: Final = 2
"""Number of corrections for infeasible rows; each adds 9 digits to their residual."""


class Impact(NamedTuple):
    """Velocities (…, nv) [rad/s, m/s] after an impact, and the impulses (…, m) [N·s, N·m·s] of the rows.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.impact(loop, loop.model.posture("home"), np.ones(3)).impulse.shape
    (3,)
    """

    v: Any
    impulse: Any


def restitution_rows(mechanism: Mechanism, restitution: Any) -> Any:
    """e (…, m) of all rows, checked, from one value, values per row, or values by names of constraints."""
    if not isinstance(restitution, Mapping):
        return _check_restitution("the restitution", restitution, mechanism.m)
    e = [0.0] * mechanism.m
    for name, value in restitution.items():
        expect("the name of a constraint", name, str, repr(next(iter(mechanism.names), "left foot")))
        if name not in mechanism.slices:
            raise UnknownName("constraint", name, mechanism.names, code="unknown-constraint")
        at = mechanism.slices[name]
        e[at] = _check_restitution(f"the restitution of {name!r}", value, at.stop - at.start)
    return numpy.array(e)


def _check_restitution(label: str, value: Any, count: int) -> Any:
    """Values from 0 to 1, one per row; NaN in a batch affects only its own state."""
    is_batch = isinstance(value, numpy.ndarray) and value.ndim > 1
    e = numpy.asarray(value if is_batch else frozen_numbers(label, value), float)
    if e.ndim and e.shape[-1] != count:
        raise BadArgument(
            f"{label} has {e.shape[-1]} numbers; it must be one number, or one for each of {count} rows.",
            code="wrong-shape",
        )
    invalid = e[(e < 0.0) | (e > 1.0)]
    if invalid.size:
        raise BadArgument(
            f"{label} is {invalid.flat[0]:g}; it must be from 0 (rows stick) to 1 (they rebound without loss).",
            code="restitution-out-of-range",
        )
    return e if e.ndim else numpy.full(count, e)


@kernel(
    "(nq),(nv)->(nv),(m)",
    inputs={"restitution": Input("(m)", read=restitution_rows), "mask": per_row("mask"), "time": TIME},
    result=Impact,
)
def impact(
    mechanism: Mechanism, q: Traced, v: Traced, *, restitution: Traced = 0.0, mask: Traced = None, time: Traced = None
) -> Impact:
    """Velocities after an impact and the impulses of the constraints, of one state or a batch.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the impact.
        restitution: e from 0 to 1: one number, one per row (…, m), or by the names of constraints (others have 0).
        mask: (…, m) nonzero for rows that take part; by default all.
        time: (…) [s] time of moving references, required if there are any.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> v, impulse = dl.impact(loop, loop.model.posture("home"), np.ones(3))
    >>> v.shape, impulse.shape
    ((3,), (3,))
    """
    refuse_unilateral(mechanism, "impact")
    if not mechanism.m:
        return Impact(v, np.zeros(0))
    check_inertias(mechanism.model)
    J = constraint_jacobian(mechanism, q, time=time)
    strikes = J @ v - velocities_asked(mechanism, q, time)
    if mask is not None:
        on = switch_factors(mask)
        J, strikes = on[:, None] * J, on * strikes
    r = (1.0 + restitution) * strikes
    unit = numpy.sqrt(row_mobilities(mechanism))
    tolerance = _TOLERANCE * np.max(np.abs(strikes) / unit) * unit
    system = LeastMotion.of(mechanism, q, J)
    jump = system.solve(r, tolerance, _ITERATIONS)
    for _ in range(_AGREEMENTS):
        r = r - jump.left
        jump = system.solve(r, tolerance, _ITERATIONS)
    return Impact(v + jump.change, jump.multiplier)
