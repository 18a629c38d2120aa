"""Poses of links in their parents, which transform motions, forces and inertias.

A pose is a sequence of steps, from the child's frame to the parent's: turns about an axis, full rotations (of
joints with a quaternion) and shifts. Constants fold, so an identity step costs nothing. Motions and forces
are pairs of a linear and an angular part; inertias are blocks,

    [f]   [M   H] [a]
    [n] = [Hᵀ  I] [α]    at the origin of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import delassus.numpy as np
from delassus.dynamics.tree.sums import at
from delassus.linalg.products import mirror
from delassus.model.links import Link, Links
from delassus.model.motions.moves import Move, Shift, Turn
from delassus.model.placement import Placement
from delassus.model.traced import TracedPlacement
from delassus.spatial import turns
from delassus.spatial.rotations import skew
from delassus.spatial.turns import turn_about_z, zxz

Pair = tuple[Any, Any]
Blocks = tuple[Any, Any, Any]


class Step(Protocol):
    """A part of a pose."""

    def motion_to_child(self, lin: Any, ang: Any) -> Pair:
        """Transform a motion from the outer frame to the inner frame."""

    def motion_to_parent(self, lin: Any, ang: Any) -> Pair:
        """Transform a motion from the inner frame to the outer frame."""

    def force_to_parent(self, f: Any, n: Any) -> Pair:
        """Transform a force and its moment from the inner frame to the outer frame."""

    def inertia_to_parent(self, M: Any, H: Any, I: Any) -> Blocks:
        """Transform an inertia from the inner frame to the outer frame."""

    def rigid_to_parent(self, mass: Any, first: Any, I: Any) -> Blocks:
        """Transform a rigid inertia (mass, first moment, inertia at the origin) from the inner to the outer frame."""

    def compose(self, R: Any, p: Any) -> Pair:
        """Rotation and origin of the inner frame, from those of the outer frame."""


@dataclass(frozen=True)
class TurnStep:
    """A turn about a coordinate axis."""

    by: turns.Turn

    def motion_to_child(self, lin: Any, ang: Any) -> Pair:
        """The motion in the axes of the child: both parts turned back."""
        return turns.turn_back(self.by, lin), turns.turn_back(self.by, ang)

    def motion_to_parent(self, lin: Any, ang: Any) -> Pair:
        """The motion in the axes of the parent: both parts turned."""
        return turns.turn(self.by, lin), turns.turn(self.by, ang)

    force_to_parent = motion_to_parent

    def inertia_to_parent(self, M: Any, H: Any, I: Any) -> Blocks:
        """Turn each block."""
        return turns.turn_matrix(self.by, M), turns.turn_matrix(self.by, H), turns.turn_matrix(self.by, I)

    def rigid_to_parent(self, mass: Any, first: Any, I: Any) -> Blocks:
        """Mass, first moment and inertia in the axes of the parent."""
        return mass, turns.turn(self.by, first), turns.turn_matrix(self.by, I)

    def compose(self, R: Any, p: Any) -> Pair:
        """R · turn: turn the columns."""
        return np.stack([turns.turn_back(self.by, R[k]) for k in range(3)]), p


@dataclass(frozen=True)
class RotationStep:
    """A rotation by a full matrix."""

    R: Any

    def motion_to_child(self, lin: Any, ang: Any) -> Pair:
        """The motion in the axes of the child: Rᵀ of both parts."""
        return self.R.T @ lin, self.R.T @ ang

    def motion_to_parent(self, lin: Any, ang: Any) -> Pair:
        """The motion in the axes of the parent: R times both parts."""
        return self.R @ lin, self.R @ ang

    force_to_parent = motion_to_parent

    def inertia_to_parent(self, M: Any, H: Any, I: Any) -> Blocks:
        """R A Rᵀ for each block."""
        R = self.R
        return mirror(R @ M @ R.T), R @ H @ R.T, mirror(R @ I @ R.T)

    def rigid_to_parent(self, mass: Any, first: Any, I: Any) -> Blocks:
        """Mass, first moment and inertia in the axes of the parent."""
        return mass, self.R @ first, mirror(self.R @ I @ self.R.T)

    def compose(self, R: Any, p: Any) -> Pair:
        """The rotation of the inner frame, R times that of the step."""
        return R @ self.R, p


@dataclass(frozen=True)
class ShiftStep:
    """A translation by p, in the outer frame's axes."""

    p: Any

    def motion_to_child(self, lin: Any, ang: Any) -> Pair:
        """The velocity of another point: lin + ang × p."""
        return lin + np.cross(ang, self.p), ang

    def motion_to_parent(self, lin: Any, ang: Any) -> Pair:
        """The velocity of another point: lin - ang × p."""
        return lin - np.cross(ang, self.p), ang

    def force_to_parent(self, f: Any, n: Any) -> Pair:
        """The moment about another point: n + p × f."""
        return f, n + np.cross(self.p, f)

    def inertia_to_parent(self, M: Any, H: Any, I: Any) -> Blocks:
        """H' = H - M p×, I' = I + p× H' + (p× H)ᵀ."""
        P = skew(self.p)
        H_p = H - M @ P
        return M, H_p, mirror(I + P @ H_p + (P @ H).T)

    def rigid_to_parent(self, mass: Any, first: Any, I: Any) -> Blocks:
        """Parallel axes: I' = I + (h·p + p·h') 1 - (h pᵀ + p h'ᵀ) with h' = h + m p."""
        first_in_parent = first + mass * self.p
        outer = np.outer(first, self.p) + np.outer(self.p, first_in_parent)
        return mass, first_in_parent, mirror(I + (first @ self.p + self.p @ first_in_parent) * np.eye(3) - outer)

    def compose(self, R: Any, p: Any) -> Pair:
        """Shift the origin."""
        return R, p + R @ self.p


