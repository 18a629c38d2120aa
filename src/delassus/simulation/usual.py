"""The world that most steps are made in: the contacts that a robot stands on, and no joint limits.

Its rows are few and its Jacobian is sparse, since it is known which body each contact is on. A step in which something
that was left out would be passed is made again in the whole world, so the choice made here is one of speed alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from delassus.simulation.step.step import candidate_geometry
from delassus.simulation.step.world import World

NEAR: Final = 0.02
"""Candidates [m] that are so much higher than the lowest one are left out."""


def usual_world(world: World) -> World:
    """A world of the candidates that are lowest in the posture "home", the first one that there is, or the neutral one.

    The world itself, if there is nothing to leave out.
    """
    if not world.m or (world.candidates == world.slots and not world.ends):
        return world
    if world.candidates == world.slots:
        return replace(world, usual=tuple(range(world.candidates)))
    names = [posture.name for posture in world.model.postures]
    name = "home" if "home" in names else names[0] if names else None
    q = world.model.neutral() if name is None else world.model.posture(name)
    gap = np.asarray(candidate_geometry.python(replace(world, field=None), np.asarray(q, float))[0])
    lowest = np.argsort(gap, kind="stable")[: world.slots]
    return replace(world, usual=tuple(sorted(int(k) for k in lowest if gap[k] <= gap[lowest[0]] + NEAR)))
