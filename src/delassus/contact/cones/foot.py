"""The wrenches (force and moment at its center) that a flat rectangular foot can transmit, as linear inequalities.

The ground pushes at the corners (±X, ±Y), each force in a square pyramid |f_x|, |f_y| ≤ μ f_z. The set of all sums of
such forces is

    f_z ≥ 0,  |f_x| ≤ μ f_z,  |f_y| ≤ μ f_z                           no pulling, no sliding
    |m_x| ≤ Y f_z,  |m_y| ≤ X f_z                                     no tipping: the center of pressure is on the sole
     m_z ≤ μ (X + Y) f_z - |Y f_x + μ m_x| - |X f_y + μ m_y|          no turning on the spot
    -m_z ≤ μ (X + Y) f_z - |Y f_x - μ m_x| - |X f_y - μ m_y|

Derivation of the last two: m_x determines the fractions of f_z on the sides y = ±Y, (f_z ± m_x/Y)/2 each. Forces a and
b along x on these sides, a + b = f_x, exert a moment Y (b - a) = Y (f_x - 2 a) = Y (2 b - f_x). Friction bounds a from
below and b from above, so this moment is at most the smaller of Y (f_x + μ (f_z + m_x/Y)) and Y (μ (f_z - m_x/Y) -
f_x), which is μ Y f_z - |Y f_x + μ m_x|. Forces along y on the sides x = ±X contribute in the same way.

Reference: S. Caron, Q.-C. Pham, Y. Nakamura, Stability of surface contacts for humanoid robots (2015).
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of
from delassus.contact.cones.kinds import ConeError
from delassus.contact.cones.pyramid import check_pyramid, violation
from delassus.contact.cones.second_order import edge_of

_SIGNS: Final = [(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)]


def foot_rows(friction: Any, half_length: Any, half_width: Any, pyramid: str = "inner") -> Any:
    """(…, 17, 6) rows A with A w ≤ 0 for wrenches w = (f, m) [N, N·m] at the center of the sole, in its axes, z up.

    Args:
        friction: (…) coefficient of Coulomb friction.
        half_length: (…) X [m], half the length of the sole along x.
        half_width: (…) Y [m], half the width along y.
        pyramid: "inner" for corner forces in the square inside Coulomb's cone, μ = friction/√2, a conservative choice;
            "outer" for the square around it, μ = friction.
    """
    check_pyramid(pyramid)
    # μ = c/s; rows that contain it are multiplied by s, so that infinite friction gives finite rows.
    c, s = edge_of(friction, float(numpy.sqrt(0.5)) if pyramid == "inner" else 1.0)
    c, s, X, Y = np.broadcast_arrays(c, s, _sizes(half_length), _sizes(half_width))
    one, none = np.ones_like(c), np.zeros_like(c)
    rows = [[none, none, -one, none, none, none]]
    for sign in (1.0, -1.0):
        rows += [[sign * s, none, -c, none, none, none], [none, sign * s, -c, none, none, none]]
        rows += [[none, none, -Y, sign * one, none, none], [none, none, -X, none, sign * one, none]]
        for a, b in _SIGNS:
            rows.append([a * s * Y, b * s * X, -c * (X + Y), sign * a * c, sign * b * c, sign * s])
    return np.stack([np.stack(row, -1) for row in rows], -2)


def foot_contains(
    wrench: Any, friction: Any, half_length: Any, half_width: Any, pyramid: str = "inner", tolerance: Any = 0.0
) -> Any:
    """(…) whether a foot can transmit a wrench (…, 6) [N, N·m] without sliding, tipping or turning.

    The tolerance bounds the violation of a row of unit length: in newtons, if X and Y are of the order of meters.
    """
    wrench = np.asarray(wrench)
    if wrench.shape[-1:] != (6,):
        raise ConeError(
            f"the wrench has shape {wrench.shape}; its last axis must have length 6: force, then moment.",
            code="wrong-shape",
        )
    return violation(foot_rows(friction, half_length, half_width, pyramid), wrench) <= tolerance


def center_of_pressure(wrench: Any) -> Any:
    """(…, 2) x, y [m] of the center of pressure, (-m_y, m_x)/f_z; NaN where f_z = 0."""
    wrench = np.asarray(wrench)
    presses = wrench[..., 2] > 0.0
    f_z = np.where(presses, wrench[..., 2], 1.0)
    x, y = -wrench[..., 4] / f_z, wrench[..., 3] / f_z
    return np.where(presses[..., None], np.stack([x, y], -1), numpy.nan)


def _sizes(values: Any) -> Any:
    sizes = np.asarray(values)
    if trace_of(sizes) is None and not numpy.all(sizes >= 0.0):
        raise ConeError(
            f"a half length or half width of a foot is {numpy.min(sizes):.6g} m; it cannot be negative.",
            code="out-of-range",
        )
    return sizes
