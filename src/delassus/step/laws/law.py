"""Contact laws with their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from delassus.common.checks import one_of, real_array
from delassus.common.options import Options
from delassus.contact.solvers.laws import RIGID_LAWS, Ccp, Ncp, RigidLaw
from delassus.errors import OutOfRange, expect, short
from delassus.step.laws.relaxation import Relaxation
from delassus.step.laws.relaxed import CONES
from delassus.step.laws.softness import Softness


@dataclass(frozen=True, eq=False)
class Relaxed(Options):
    """MuJoCo's contact law, in which rows are compliant: J a + R f = a* where no cone is active (see `relaxed`).

    Attributes:
        relaxation: Default for rows without a relaxation of their own; None for `Relaxation()`.
        impratio: (…) ratio of the impedance of friction to that of the normal.
        cone: "elliptic" or "pyramidal".

    >>> dl.contact.Relaxed(cone="pyramidal").name
    'relaxed'
    """

    name: ClassVar[str] = "relaxed"
    relaxation: Relaxation | None = None
    impratio: Any = 1.0
    cone: str = "elliptic"

    def __post_init__(self) -> None:
        one_of("cone", self.cone, CONES)
        if self.relaxation is not None:
            expect("the relaxation", self.relaxation, Relaxation, "Relaxation(solref=(0.02, 1.0))")
        if not np.all(real_array("impratio", self.impratio) > 0.0):
            raise OutOfRange(f"impratio is {short(repr(self.impratio))}; it must be positive.")


@dataclass(frozen=True, eq=False)
class Soft(Options):
    """Explicit springs and dampers, with friction that grows with the sliding speed (see `contact.soft`).

    Attributes:
        softness: Default for contacts without a softness of their own; None for `Softness()`.

    >>> dl.contact.Soft().name
    'soft'
    """

    name: ClassVar[str] = "soft"
    softness: Softness | None = None

    def __post_init__(self) -> None:
        if self.softness is not None:
            expect("the softness", self.softness, Softness, "Softness(stiffness=1e4)")


Law = RigidLaw | Relaxed | Soft

LAWS: Final = (*RIGID_LAWS, Relaxed(), Soft())
"""All laws, with their defaults."""
EXPLAINED: Final = (Ncp(), Ccp(), Relaxed())
"""Laws for which `contact_inverse_dynamics` computes forces from a motion."""
