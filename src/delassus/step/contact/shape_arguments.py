"""The scene and inputs of a step with contacts of shapes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    FINITE,
    FRICTIONS,
    NOT_NEGATIVE,
    RESTITUTIONS,
    Range,
    numbers_in_range,
    real_array,
)
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.solvers.laws import Ccp, Lcp, Ncp
from delassus.contact.systems.scaled import LARGEST_FRICTION
from delassus.errors import short
from delassus.geometry.candidates import Shape
from delassus.model.model import Model
from delassus.model.parts import HEIGHT_FIELD
from delassus.step.laws.inputs import ContactPlanes
from delassus.step.laws.law import Law
from delassus.step.laws.options import RowOptions
from delassus.step.points.parameters import as_mechanism, check_row_choice
from delassus.step.scene import Scene
from delassus.step.selection.collision_pairs import (
    FRICTION,
    CollisionPairs,
    count_slots,
    friction_of,
    select_collision_pairs,
)
from delassus.step.selection.options import ContactSelection, ShapeSelection
from delassus.step.selection.shapes import shapes_of
from delassus.step.selection.world_shapes import ground_plane, ground_shapes

_RANGES: Final[Mapping[str, Range]] = {
    "friction": FRICTIONS,
    "torsional": FRICTIONS,
    "rolling": FRICTIONS,
    "restitution": RESTITUTIONS,
    "compliance": NOT_NEGATIVE,
}
_KEYWORDS: Final = tuple(field.name for field in dataclasses.fields(ShapeSelection))


def selects_shapes(contacts: Any, shortcuts: Mapping[str, Any]) -> bool:
    """Whether a call selects shapes, by an object or by keywords, instead of contact points."""
    given = [name for name in _KEYWORDS if name in shortcuts]
    if isinstance(contacts, ShapeSelection):
        return True
    if given and contacts != ():
        raise ContactProblemError(
            f"contacts= has named points, and {given[0]}= selects shapes: pass only one of them. To combine points and "
            "shapes, add the points to touching=[Contact(…), …].",
            code="conflicting-arguments",
        )
    return bool(given)


def refuse_other_laws(law: Law, time_step: Any) -> None:
    """Raise unless contacts of shapes support the law and the time step."""
    if time_step is None:
        raise ContactProblemError(
            "time_step is missing: contacts of shapes are solved over a time step. For accelerations and forces, use "
            "contact points, such as contacts=[Contact('foot')].",
            code="missing-argument",
        )
    if not isinstance(law, Ncp | Ccp | Lcp):
        raise ContactProblemError(
            f"law {law.name!r} needs contact points, such as contacts=[Contact('foot')]; shapes support 'ncp', 'ccp' "
            "and 'lcp', and Simulation(…, law='mujoco').",
            code="not-supported",
        )


def shape_scene(
    mechanism: Any, selection: ShapeSelection, rows: RowOptions, contact: ContactParameters, on_plane: bool
) -> Scene:
    """The scene, which is compiled; `on_plane` if the call has a plane, which then is the ground."""
    mechanism = as_mechanism(mechanism)
    check_row_choice(rows.limits, rows.joint_friction)
    selection = _without_rows(selection)
    if not on_plane:
        selection = _with_ground_of_file(mechanism.model, selection)
    kinds = tuple(None if x is None else bool(np.any(real_array("friction", x))) for x in contact[:3])
    return _scene(mechanism, selection, (bool(rows.limits), bool(rows.joint_friction)), kinds)


def _without_rows(selection: ShapeSelection) -> ShapeSelection:
    """The selection of shapes, without rows of joints."""
    if not isinstance(selection, ContactSelection):
        return selection
    plain = ContactSelection()
    for name in ("max_limits", "joint_friction", "tracked"):
        if getattr(selection, name) != getattr(plain, name):
            raise ContactProblemError(
                f"{name} of the contact selection is {short(repr(getattr(selection, name)))}, which is an option of "
                "Simulation. Rows of joints are chosen by limits= and joint_friction= here.",
                code="conflicting-arguments",
            )
    return ShapeSelection(**{name: getattr(selection, name) for name in _KEYWORDS})


def _with_ground_of_file(model: Model, selection: ShapeSelection) -> ShapeSelection:
    """The selection with the ground of a model's file; without one, no shape touches the ground."""
    floors = ground_shapes(model)
    if floors and floors[0].shape == HEIGHT_FIELD:
        raise ContactProblemError(
            f"the ground of {model.name!r} is the height field {floors[0].name!r}, and contact_dynamics supports "
            "planes only. Use Simulation, or pass height=….",
            code="not-supported",
        )
    if floors or not model.describes_world:
        return selection
    if selection.touching not in ("*", (), []):
        raise ContactProblemError(
            f"touching= is {short(repr(selection.touching))}, but the file of {model.name!r} has no ground. Pass "
            "height=0.0 for level ground, or omit touching=.",
            code="conflicting-arguments",
        )
    return selection.replace(touching=())


