"""Lengths of strings through sites, and their moment arms; MJCF's `spatial` tendons that wrap around nothing.

A string passes points x₀, x₁, … of bodies, straight from one to the next. Its length is l = Σ |x_{k+1} - x_k|/d,
where d is the divisor of the pulley before (1 without), and its rate l̇ = r·v with r = Σ (J_{k+1} - J_k)ᵀ e_k/d, e_k the
direction of a segment. A pulley begins another branch. O(n) for each site.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.transmission import PULLEY, WRAP, Tendon

_SHORTEST: Final = 1e-15
"""Segments [m] that are shorter have no direction, and pull nothing."""


class Line(NamedTuple):
    """A length [m] that depends on the configuration, its moment arms r (nv,), and the velocities that they are of."""

    length: Any
    moment_arms: Any
    dofs: list[int]


def wraps(tendon: Tendon) -> bool:
    """Whether a string wraps around a shape."""
    return any(place.startswith(WRAP) for place in tendon.path)


def string_line(model: Model, tendon: Tendon, q: Any) -> Line:
    """The length of a string through sites, and its moment arms."""
    length, arms, divisor = np.array(0.0), np.zeros(model.nv), 1.0
    before: str | None = None
    dofs: set[int] = set()
    for place in tendon.path:
        if place.startswith(PULLEY):
            divisor, before = float(place.removeprefix(PULLEY)), None
            continue
        if before is not None:
            here, there = (frame_in_world(model, q, name)[1] for name in (before, place))
            J = world_jacobian(model, q, place)[:3] - world_jacobian(model, q, before)[:3]
            difference = there - here
            distance = np.sqrt(difference @ difference)
            direction = np.where(distance > _SHORTEST, difference / np.maximum(distance, _SHORTEST), 0.0)
            length = length + distance / divisor
            arms = arms + (direction @ J) / divisor
            dofs |= moving_dofs(model, before) ^ moving_dofs(model, place)
        before = place
    return Line(length, arms, sorted(dofs))


def world_jacobian(model: Model, q: Any, frame: str) -> Any:
    """The Jacobian (6, nv) of a frame's origin, in the world's axes."""
    return frame_jacobian.function(model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")


def moving_dofs(model: Model, frame: str) -> set[int]:
    """The velocities that move a frame."""
    tree, place = links_of(model), model.frame(frame)
    links = tree.path(tree.place(place.joint, place.placement)[0])
    return {tree.links[i].v + k for i in links for k in range(tree.links[i].motion.nv)}
