"""Input structures of all kernels that solve for contacts of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from delassus.compiler.host.inputs import Bundle, Group
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.options import SolverInputs


class ContactPlanes(NamedTuple):
    """The planes of the contacts: normals (points, 3) and heights (points,) [m]; None for those of each `Contact`.

    >>> dl.contact.ContactPlanes(height=np.array([0.1])).height
    array([0.1])
    """

    normal: Any = None
    height: Any = None

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields."""
        return self._replace(**changes)


class RowRelaxation(NamedTuple):
    """Compliance of rows under the relaxed law: weights (m,) [1/kg], solref (m, 2), solimp (m, 5), and impratio."""

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


class ContactInputs(NamedTuple):
    """Run-time inputs of contact kernels other than the state; None for inputs that are not given.

    Attributes:
        contact: Friction, restitution and compliance of the points.
        stabilization: (…) fraction of position errors that velocities correct in a step, from 0 to 1; None for 0.
        planes: The planes of the contacts.
        time: (…) [s].
    """

    contact: ContactParameters = ContactParameters()
    stabilization: Any = None
    planes: ContactPlanes = ContactPlanes()
    time: Any = None


NOTHING: Final = ContactInputs()


def surroundings(contact: Group, *, stabilized: bool = True) -> Bundle:
    """The inputs of a kernel with these contact parameters; `stabilized` if it corrects position errors."""
    share: dict[str, Any] = {"stabilization": "()"} if stabilized else {}
    return Bundle(ContactInputs, contact=contact, **share, planes=PLANES, time="()")


KINDS: Final[dict[str, Any]] = {
    "contact": ContactParameters,
    "planes": ContactPlanes,
    "relaxation": RowRelaxation,
    "solver": SolverInputs,
}


def group_inputs(inputs: Mapping[str, Any], kinds: Mapping[str, Any] = KINDS) -> dict[str, Any]:
    """Group inputs by field name into the structures that kernels take; other inputs are unchanged."""
    result = dict(inputs)
    for name, kind in kinds.items():
        fields = {field: result.pop(field) for field in kind._fields if field in result}
        if fields:
            result[name] = kind(**fields)
    return result
