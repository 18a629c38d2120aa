"""The motions of links near a state: what derivatives of constraints are taken of.

A constraint sees its bodies by their poses and velocities. If these are displaced one by one, by a small motion x of a
link in its own axes, the derivatives are those of a short function, whatever the depth of the tree that moves the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from delassus.constraints.motions import LinkMotions
from delassus.dynamics.poses import Pair
from delassus.spatial.rotations import skew


@dataclass(frozen=True)
class Displaced(LinkMotions):
    """Motions whose links are displaced by x (6,) [m, rad], by link, to first order: T (1 + x×) takes T's place."""

    shifts: Mapping[int, Any] | None = None

    @classmethod
    def near(cls, motions: LinkMotions, shifts: Mapping[int, Any], velocities: Mapping[int, Any]) -> Displaced:
        """Displaced links, and velocities (6,) of links in the place of theirs."""
        same = {field.name: getattr(motions, field.name) for field in fields(LinkMotions)}
        moved = [velocities.get(i) for i in range(len(motions.velocity))]
        same["velocity"] = [
            old if new is None else (new[:3], new[3:]) for old, new in zip(motions.velocity, moved, strict=True)
        ]
        return cls(**same, shifts=shifts)

    def in_world(self, link: int) -> Pair:
        """Rotation and origin of a link in the world."""
        return self._outer(*super().in_world(link), link)

    def between(self, first: int, second: int) -> Pair:
        """Rotation and origin of the second link (or the world) in the first."""
        R, p = self._outer(*super().between(first, second), second)
        x = (self.shifts or {}).get(first)
        if x is None:
            return R, p
        turn = skew(x[3:])
        return R - turn @ R, p - x[:3] - turn @ p

    def _outer(self, R: Any, p: Any, link: int) -> Pair:
        """A link's pose, displaced in the link's own axes."""
        x = (self.shifts or {}).get(link)
        return (R, p) if x is None else (R + R @ skew(x[3:]), p + R @ x[:3])
