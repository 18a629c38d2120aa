"""Structures of inputs of all kernels that solve for the contacts of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from delassus.compiler.host.inputs import Group
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.options import SolverInputs


class ContactPlanes(NamedTuple):
    """The planes that points touch: normals (points, 3) and heights (points,) [m]; None for what contacts say."""

    normal: Any = None
    height: Any = None

    def replace(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        return self._replace(**changes)


class RowRelaxation(NamedTuple):
    """How rows give way in the relaxed model: weights (m,) [1/kg], solref (m, 2), solimp (m, 5), and impratio."""

    weight: Any = None
    reference: Any = None
    impedance: Any = None
    impratio: Any = None


_CONES: Final = {"friction": "(points)", "torsional": "(torsional)", "rolling": "(rolling)"}

CONES: Final = Group(ContactParameters, **_CONES)
CONTACT: Final = Group(ContactParameters, **_CONES, restitution="(points)", compliance="(points)")
PLANES: Final = Group(ContactPlanes, normal="(points,3)", height="(points)")
RELAXATION: Final = Group(RowRelaxation, weight="(m)", reference="(m,2)", impedance="(m,5)", impratio="()")
SOLVER: Final = Group(SolverInputs, start="(m)", tolerance="()", iterations="()")

KINDS: Final[dict[str, Any]] = {
    "contact": ContactParameters,
    "planes": ContactPlanes,
    "relaxation": RowRelaxation,
    "solver": SolverInputs,
}


def structured(inputs: Mapping[str, Any], kinds: Mapping[str, Any] = KINDS) -> dict[str, Any]:
    """Inputs by the names of fields, as the structures that kernels take; others as they are."""
    found = dict(inputs)
    for name, kind in kinds.items():
        fields = {field: found.pop(field) for field in kind._fields if field in found}
        if fields:
            found[name] = kind(**fields)
    return found
