"""Scenes that can be solved inside the articulated-body recursion, and the effective inertia of their contacts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph.parameters import Parametric
from delassus.compiler.host.definition import plainly
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors
from delassus.geometry.candidates import Shape, placed_shape, touches
from delassus.geometry.collisions import collision_touches
from delassus.geometry.point_jacobians import PointJacobians
from delassus.geometry.shapes.registry import Touch
from delassus.geometry.surfaces import plane_surface
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from delassus.step.actuators.checks import driving_terms
from delassus.step.actuators.drive import limited_servos
from delassus.step.scene import Scene

_POINTS: Final = 4
"""Number of contacts of a standing robot that the choice of a method assumes."""

_MARGIN: Final = 1.3
"""Factor by which the recursion must be cheaper."""

_LIGHTEST: Final = 1e-9
"""Smallest response of a contact, as a fraction of the largest."""


def reason_against(scene: Scene) -> str | None:
    """Why the recursion cannot solve a scene; None if it can.

    It needs a single tree, in which each velocity belongs to one link, and at most one law per joint.
    """
    model = scene.model
    tree = links_of(model)
    if isinstance(model, Parametric):
        return "the model has parameters"
    if tree.mimics:
        return "joints mimic others"
    if scene.mechanism.m:
        return "constraints close loops"
    if scene.one_sided:
        return "there are one-sided constraints"
    if sum(link.parent == WORLD for link in tree.links) != 1:
        return "there are several robots or free bodies"
    if scene.contacts:
        return "there are named contact points"
    if model.tendons:
        return "there are tendons"
    driven = [driving_terms(model, actuator) for actuator in scene.actuators if actuator.drives not in ("site", "body")]
    if any(len(terms) != 1 for terms in driven):
        return "actuators pull tendons"
    names = [driving_terms(model, scene.actuators[k])[0][0] for k in limited_servos(scene.actuators)]
    if len(set(names)) < len(names):
        return "a joint has several servos with limits"
    if not scene.m:
        return "nothing is to be solved for"
    return None


def prefers_recursion(scene: Scene) -> bool:
    """Whether the recursion takes fewer operations than the Delassus matrix, for a robot standing on four points.

    Without joint friction it does not, since contacts alone are few rows. Otherwise, estimates of multiply-adds are
    compared, from n rows, nv velocities and the depth of the tree: 2.5 Newton iterations with the matrix, 3 with the
    recursion, and a margin for its retries.
    """
    if not scene.friction_dofs or reason_against(scene) is not None:
        return False
    nv, above = scene.model.nv, sum(map(len, ancestors(scene.model)))
    n = _POINTS * scene.contact_rows * bool(scene.slots) + len(scene.friction_dofs)
    matrix = n * n * nv / 2 + n * above + 2.5 * (n**3 / 3 + 2 * n * n)
    recursion = 3.0 * (120 * nv + _POINTS * (200 + 6 * nv) + 2 * above)
    return _MARGIN * recursion < matrix


@lru_cache(maxsize=64)
def _responses(scene: Scene) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    model = scene.model
    names = [posture.name for posture in model.postures]
    name = "home" if "home" in names else names[0] if names else None
    q = np.asarray(model.neutral() if name is None else model.posture(name), float)
    tree = links_of(model)
    poses = world_poses(tree, q)
    reach = PointJacobians.of(tree, model.nv, poses)
    surface = plane_surface(np.array([0.0, 0.0, 1.0]), 0.0)
    inverse = np.linalg.inv(np.asarray(mass_matrix(model, q)))
    found: list[tuple[Shape, Shape | None, Touch]] = []
    found += [(shape, None, touch) for shape in scene.shapes for touch in touches(shape, tree, poses, surface)]
    for collision in scene.collisions:
        found += [(collision.shape, collision.other, touch) for touch in collision_touches(collision, tree, poses)]

    def response(point: Any, *shapes: Shape | None) -> NDArray[np.float64]:
        """That of the relative motion of one or two shapes at a point."""
        J = np.zeros((6, model.nv))
        for one, sign in zip(shapes, (1.0, -1.0), strict=False):
            link = WORLD if one is None else tree.place(one.geometry.joint, one.geometry.placement)[0]
            if link != WORLD:
                J += sign * np.asarray(reach.rows(link, frozenset({link}), np.asarray(point), np.eye(3), 6))
        return np.array([np.trace(rows @ inverse @ rows.T) / 3.0 for rows in (J[:3], J[3:])])

    responses = [response(touch[1], shape, other) for shape, other, touch in found]
    # Pairs of classes are many: each has the sum of those of its shapes, at their centers.
    pairs = [(shape, other) for shape, other, _ in scene.candidate_shapes[len(found) :]]
    own = {shape: response(placed_shape(shape, tree, poses).p, shape) for pair in pairs for shape in pair if shape}
    responses += [sum((own[shape] for shape in pair if shape), np.zeros(2)) for pair in pairs]
    moves, turns = np.array(responses).T if responses else np.ones((2, 0))
    return tuple(np.maximum(x, _LIGHTEST * x.max(initial=0.0)) for x in (moves, turns))


def candidate_responses(scene: Scene) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """tr(J M⁻¹ Jᵀ)/3 of contact candidates, linear [1/kg] and angular [1/(kg·m²)], in the initial posture.

    It scales contacts during the iterations and does not affect the solution.
    """
    with plainly():
        return _responses(scene.full)
