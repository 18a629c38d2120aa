"""Soft contacts: springs, dampers, and friction that grows smoothly with the sliding speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delassus.common.checks import POSITIVE, Range, number_in_range

_NOT_NEGATIVE = Range(0.0, math.inf, "finite and not negative", open_above=True)


@dataclass(frozen=True)
class Softness:
    """The stiffness and damping of a contact surface, and the slip speed of its friction.

    Attributes:
        stiffness: k [N/m].
        damping: d [N·s/m].
        slip_speed: v_s [m/s; rad/s for rotations]. Friction grows with the sliding speed up to about v_s and is nearly
            constant beyond. A body on a slope creeps at a fraction of v_s.

    >>> dl.contact.Softness(stiffness=2e4).stiffness
    20000.0
    """

    stiffness: float = 1e4
    damping: float = 1e2
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "slip_speed"):
            number_in_range(name, getattr(self, name), POSITIVE if name == "slip_speed" else _NOT_NEGATIVE)
