"""How soft contacts give way: springs, dampers, and friction without a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delassus.errors import BadArgument


class SoftnessError(BadArgument):
    """Numbers that are no spring, no damper, or no speed."""


@dataclass(frozen=True)
class Softness:
    """A surface as a spring and a damper.

    Attributes:
        stiffness: k [N/m].
        damping: d [N·s/m].
        slip_speed: v_s [m/s; rad/s for turning]: friction grows with the sliding speed up to about this one, and is
            hardly more beyond. A body on a slope creeps at a fraction of it.
    """

    stiffness: float = 1e4
    damping: float = 1e2
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "slip_speed"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and value < math.inf
            if not number or not value >= 0.0 or (name == "slip_speed" and value == 0.0):
                raise SoftnessError(
                    f"{name} is {value!r}; it is a finite number, not negative, and no speed of zero.",
                    code="out-of-range",
                )