@dataclass(frozen=True)
class Pose:
    """A pose: its steps from the child outwards."""

    steps: tuple[Step, ...]

    def motion_to_child(self, lin: Any, ang: Any) -> Pair:
        """Transform a motion from the parent's frame to the child's."""
        for step in reversed(self.steps):
            lin, ang = step.motion_to_child(lin, ang)
        return lin, ang

    def motion_to_parent(self, lin: Any, ang: Any) -> Pair:
        """Transform a motion from the child's frame to the parent's."""
        for step in self.steps:
            lin, ang = step.motion_to_parent(lin, ang)
        return lin, ang

    def force_to_parent(self, f: Any, n: Any) -> Pair:
        """Transform a force from the child's frame to the parent's."""
        for step in self.steps:
            f, n = step.force_to_parent(f, n)
        return f, n

    def inertia_to_parent(self, M: Any, H: Any, I: Any) -> Blocks:
        """Transform an inertia from the child's frame to the parent's."""
        for step in self.steps:
            M, H, I = step.inertia_to_parent(M, H, I)
        return M, H, I

    def rigid_to_parent(self, mass: Any, first: Any, I: Any) -> Blocks:
        """Transform a rigid inertia from the child's frame to the parent's."""
        for step in self.steps:
            mass, first, I = step.rigid_to_parent(mass, first, I)
        return mass, first, I

    def compose(self, R: Any, p: Any) -> Pair:
        """Rotation and origin of the child in any frame, from those of the parent in that frame."""
        for step in reversed(self.steps):
            R, p = step.compose(R, p)
        return R, p


def poses_of(tree: Links, q: Any) -> list[Pose]:
    """The pose of every link in its parent."""
    return [link_pose(link, coordinates(link, q)) for link in tree.links]


def coordinates(link: Link, q: Any) -> list[Any]:
    """The coordinates of a link, with ratio and offset of a mimic joint."""
    return [link.ratio * q[link.q + k] + link.offset for k in range(link.motion.nq)]


def velocities(link: Link, v: Any) -> Any:
    """The velocities (n,) of a link, with the ratio of a mimic joint."""
    return link.ratio * v[at(link)]


def fixed_pose(placement: Placement) -> Pose:
    """The pose of a frame that does not move."""
    gamma, outer = _mount(placement)
    return Pose((TurnStep(gamma), *outer))


def link_pose(link: Link, x: Sequence[Any]) -> Pose:
    """The pose of a link with coordinates x."""
    gamma, outer = _mount(link.placement)
    *inner, outermost = link.motion.moves(x, link.pitch)
    steps = [_step(move) for move in inner]
    if isinstance(outermost, Turn):
        return Pose((*steps, TurnStep(turn_about_z(outermost.angle, gamma)), *outer))
    return Pose((*steps, _step(outermost), TurnStep(gamma), *outer))


def _step(move: Move) -> Step:
    if isinstance(move, Turn):
        return TurnStep((2, np.cos(move.angle), np.sin(move.angle)))
    return ShiftStep(move.p) if isinstance(move, Shift) else RotationStep(move.R)


def _mount(placement: Placement) -> tuple[turns.Turn, tuple[Step, ...]]:
    """A placement as a first turn about z, which merges with a joint about z, and the steps after it.

    A placement that is an input at run time is a full rotation, which is smooth everywhere. Its turns are not: they
    are singular where the rotation maps z to ±z.
    """
    if isinstance(placement, TracedPlacement):
        return (2, 1.0, 0.0), (RotationStep(placement.R), ShiftStep(placement.p))
    alpha, beta, gamma = zxz(placement.R)
    return gamma, (TurnStep(beta), TurnStep(alpha), ShiftStep(placement.p))