@lru_cache(maxsize=256)
def _scene(
    mechanism: Mechanism,
    selection: ShapeSelection,
    rows: tuple[bool, bool],
    coefficients: tuple[bool | None, bool | None, bool | None],
) -> Scene:
    model, (limits, joint_friction) = mechanism.model, rows
    pairs = CollisionPairs()
    shapes: tuple[Shape, ...] = ()
    if selection.max_contacts != 0:
        pairs = select_collision_pairs(model, selection)
        shapes = shapes_of(model, selection.touching, hull_error=selection.hull_error)
    friction = friction_of(model, coefficients, shapes, pairs)
    return Scene(
        mechanism,
        max_limits=None if limits else 0,
        joint_friction=joint_friction,
        shapes=shapes,
        collisions=pairs.collisions,
        pair_classes=pairs.classes,
        max_contacts=count_slots(model, pairs) if selection.max_contacts is None else selection.max_contacts,
        contact_rows=friction.rows,
        own_friction=friction.own,
    )


def slot_parameters(scene: Scene, given: ContactParameters) -> ContactParameters:
    """Parameters (…, slots), from one value (…) for all contacts of a state."""
    values: dict[str, Any] = {}
    for name, within in _RANGES.items():
        value = getattr(given, name)
        if value is None:
            continue
        numbers = numbers_in_range(name, value, within)
        bound = LARGEST_FRICTION if name in ("friction", "torsional", "rolling") else np.inf
        values[name] = _for_slots(np.minimum(numbers, bound), scene.slots)
    values.setdefault("friction", np.full(scene.slots, FRICTION))
    for name, count in (("torsional", scene.torsional), ("rolling", scene.rolling)):
        if count:
            values.setdefault(name, np.zeros(count))
        else:
            values.pop(name, None)
    return ContactParameters(**values)


def slot_planes(scene: Scene, planes: ContactPlanes) -> ContactPlanes:
    """The ground plane of the call or of the model's file, repeated for each slot."""
    normal, height = planes
    if normal is None and height is None:
        floors = ground_shapes(scene.mechanism.plain.model)
        if not floors:
            return ContactPlanes()
        normal, height = ground_plane(floors[0])
        if height == 0.0 and normal[2] == 1.0:
            return ContactPlanes()
    if normal is not None:
        normal = real_array("normal", normal)
        unknown = normal.ndim == 1 and not np.all(np.isfinite(normal))
        if normal.shape[-1:] != (3,) or unknown or np.any(~np.any(normal, -1)):
            raise ContactProblemError(
                f"normal is {short(repr(normal.tolist()))}; it must be a direction (x, y, z) of the ground, one for "
                "each state.",
                code="zero-direction",
            )
        normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
        normal = np.broadcast_to(normal[..., None, :], (*normal.shape[:-1], scene.slots, 3))
    return ContactPlanes(
        normal, None if height is None else _for_slots(numbers_in_range("height", height, FINITE), scene.slots)
    )


def _for_slots(numbers: NDArray[np.float64], slots: int) -> NDArray[np.float64]:
    """Values (…, slots) from one value (…) for all slots."""
    return np.broadcast_to(numbers[..., None], (*np.shape(numbers), slots))
