"""Lengths and moment arms of tendons through sites and around shapes, MJCF's `spatial` tendons.

The path of a tendon consists of straight segments between points x₀, x₁, … of bodies. Its length is
l = Σ |x_{k+1} - x_k|/d, where d is the divisor of the preceding pulley (1 without one). Its rate is l̇ = r·v with
r = Σ (J_{k+1} - J_k)ᵀ e_k/d, where e_k is the direction of a segment. A pulley begins another branch. If the path wraps
around a sphere or a cylinder, its tangent points are points of the shape's body, and the arc between them contributes
to the length, but not to the moment arms (`wrapping`). O(n) for each site.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.dynamics.forces.wrapping import wrap_around
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.transmission import PULLEY, Obstacle, Tendon

_SHORTEST: Final = 1e-15
"""Segments shorter than this [m] have no direction, and moment arms of zero."""


class Line(NamedTuple):
    """A length [m] that depends on the configuration.

    Attributes:
        length: l [m].
        moment_arms: r (nv,), the derivative of the length along tangent vectors.
        dofs: Indices of the velocities with nonzero moment arms.
    """

    length: Any
    moment_arms: Any
    dofs: list[int]


def string_line(model: Model, tendon: Tendon, q: Any) -> Line:
    """The length of a spatial tendon, and its moment arms."""
    length, arms, divisor = np.array(0.0), np.zeros(model.nv), 1.0
    previous: str | None = None
    obstacle: Obstacle | None = None
    dofs: set[int] = set()
    for place in tendon.path:
        if isinstance(place, Obstacle):
            obstacle = place
            continue
        if place.startswith(PULLEY):
            divisor, previous = float(place.removeprefix(PULLEY)), None
            continue
        if previous is not None:
            segment_length, segment_gradient = _straight(model, q, previous, place)
            dofs |= moving_dofs(model, previous) ^ moving_dofs(model, place)
            if obstacle is not None:
                segment_length, segment_gradient = _around(
                    model, q, (previous, place), obstacle, (segment_length, segment_gradient)
                )
                dofs |= set().union(
                    *(moving_dofs(model, x) ^ moving_dofs(model, obstacle.frame) for x in (previous, place))
                )
            length, arms = length + segment_length / divisor, arms + segment_gradient / divisor
        previous, obstacle = place, None
    return Line(length, arms, sorted(dofs))


def _straight(model: Model, q: Any, start: str, end: str) -> tuple[Any, Any]:
    """Length and moment arms (nv,) of a segment between two sites."""
    p_from, p_to = (frame_in_world(model, q, name)[1] for name in (start, end))
    J = world_jacobian(model, q, end)[:3] - world_jacobian(model, q, start)[:3]
    distance, direction = _distance(p_from, p_to)
    return distance, direction @ J


def _around(
    model: Model, q: Any, ends: tuple[str, str], obstacle: Obstacle, straight: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Length and moment arms between two sites with an obstacle in between; `straight` has those without it."""
    R, p = frame_in_world(model, q, obstacle.frame)
    first, second = (frame_in_world(model, q, name)[1] for name in ends)

    def local(x: Any) -> Any:
        return R.T @ (x - p)

    side = local(frame_in_world(model, q, obstacle.side)[1]) if obstacle.side else None
    wrap = wrap_around(obstacle.shape, obstacle.radius, local(first), local(second), side)
    J = world_jacobian(model, q, obstacle.frame)
    length, gradient = wrap.length, np.zeros(model.nv)
    for site, x, end in ((ends[0], first, wrap.first), (ends[1], second, wrap.second)):
        arm = R @ end
        distance, direction = _distance(p + arm, x)
        length = length + distance
        if model.frame(site).joint != model.frame(obstacle.frame).joint:
            on_shape = direction @ J[:3] + np.cross(arm, direction) @ J[3:]
            gradient = gradient + direction @ world_jacobian(model, q, site)[:3] - on_shape
    return np.where(wrap.touches, length, straight[0]), np.where(wrap.touches, gradient, straight[1])


def _distance(p_from: Any, p_to: Any) -> tuple[Any, Any]:
    """The distance of two points, and the direction (3,) between them."""
    difference = p_to - p_from
    distance = np.sqrt(difference @ difference)
    return distance, np.where(distance > _SHORTEST, difference / np.maximum(distance, _SHORTEST), 0.0)


def string_dofs(model: Model, tendon: Tendon) -> set[int]:
    """The velocities that move the sites or shapes of a spatial tendon."""
    places = [place.frame if isinstance(place, Obstacle) else place for place in tendon.path]
    return set().union(*(moving_dofs(model, name) for name in places if not name.startswith(PULLEY)))


def world_jacobian(model: Model, q: Any, frame: str) -> Any:
    """The Jacobian (6, nv) of a frame's origin, in the world's axes."""
    return frame_jacobian.function(model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")


def moving_dofs(model: Model, frame: str) -> set[int]:
    """The velocities that move a frame."""
    tree, place = links_of(model), model.frame(frame)
    links = tree.path(tree.place(place.joint, place.placement)[0])
    return {tree.links[i].v + k for i in links for k in range(tree.links[i].motion.nv)}
