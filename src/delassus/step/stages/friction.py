"""The coefficients of the contacts that are solved for: those of the ground, or of the shapes that touch."""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.step.scene import Scene

_NAMES: Final = {3: ("friction",), 4: ("friction", "torsional"), 6: ("friction", "torsional", "rolling")}
"""By the number of rows of a contact."""


def of_contacts(scene: Scene, number: Any, ground: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Coefficients (…, slots) by their names, as contact solvers take them.

    Args:
        scene: With coefficients of shapes, where they count.
        number: (…, slots) of the candidates; not read where it is known which they are.
        ground: Sliding (…, slots), torsional and rolling friction [m] of the ground.
    """
    if scene.has_fixed_slots:
        number = numpy.array(scene.slot_candidates[: scene.slots], int)
    found: dict[str, Any] = {}
    for k, name in enumerate(_NAMES[scene.contact_rows]):
        own = [friction[k] for friction in scene.own_friction]
        said = numpy.array([x is not None for x in own])
        found[name] = ground[k]
        if said.any():
            values = numpy.array([0.0 if x is None else x for x in own])
            found[name] = np.where(np.take(said * 1.0, number) > 0.5, np.take(values, number), ground[k])
    return found
