"""The numbers of contacts as arrays, one for each point, from what contacts say and what a call says instead."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.rows.options import check_mechanism
from delassus.constraints.mechanism import Mechanism
from delassus.contact.problems.checks import ContactProblemError, not_negative, spread
from delassus.contact.robots.contact import Contact, contacts_of
from delassus.contact.robots.scene import Scene
from delassus.model.model import Model
from delassus.model.parametric import ParametricModel

_OF_POINTS: Final = {
    "friction": "contact points",
    "torsional": "contact points with torsional friction",
    "rolling": "contact points with rolling friction",
    "restitution": "contact points",
    "compliance": "contact points",
}


def scene_for(
    mechanism: Any, contacts: Any, limits: bool, joint_friction: bool, midway: bool = False
) -> tuple[Scene, tuple[Contact, ...]]:
    """What is compiled, and the contacts with their numbers; a bare model counts as a mechanism."""
    if isinstance(mechanism, Model | ParametricModel):
        mechanism = _alone(mechanism)
    check_mechanism(mechanism)
    given = contacts_of(contacts)
    return _scene(mechanism, tuple(contact.shape for contact in given), limits, joint_friction, midway), given


@lru_cache(maxsize=64)
def _alone(model: Any) -> Mechanism:
    return Mechanism(model)


@lru_cache(maxsize=256)
def _scene(
    mechanism: Mechanism, contacts: tuple[Contact, ...], limits: bool, joint_friction: bool, midway: bool
) -> Scene:
    scene = Scene(mechanism, contacts, limits, joint_friction, midway)
    _ = scene.rows  # which checks that the model has these frames
    return scene


def numbers_of(scene: Scene, contacts: tuple[Contact, ...], given: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Arrays by name, last axes (points,) or fewer; those that would do nothing are left out."""
    found = {}
    for name, what in _OF_POINTS.items():
        every = [getattr(contact, name) for contact in contacts for _ in contact.corners]
        own = [value for value in every if value is not None]
        value = own if given.get(name) is None else given[name]
        array = spread(name, value, len(own), what)
        not_negative(name, array)
        if array is None or (name in ("restitution", "compliance") and not np.any(array)):
            continue
        if name == "restitution" and np.any(array > 1.0):
            raise ContactProblemError(f"restitution is {np.nanmax(array):.6g}; it is a number from 0 to 1.")
        found[name] = array
    for name, core in (("normal", (scene.points, 3)), ("height", (scene.points,))):
        if given.get(name) is not None:
            found[name] = _of_planes(name, given[name], core)
    return found


def _of_planes(name: str, value: Any, core: tuple[int, ...]) -> NDArray[np.float64]:
    """Normals (…, points, 3) or heights (…, points); one stands for all points."""
    array = np.asarray(value, float)
    if name == "normal" and array.shape[-1:] != (3,):
        raise ContactProblemError(f"normal has shape {array.shape}; its last axis is a direction (x, y, z).")
    short = array.ndim < len(core)
    if short:
        array = array[None]
    if array.shape[-len(core)] not in (1, core[0]):
        raise ContactProblemError(
            f"{name} has shape {np.shape(value)}; it has one plane for each of {core[0]} points, or one for all."
        )
    return np.broadcast_to(array, (*array.shape[: array.ndim - len(core)], *core))
