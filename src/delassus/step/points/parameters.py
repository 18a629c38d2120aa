"""Parameters of contacts as arrays with one value per point. Arguments of a call override those of the contacts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.checks import ContactProblemError, broadcast_rows, not_negative
from delassus.contact.systems.scaled import LARGEST_FRICTION
from delassus.errors import expect
from delassus.errors import short as text_of
from delassus.model.model import Model, ParametricModel
from delassus.step.scene import Scene
from delassus.step.sources.contact import Contact, contacts_of

_OF_POINTS: Final = {
    "friction": "contact points",
    "torsional": "contact points with torsional friction",
    "rolling": "contact points with rolling friction",
    "restitution": "contact points",
    "compliance": "contact points",
}


def scene_for(
    mechanism: Any, contacts: Any, limits: bool, joint_friction: bool, as_in_mujoco: bool = False
) -> tuple[Scene, tuple[Contact, ...]]:
    """The scene, which is compiled, and the contacts with their parameters. A model is wrapped in a mechanism."""
    mechanism, given = as_mechanism(mechanism), contacts_of(contacts)
    check_row_choice(limits, joint_friction)
    return _scene(mechanism, tuple(contact.shape for contact in given), limits, joint_friction, as_in_mujoco), given


def as_mechanism(mechanism: Any) -> Mechanism:
    """A mechanism; a model is wrapped in one, with its own constraints."""
    if isinstance(mechanism, Model | ParametricModel):
        mechanism = _single_model(mechanism)
    expect("the mechanism", mechanism, Mechanism, "Mechanism(model, Point('foot'))")
    checked: Mechanism = mechanism
    return checked


def check_row_choice(limits: Any, joint_friction: Any) -> None:
    """Raise unless both are True or False."""
    for name, value in (("limits", limits), ("joint_friction", joint_friction)):
        if not isinstance(value, bool | int | float | np.bool_ | np.number | None) or value not in (None, 0, 1):
            raise ContactProblemError(
                f"{name} is {text_of(repr(value))}; it must be True or False.", code="not-a-boolean"
            )


@lru_cache(maxsize=64)
def _single_model(model: Any) -> Mechanism:
    return Mechanism(model)


@lru_cache(maxsize=256)
def _scene(
    mechanism: Mechanism, contacts: tuple[Contact, ...], limits: bool, joint_friction: bool, as_in_mujoco: bool
) -> Scene:
    scene = Scene(mechanism, contacts, None if limits else 0, bool(joint_friction), as_in_mujoco)
    _ = scene.row_mechanism  # which checks that the model has these frames
    return scene


def contact_parameters(contacts: tuple[Contact, ...], given: ContactParameters) -> ContactParameters:
    """Arrays (…, points), or (…, points that have it), from the arguments or the contacts; None for those that have no
    effect."""
    result = _contact_parameters(contacts)
    for name, value in zip(given._fields, given, strict=True):
        if value is None:
            continue
        array = broadcast_rows(name, value, len(_values(contacts, name)), _OF_POINTS[name])
        not_negative(name, array)
        if array is not None:
            result = result._replace(**{name: _bounded(name, array)})
    return result


def plane_arrays(scene: Scene, normal: Any, height: Any) -> tuple[Any, Any]:
    """Normals (…, points, 3) and heights (…, points), one for each point; None for those not given."""
    return (
        None if normal is None else _of_planes("normal", normal, (scene.points, 3)),
        None if height is None else _of_planes("height", height, (scene.points,)),
    )


@lru_cache(maxsize=256)
def _contact_parameters(contacts: tuple[Contact, ...]) -> ContactParameters:
    """Parameters of the contacts themselves."""
    every = {name: np.array(_values(contacts, name)) for name in _OF_POINTS}
    needed = ("friction", "torsional", "rolling")
    said = {name: array for name, array in every.items() if array.size and (name in needed or array.any())}
    return ContactParameters(**{name: _bounded(name, array) for name, array in said.items()})


def _bounded(name: str, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip coefficients of friction to the largest that solvers support, since they may be infinite."""
    return np.minimum(array, LARGEST_FRICTION) if name in ("friction", "torsional", "rolling") else array


def _values(contacts: tuple[Contact, ...], name: str) -> list[float]:
    """One value for each point that has this parameter."""
    every = [getattr(contact, name) for contact in contacts for _ in contact.corners]
    return [value for value in every if value is not None]


def _of_planes(name: str, value: Any, core: tuple[int, ...]) -> NDArray[np.float64]:
    """Normals (…, points, 3) or heights (…, points); a single one applies to all points."""
    array: NDArray[np.float64] = real_array(name, value)
    if name == "normal" and array.shape[-1:] != (3,):
        raise ContactProblemError(
            f"normal has shape {array.shape}; its last axis must be a direction (x, y, z).", code="wrong-shape"
        )
    short = array.ndim < len(core)
    if short:
        array = array[None]
    if array.shape[-len(core)] not in (1, core[0]):
        raise ContactProblemError(
            f"{name} has shape {np.shape(value)}; it must describe one plane for each of {core[0]} points, or one for "
            "all.",
            code="wrong-shape",
        )
    return np.broadcast_to(array, (*array.shape[: array.ndim - len(core)], *core))
