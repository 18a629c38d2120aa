"""The proximal parameter ε of each row: a given value, or a default that is independent of units.

An iteration multiplies the error along an eigenvector of J M⁻¹ Jᵀ by ε/(ε + σ), σ its eigenvalue. So ε is right when
it is a small share of what rows yield: the acceleration of a row per unit of its force, the diagonal of J M⁻¹ Jᵀ.
That is a number of its own for every constraint, and for its linear and its angular rows: 1/kg for the ones,
1/(kg·m²) for the others. Taking it from there makes results the same in all units of length, mass and time.

ε is also the norm in which "least" is meant where rows are redundant or contradict each other: forces are the smallest
by Σ ε λ², residuals by Σ r²/ε. One ε for all rows makes this the plain Euclidean norm.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from delassus.common.checks import positive_number
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constraints.mechanism.mechanism import Mechanism

Proximal: TypeAlias = float | tuple[float, ...] | None
"""ε [1/kg, 1/(kg·m²)]: one number, one per row, or None for the natural one."""


def natural_proximal(mechanism: Mechanism, share: float = 1e-6) -> NDArray[numpy.float64]:
    """ε (m,) [1/kg, 1/(kg·m²)] that suits a mechanism: a fraction of the mobility of each row.

    Mobility is the acceleration of a row per unit of its force, the diagonal of J M⁻¹ Jᵀ, in the neutral configuration
    and some others, rounded to a power of two: one number for the linear rows of a constraint, and one for its angular
    rows. What the methods take without a `proximal` is this, with a share of a millionth.

    Args:
        mechanism: The robot and its constraints.
        share: A smaller one needs fewer iterations, and costs digits, sooner in the methods with penalties.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.natural_proximal(loop).shape
    (3,)
    """
    positive_number("share", share)
    return share * numpy.array(row_mobilities(mechanism))


def proximal_rows(mechanism: Mechanism, proximal: Any, share: float = 1e-6) -> Any:
    """ε (m,): the given value, checked by `read_proximal`, or the natural one."""
    if proximal is None:
        return natural_proximal(mechanism, share)
    return numpy.full(mechanism.m, proximal) if isinstance(proximal, float) else proximal
