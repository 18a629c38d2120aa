"""The proximal parameter ε of each row: a given value, or a default that is independent of units.

An iteration multiplies the error along an eigenvector of J M⁻¹ Jᵀ by ε/(ε + σ), σ its eigenvalue. So ε should be a
small fraction of the mobility of the rows, the diagonal of J M⁻¹ Jᵀ: the acceleration of a row per unit of its force.
The mobility differs between constraints, and between their linear rows (1/kg) and angular rows (1/(kg·m²)). Scaling ε
by it makes results independent of the units of length, mass and time.

ε also defines the norms for redundant or infeasible rows: forces minimize Σ ε λ², residuals Σ r²/ε. Equal ε for all
rows give the Euclidean norms.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from delassus.common.checks import positive_number
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constraints.mechanism.mechanism import Mechanism

Proximal: TypeAlias = float | tuple[float, ...] | None
"""ε [1/kg, 1/(kg·m²)]: one value, one per row, or None for the default."""


def natural_proximal(mechanism: Mechanism, share: float = 1e-6) -> NDArray[numpy.float64]:
    """Default ε (m,) [1/kg, 1/(kg·m²)] for a mechanism: a fraction of the mobility of each row.

    Mobility is the acceleration of a row per unit of its force, the diagonal of J M⁻¹ Jᵀ. It is the largest value in
    the neutral configuration and a few others, rounded to a power of two: one value for the linear rows of a
    constraint, and one for its angular rows. Methods use this ε with a fraction of a millionth if `proximal` is
    omitted.

    Args:
        mechanism: The robot and its constraints.
        share: The fraction. A smaller one needs fewer iterations and loses accuracy, most of all in methods with
            penalties.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.natural_proximal(loop).shape
    (3,)
    """
    positive_number("share", share)
    return share * numpy.array(row_mobilities(mechanism))


def proximal_rows(mechanism: Mechanism, proximal: Any, share: float = 1e-6) -> Any:
    """ε (m,): the given value, checked by `read_proximal`, or the default."""
    if proximal is None:
        return natural_proximal(mechanism, share)
    return numpy.full(mechanism.m, proximal) if isinstance(proximal, float) else proximal
