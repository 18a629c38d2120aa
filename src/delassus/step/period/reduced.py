"""The reduced contact set: the contacts of the home posture, and joint limits only where they are laws of joints.

It has few rows and a sparse Jacobian, since the body of each contact is known. A step in which an omitted contact or
limit would be violated is solved again with the full set. The choice made here therefore affects speed only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.step.actuators.drive import limited_servos
from delassus.step.period.kernels import candidate_geometry
from delassus.step.scene import ARTICULATED, Scene

NEAR: Final = 0.02
"""Height above the lowest candidate [m], and gap of pairs [m], above which candidates are omitted."""

LEVEL: Final = 0.004
"""Height above the lowest shape of a body [m] above which its other shapes are omitted."""


def reduced_scene(scene: Scene) -> Scene:
    """A scene with the lowest candidates in the posture "home", else in the first posture, else in the neutral
    configuration.

    Returns the scene itself if nothing can be omitted.
    """
    if scene.many_bodies is not None:
        return scene
    guesses = bool(limited_servos(scene.actuators))
    if not guesses and (not scene.m or (scene.has_slot_for_all and not scene.limit_slots)):
        return scene
    if scene.has_slot_for_all and scene.method == ARTICULATED:
        return scene
    if scene.has_slot_for_all:
        return replace(scene, reduced=tuple(range(scene.candidates)))
    if not scene.fixed_candidates:
        return scene
    names = [posture.name for posture in scene.model.postures]
    name = "home" if "home" in names else names[0] if names else None
    q = scene.model.neutral() if name is None else scene.model.posture(name)
    fixed = replace(scene, field=None, pair_classes=())
    gap = np.asarray(candidate_geometry.python(fixed, np.asarray(q, float))[0])
    first = fixed.ground_candidates
    height = np.concatenate([gap[:first] - gap[:first].min(initial=np.inf), np.maximum(gap[first:], 0.0)])
    near = [k for k in _first_to_touch(fixed, gap) if height[k] <= NEAR]
    lowest = sorted(near, key=lambda k: height[k])[: scene.slots]
    return replace(scene, reduced=tuple(sorted(lowest)))


def _first_to_touch(scene: Scene, gap: NDArray[np.float64]) -> list[int]:
    """Candidates without those of shapes that are above another shape of the same body, such as a sphere at its end."""
    shapes = [(shape.geometry, other and other.geometry) for shape, other, _ in scene.candidate_shapes]
    bodies = [(shape.joint, other and other.joint) for shape, other in shapes]
    of_shape, of_body = ({key: gap.max() for key in keys} for keys in (shapes, bodies))
    for k, height in enumerate(gap):
        of_shape[shapes[k]] = min(of_shape[shapes[k]], height)
        of_body[bodies[k]] = min(of_body[bodies[k]], height)
    return [k for k in range(scene.candidates) if of_shape[shapes[k]] <= of_body[bodies[k]] + LEVEL]
