"""Which method suits a mechanism."""

from __future__ import annotations

from typing import Final

from delassus.constraints.mechanism import Mechanism
from delassus.model.links import links_of

_MANY_ROWS: Final = 12
"""Beyond so many rows, m² operations an iteration are too many."""


def best_method(mechanism: Mechanism) -> str:
    """The name of the method that is expected to be the fastest.

    Methods on the forces iterate in m² operations, so they win while rows are few; beyond, the recursion over the tree
    does. Where joints share coordinates there is no such recursion.
    """
    if links_of(mechanism.model).mimics:
        return "prox_ltl"
    return "prox_pv" if mechanism.m <= _MANY_ROWS else "caba"
