"""Friction coefficients of the selected contacts, either those of the ground or those of the touching shapes."""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.contact.cones.parameters import RowParameters
from delassus.step.scene import Scene

_NAMES: Final = {3: ("friction",), 4: ("friction", "torsional"), 6: ("friction", "torsional", "rolling")}
"""The coefficients of a contact, by its number of rows."""


def contact_coefficients(scene: Scene, candidate: Any, ground: tuple[Any, Any, Any]) -> RowParameters:
    """Friction coefficients (…, slots) as inputs of contact solvers.

    Args:
        scene: The scene; coefficients of its shapes override those of the ground.
        candidate: (…, slots) the candidate of each slot; not used if slots are fixed.
        ground: Sliding (…, slots), torsional and rolling friction [m] of the ground.
    """
    if scene.has_fixed_slots:
        candidate = numpy.array(scene.slot_candidates[: scene.slots], int)
    result: dict[str, Any] = {}
    for k, name in enumerate(_NAMES[scene.contact_rows]):
        own = [friction[k] for friction in scene.own_friction]
        said = numpy.array([x is not None for x in own])
        result[name] = ground[k]
        if said.any():
            values = numpy.array([0.0 if x is None else x for x in own])
            result[name] = np.where(np.take(said * 1.0, candidate) > 0.5, np.take(values, candidate), ground[k])
    return RowParameters(**result)
