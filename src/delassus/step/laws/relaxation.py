"""The compliance of rows under MuJoCo's contact law, with the parameters of MJCF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.common.checks import real_array
from delassus.errors import BadArgument


class RelaxationError(BadArgument):
    """Invalid parameters of the compliance of a row."""


@dataclass(frozen=True)
class Relaxation:
    """Reference acceleration and impedance of rows.

    Attributes:
        solref: (time constant [s], damping ratio), or, both negative, -(stiffness, damping).
        solimp: (d₀, d_width, width [m, rad], midpoint, power): the impedance, from 0 (soft) to 1 (hard), grows from d₀
            at no violation to d_width at a violation of `width`.
        weight: Â [1/kg] of a contact, the sum of MuJoCo's `body_invweight0` of both bodies; None computes it from the
            model, in which bodies that are fixed to each other count as one.

    >>> dl.contact.Relaxation(solref=(0.01, 1.0)).solref
    (0.01, 1.0)
    """

    solref: Any = (0.02, 1.0)
    solimp: Any = (0.9, 0.95, 0.001, 0.5, 2.0)
    weight: float | None = None

    def __post_init__(self) -> None:
        for name, count in (("solref", 2), ("solimp", 5)):
            numbers = real_array(name, getattr(self, name), f"{count} finite numbers")
            if numbers.shape != (count,) or not np.all(np.isfinite(numbers)):
                raise RelaxationError(
                    f"{name} is {getattr(self, name)!r}; it must have {count} finite values.", code="wrong-shape"
                )
            object.__setattr__(self, name, tuple(numbers.tolist()))
        weight = real_array("weight", 1.0 if self.weight is None else self.weight, "one number [1/kg]")
        if weight.ndim or not 0.0 < weight < np.inf:
            raise RelaxationError(
                f"weight is {self.weight!r} 1/kg; it must be positive and finite.", code="out-of-range"
            )
        if (self.solref[0] > 0.0) != (self.solref[1] > 0.0):
            raise RelaxationError(
                f"solref is {self.solref}; both values must be positive (time constant, damping ratio), or both must "
                "be zero or less (-stiffness, -damping).",
                code="out-of-range",
            )
