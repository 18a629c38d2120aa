"""Principal moments of inertia, and whether a rigid body can have them."""

from __future__ import annotations

import numpy as np

from delassus.model.placement import Inertia

# Files round inertias to few digits, and those of point masses to noise: violations below this fraction of the
# largest moment, plus the moment of a radius of gyration of 0.1 mm, are ignored.
_ROUNDING = 1e-6
_TINY_RADIUS = 1e-4


def principal_moments(body: Inertia) -> tuple[float, float, float]:
    """The principal moments [kg·m²], the smallest first."""
    small, middle, large = np.linalg.eigvalsh(np.array(body.rotational)).tolist()
    return small, middle, large


def negative_moment(body: Inertia) -> float | None:
    """The smallest principal moment [kg·m²] of a body if it is negative beyond rounding."""
    small, _, large = principal_moments(body)
    return small if small < -_rounding(body, large) else None


def violates_triangle(body: Inertia) -> bool:
    """Whether one principal moment exceeds the sum of the two others, which is impossible for a body."""
    small, middle, large = principal_moments(body)
    rounding = _rounding(body, large)
    return small >= -rounding and large > small + middle + rounding


def _rounding(body: Inertia, large: float) -> float:
    return _ROUNDING * abs(large) + _TINY_RADIUS**2 * body.mass
