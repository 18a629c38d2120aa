"""The proximal parameter ε of each row: what is given, or one that suits the mechanism whatever its units.

An iteration multiplies the error along an eigenvector of J M⁻¹ Jᵀ by ε/(ε + σ), σ its eigenvalue. So ε is right when
it is a small share of what rows yield: the acceleration of a row per unit of its force, the diagonal of J M⁻¹ Jᵀ.
That is a number of its own for every constraint, and for its linear and its angular rows: 1/kg for the ones,
1/(kg·m²) for the others. Taking it from there makes results the same in all units of length, mass and time.

ε is also the norm in which "least" is meant where rows are redundant or contradict each other: forces are the smallest
by Σ ε λ², residuals by Σ r²/ε. One ε for all rows makes this the plain Euclidean norm.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from delassus.constrained.delassus.scales import row_mobilities
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import DelassusError

Proximal: TypeAlias = float | tuple[float, ...] | None
"""ε [1/kg, 1/(kg·m²)]: one number, one per row, or None for the natural one."""


def natural_proximal(mechanism: Mechanism, share: float) -> tuple[float, ...]:
    """ε (m,) that suits a mechanism: a share of the mobility of each row.

    A smaller share needs fewer iterations, and costs digits, sooner in the methods with penalties.
    """
    return tuple(share * mobility for mobility in row_mobilities(mechanism))


def proximal_rows(mechanism: Mechanism, proximal: Proximal, share: float = 1e-6) -> NDArray[numpy.float64]:
    """ε (m,), checked; the natural one with a share if none is given."""
    if proximal is None:
        return numpy.array(natural_proximal(mechanism, share))
    try:
        epsilon = numpy.asarray(proximal, float)
    except (TypeError, ValueError):
        raise DelassusError(f"proximal is {proximal!r}; it is one number, or one per row, such as 1e-6.") from None
    if epsilon.ndim > 1 or (epsilon.ndim == 1 and len(epsilon) != mechanism.m):
        raise DelassusError(
            f"proximal has shape {epsilon.shape}; it is one number, or one for each of the {mechanism.m} rows."
        )
    if not numpy.all((epsilon > 0.0) & numpy.isfinite(epsilon)):
        worst = epsilon if epsilon.ndim == 0 else epsilon[~((epsilon > 0.0) & numpy.isfinite(epsilon))][0]
        raise DelassusError(
            f"proximal is {worst:g}; it must be positive and finite. It is what makes redundant constraints solvable, "
            "and iterations remove its effect: leave it out, or take 1e-6 and more iterations, rather than 0. A "
            "smaller one converges in fewer iterations and loses digits."
        )
    return numpy.broadcast_to(epsilon, mechanism.m)
