"""Impacts: velocities that jump where constraints strike.

During an impact, configurations stay and finite forces do nothing; the impulses Λ of the constraints alone count:

    M (v⁺ - v) = Jᵀ Λ,      J v⁺ - w = -e (J v - w),

w the velocities of the references and e the coefficient of restitution of each row (Newton): 0 if the row sticks, 1 if
it throws back without loss. This is the least motion (`least_motion`) that takes off (1 + e)(J v - w): any rank of J
will do, and of all impulses with the same effect it gives the smallest. With resting references and one e for all rows,
kinetic energy never grows: what the rows had of it is multiplied by e². With different ones it can, as is known of
Newton's law. Rows act in both directions: an impulse may pull. Choose the rows that strike by `mask`.

`impact` is the function for users, `solve_impact` the kernel behind it, for hot loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.projection.least_motion import LeastMotion
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.options import check_mechanism
from delassus.constrained.rows.references import velocities_asked
from delassus.constrained.rows.task import switched
from delassus.constraints.basis.constraint import PerRow, frozen_numbers
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.tree.check import check_inertias
from delassus.errors import DelassusError, expect
from delassus.model.model import UnknownName

_TOLERANCE: Final = 1e-15
"""Residual velocity, as a share of the largest that strikes, mass for mass, at which iterations end."""

_ITERATIONS: Final = 50
"""Proximal iterations at most; three are usual."""

_AGREEMENTS: Final = 2
"""How often rows that contradict each other are made to agree; each time adds 9 digits to what is known of it."""


class Impact(NamedTuple):
    """Velocities (…, nv) [rad/s, m/s] after an impact, and the impulses (…, m) [N·s, N·m·s] of the rows."""

    v: Any
    impulse: Any


def impact(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    *,
    restitution: PerRow | Mapping[str, PerRow] = 0.0,
    mask: Any = None,
    time: Any = None,
    parameters: Any = None,
) -> Impact:
    """Velocities after an impact and the impulses of the constraints, of one state or a batch.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the impact.
        restitution: e from 0 to 1: one number, one per row, or by the names of constraints (others have 0).
        mask: (…, m) not zero for rows that take part; by default all.
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.
    """
    check_mechanism(mechanism)
    e = restitution_rows(mechanism, restitution)
    inputs = {"restitution": np.array(e) if any(e) else None, "mask": mask, "time": time, "parameters": parameters}
    return Impact(*solve_impact(mechanism, q, v, **inputs))


@kernel("(nq),(nv)->(nv),(m)", inputs={"restitution": "(m)", "mask": "(m)", "time": "()"})
def solve_impact(
    mechanism: Mechanism, q: Any, v: Any, *, restitution: Any = None, mask: Any = None, time: Any = None
) -> tuple[Floats, Floats]:
    """Velocity (nv,) after an impact and impulses Λ (m,); arguments as for `impact`, restitution an input (m,)."""
    if not mechanism.m:
        return v, np.zeros(0)
    e = np.zeros(mechanism.m) if restitution is None else restitution
    check_inertias(mechanism.model)
    J = constraint_jacobian.function(mechanism, q, time=time)
    strikes = J @ v - velocities_asked(mechanism, q, time)
    if mask is not None:
        on = switched(mask)
        J, strikes = on[:, None] * J, on * strikes
    r = (1.0 + e) * strikes
    unit = numpy.sqrt(row_mobilities(mechanism))
    tolerance = _TOLERANCE * np.max(np.abs(strikes) / unit) * unit
    system = LeastMotion.of(mechanism, q, J)
    jump = system.solve(r, tolerance, _ITERATIONS)
    for _ in range(_AGREEMENTS):
        r = r - jump.left
        jump = system.solve(r, tolerance, _ITERATIONS)
    return v + jump.change, jump.multiplier


def restitution_rows(mechanism: Mechanism, restitution: Any) -> tuple[float, ...]:
    """e (m,) of all rows, checked, from one number, one per row, or numbers by the names of constraints."""
    if not isinstance(restitution, Mapping):
        return _checked("the restitution", restitution, mechanism.m)
    e = [0.0] * mechanism.m
    for name, value in restitution.items():
        expect("the name of a constraint", name, str, repr(next(iter(mechanism.names), "left foot")))
        if name not in mechanism.slices:
            raise UnknownName("constraint", name, mechanism.names)
        at = mechanism.slices[name]
        e[at] = _checked(f"the restitution of {name!r}", value, at.stop - at.start)
    return tuple(e)


def _checked(what: str, value: Any, count: int) -> tuple[float, ...]:
    """Numbers from 0 to 1, one per row."""
    numbers = frozen_numbers(what, value)
    given = numbers if isinstance(numbers, tuple) else (numbers,)
    if isinstance(numbers, tuple) and len(given) != count:
        raise DelassusError(f"{what} has {len(given)} numbers; it is one number, or one for each of {count} rows.")
    for number in given:
        if not 0.0 <= number <= 1.0:
            raise DelassusError(
                f"{what} is {number:g}; it is a number from 0, where rows stick, to 1, where they are thrown back "
                "without loss."
            )
    return given if isinstance(numbers, tuple) else given * count
