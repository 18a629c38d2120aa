"""A contact point as rows on its two bodies: gap, row velocities, and the point where forces act.

All quantities are in the frame of the plane (t1, t2, n): c is the center of the point's ball (or the point itself), and
d = (0, 0, -r) leads from c to the contact point. The rows are

    ċ + ω × d        (t1, t2, n),        ω        (spin about n; roll about t1 and t2)

where ċ is the rate of these coordinates and ω the angular velocity relative to the plane. The third row is exactly the
rate of the gap c_n - r for any motion of both bodies. The force acts on both bodies at the same point, so its power is
that of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constraints.basis.constraint import BodyRows
from delassus.constraints.basis.frame_constraint import WORLD_FRAME, FrameConstraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.model.model import Model
from delassus.model.parts import WORLD
from delassus.model.placement import Placement
from delassus.spatial.rotations import skew
from delassus.step.sources.contact import Contact

ROWS = (0, 1, 2, 5, 3, 4)
"""Indices of t1, t2, n, spin, roll1, roll2 in x, y, z, rx, ry, rz."""


class Plane(NamedTuple):
    """The frame of a plane in the world: t1, t2, n as columns (3, 3), and its origin (3,) [m]."""

    axes: Any
    origin: Any


class Touch(NamedTuple):
    """A contact point in a state: `turn` rotates vectors of the first link into the plane's frame, in which `center`
    and `offset` are c and d."""

    turn: Any
    center: Any
    offset: Any


@dataclass(frozen=True, kw_only=True)
class ContactPoint(FrameConstraint):
    """The contact of a point of the first frame with the x-y plane of the second.

    Attributes:
        radius: Radius of a ball around the point [m].
        plane: The plane, if it depends on the state; None for that of the second frame.
        midway: Whether the contact point is halfway between the surfaces, instead of on that of the first body.
    """

    radius: float = 0.0
    plane: Any = None
    midway: bool = False

    @property
    def most(self) -> int:
        """The largest number of rows, 6."""
        return 6

    def inner(self, model: Model) -> bool:
        """True: joints that carry both bodies do not change the rows."""
        return True

    def touch(self, motions: LinkMotions) -> Touch:
        """The contact point in the frame of the plane."""
        first, second = self.ends(motions.model)
        P, o = self._plane(motions.model)
        R, p = motions.between(second.link, first.link)
        center = P.T @ (p + R @ np.array(first.placement.p) - o)
        reach = self.radius + (0.5 * (center[2] - self.radius) if self.midway else 0.0)
        return Touch(P.T @ R, center, np.stack([0.0 * reach, 0.0 * reach, -reach]))

    def gap(self, motions: LinkMotions) -> Any:
        """The gap [m], negative if the bodies penetrate."""
        return self.touch(motions).center[2] - self.radius

    def in_world(self, motions: LinkMotions) -> tuple[Any, Any]:
        """t1, t2, n as columns (3, 3), and the contact point (3,) [m], in the world."""
        _, second = self.ends(motions.model)
        P, o = self._plane(motions.model)
        touch = self.touch(motions)
        R, p = motions.in_world(second.link)
        return R @ P, p + R @ (o + P @ (touch.center + touch.offset))

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K of each link: its motion at the contact point, in the axes of the plane."""
        first, second = self.ends(motions.model)
        A, center, offset = self.touch(motions)
        result, none = [], np.zeros((3, 3))
        if first.link != WORLD:
            arm = A @ skew(np.array(first.placement.p)) + skew(offset) @ A
            result.append(BodyRows(first.link, self.select_rows(np.block([[A, -arm], [none, A]]))))
        if second.link != WORLD:
            P, o = self._plane(motions.model)
            at = o + P @ (center + offset)
            K = np.block([[P.T, -P.T @ skew(at)], [none, np.array(P.T)]])
            result.append(BodyRows(second.link, -self.select_rows(K)))
        return tuple(result)

    def velocity_product(self, motions: LinkMotions) -> Any:
        """The velocity product of rows: their acceleration minus K a.

        The second derivative of c is R₂ᵀ (c̈ - c̈₂ - 2 ω₂ × ċ), where c̈₂ is that of the coincident point of the second
        body. Classical accelerations are spatial ones plus ω × v. ω is in the rotating axes of the second body.
        """
        first, second = self.ends(motions.model)
        A, center, offset = self.touch(motions)
        P, o = self._plane(motions.model)
        (v_1, w_1), (v_2, w_2) = motions.velocity_of(first.link), motions.velocity_of(second.link)
        w_1, c_1 = A @ w_1, A @ (v_1 + np.cross(w_1, np.array(first.placement.p)))
        c_2, w_2 = P.T @ (v_2 + np.cross(w_2, o + P @ center)), P.T @ w_2
        slip = c_1 - c_2
        linear = np.cross(w_1, c_1) - np.cross(w_2, c_2) - 2.0 * np.cross(w_2, slip)
        angular = -np.cross(w_2, w_1 - w_2)
        return self.select_rows(np.concatenate([linear + np.cross(angular, offset), angular]))

    def _plane(self, model: Model) -> tuple[Any, Any]:
        """Axes (3, 3) and origin (3,) of the plane in the second link."""
        if self.plane is not None:
            return self.plane.axes, self.plane.origin
        _, second = self.ends(model)
        return second.placement.R, second.placement.p


def contact_points(contact: Contact, midway: bool) -> list[ContactPoint]:
    """The points of a contact, one for each of its corners; `midway` as in `ContactPoint`."""
    axes = contact.axes()
    plane = Placement.of(axes, contact.height * axes[:, 2]) if contact.against == WORLD_FRAME else Placement()
    return [
        ContactPoint(
            contact.frame,
            contact.against,
            rows=ROWS[: contact.rows],
            placement=Placement.of(p=corner),
            placement2=plane,
            radius=contact.radius,
            midway=midway,
            name=contact.label if len(contact.corners) == 1 else f"{contact.label}_{k + 1}",
        )
        for k, corner in enumerate(contact.corners)
    ]
