"""Checked options of the solvers, such as unrolled numbers of iterations."""

from __future__ import annotations

from typing import Any, Final

from delassus.common.checks import check_integer, iteration_count

MOST_UNROLLED: Final = 10_000


def check_unrolled(iterations: Any) -> None:
    """Raise unless it is a number of iterations that can be compiled one after the other."""
    iteration_count("iterations", iterations)
    remedy = " They are compiled one after the other; constrained_dynamics iterates to a tolerance."
    check_integer("iterations", iterations, 1, MOST_UNROLLED, code="iterations-out-of-range", remedy=remedy)
