"""Which method, and which proximal parameter, suits a mechanism."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy

from delassus.constrained.by_products import delassus_matrix
from delassus.constraints.mechanism import Mechanism
from delassus.model.links import links_of

_MANY_ROWS: Final = 12
"""Beyond so many rows, m² operations an iteration are too many."""

_SHARES: Final = {"caba": 3e-6, "prox_ltls": 3e-6, "prox_ltl": 1e-7, "prox_pv": 1e-7}
"""The proximal parameter, if none is given, as a share of the largest diagonal element of J M⁻¹ Jᵀ: a smaller one needs
fewer iterations, and costs digits, sooner in the methods with penalties."""


def best_method(mechanism: Mechanism) -> str:
    """The name of the method that is expected to be the fastest.

    Methods on the forces iterate in m² operations, so they win while rows are few; beyond, the recursion over the tree
    does. Where joints share coordinates there is no such recursion.
    """
    if links_of(mechanism.model).mimics:
        return "prox_ltl"
    return "prox_pv" if mechanism.m <= _MANY_ROWS else "caba"


def natural_proximal(mechanism: Mechanism, method: str) -> float:
    """A proximal parameter that suits a mechanism and a method: a share of the largest diagonal element of J M⁻¹ Jᵀ.

    An iteration multiplies errors by ε/(ε + σ), σ the eigenvalues of J M⁻¹ Jᵀ that are not zero.
    """
    return _SHARES[method] * _largest_mobility(mechanism)


@lru_cache(maxsize=256)
def _largest_mobility(mechanism: Mechanism) -> float:
    """The largest acceleration of a row per unit of its force, in the neutral configuration; 1 if none moves.

    Rows that have no derivative just there, such as a `Distance` of points that meet, do not count.
    """
    with numpy.errstate(all="ignore"):
        mobility = numpy.diagonal(delassus_matrix.python(mechanism, mechanism.neutral()))
    scale = float(numpy.max(mobility, where=numpy.isfinite(mobility), initial=0.0))
    return scale if scale > 0.0 else 1.0
