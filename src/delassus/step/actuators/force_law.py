"""Force laws: forces as functions of control or activation, length and rate. The table has one entry for each.

An actuator has the name of its law (`Actuator.law`) and the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import delassus.numpy as np
from delassus.compiler.differentiation.derivatives import jvp
from delassus.model.transmission import Actuator


@dataclass(frozen=True)
class ForceLaw:
    """The force of an actuator before its limits."""

    name: ClassVar[str]

    def force(self, actuator: Actuator, signal: Any, length: Any, rate: Any) -> Any:
        """Force f [N, N·m] for a control or an activation, the length l of the transmission and its rate."""
        raise NotImplementedError(f"the force law {self.name!r} has no method `force`: define it.")

    def slope(self, actuator: Actuator, signal: Any, length: Any, rate: Any, h: Any) -> Any:
        """The derivative of the force with respect to l̇ if the length at the end of a step h [s] is l + h l̇."""

        def force(x: Any, w: Any) -> Any:
            return self.force(actuator, signal, x, w)

        return jvp(force, (length, rate), (h, 1.0))[1]


LAWS: Final[dict[str, ForceLaw]] = {}
"""All force laws by their names."""


def register_law(law: ForceLaw) -> ForceLaw:
    """Add a force law to the table, where actuators refer to it by name."""
    if LAWS.get(law.name, law) != law:
        raise ValueError(f"the force law {law.name!r} is registered already: choose another name.")
    LAWS[law.name] = law
    return law


def clip_force(actuator: Actuator, signal: Any, length: Any, rate: Any) -> Any:
    """The force of an actuator within its limits."""
    force = LAWS[actuator.law].force(actuator, signal, length, rate)
    return np.clip(force, *actuator.force_range) if actuator.force_range else force
