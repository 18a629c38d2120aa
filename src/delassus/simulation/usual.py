"""The world that most steps are made in: the contacts that a robot stands on, and no joint limits.

Its rows are few and its Jacobian is sparse, since it is known which body each contact is on. A step in which something
that was left out would be passed is made again in the whole world, so the choice made here is one of speed alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.simulation.actuators.drive import limited_servos
from delassus.simulation.step.step import candidate_geometry
from delassus.simulation.step.world import World

NEAR: Final = 0.02
"""Candidates [m] that are so much higher than the lowest one are left out."""

LEVEL: Final = 0.004
"""Shapes [m] that are so much higher than the lowest one of their body are left out."""


def usual_world(world: World) -> World:
    """A world of the candidates that are lowest in the posture "home", the first one that there is, or the neutral one.

    The world itself, if there is nothing to leave out.
    """
    guesses = bool(limited_servos(world.actuators))
    if not guesses and (not world.m or (world.candidates == world.slots and not world.ends)):
        return world
    if world.candidates == world.slots:
        return replace(world, usual=tuple(range(world.candidates)))
    names = [posture.name for posture in world.model.postures]
    name = "home" if "home" in names else names[0] if names else None
    q = world.model.neutral() if name is None else world.model.posture(name)
    gap = np.asarray(candidate_geometry.python(replace(world, field=None), np.asarray(q, float))[0])
    near = [k for k in _first_to_touch(world, gap) if gap[k] <= gap.min() + NEAR]
    lowest = sorted(near, key=lambda k: gap[k])[: world.slots]
    return replace(world, usual=tuple(sorted(lowest)))


def _first_to_touch(world: World, gap: NDArray[np.float64]) -> list[int]:
    """The candidates without those of shapes that other shapes of their body, such as a ball at its end, are below."""
    shapes = [(shape.geometry, other and other.geometry) for shape, other, _ in world.meetings]
    bodies = [(shape.joint, other and other.joint) for shape, other in shapes]
    of_shape, of_body = ({key: gap.max() for key in keys} for keys in (shapes, bodies))
    for k, height in enumerate(gap):
        of_shape[shapes[k]] = min(of_shape[shapes[k]], height)
        of_body[bodies[k]] = min(of_body[bodies[k]], height)
    return [k for k in range(world.candidates) if of_shape[shapes[k]] <= of_body[bodies[k]] + LEVEL]
