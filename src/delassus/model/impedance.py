"""How soft the rows of a model are in MuJoCo's law of contact, as MJCF says: `solref` and `solimp`, by names.

Shapes have their numbers themselves (`Geometry`, `ContactPair`). The rigid law reads none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Impedance:
    """The reference and the impedance of a row.

    Attributes:
        solref: (time constant [s], damping ratio), or, both negative, -(stiffness, damping).
        solimp: (d₀, d_width, width [m, rad], midpoint, power).
        centers: Of a constraint on bodies, their centres of mass (3,) [m] in their joints' frames, empty for those of
            all that a joint carries: where the row is weighed.
    """

    solref: tuple[float, ...] = (0.02, 1.0)
    solimp: tuple[float, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    centers: tuple[tuple[float, ...], ...] = ()


Named = tuple[tuple[str, Impedance], ...]


@dataclass(frozen=True)
class Impedances:
    """Those of all rows but contacts, by the names of joints, tendons and constraints; the default is not listed.

    Attributes:
        joint_limits: Of limits of joints.
        joint_friction: Of dry friction in joints.
        tendon_limits: Of limits of tendons.
        constraints: Of equality constraints.
        impratio: By how much friction of contacts is harder than their normals are.
    """

    joint_limits: Named = ()
    joint_friction: Named = ()
    tendon_limits: Named = ()
    constraints: Named = ()
    impratio: float = 1.0

    def with_prefix(self, prefix: str) -> Impedances:
        """Those of a model whose parts have names with a prefix."""
        named: dict[str, Any] = {field: _prefixed(prefix, getattr(self, field)) for field in _NAMED}
        return replace(self, **named)

    def joined(self, other: Impedances) -> Impedances:
        """Those of two models in one; the first one's impratio counts."""
        named: dict[str, Any] = {field: getattr(self, field) + getattr(other, field) for field in _NAMED}
        return replace(self, **named)


_NAMED = ("joint_limits", "joint_friction", "tendon_limits", "constraints")


def _prefixed(prefix: str, named: Named) -> Named:
    return tuple((prefix + name, impedance) for name, impedance in named)
