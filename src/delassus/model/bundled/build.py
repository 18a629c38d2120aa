"""Builds models from shapes with masses, which determine the inertias of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from delassus.model.equality import Connect, Equality, WeldEquality
from delassus.model.joints import Free, JointKind, Prismatic, Revolute, Spherical, Universal
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Geometry, Joint, Posture
from delassus.model.placement import HERE, MASSLESS, Inertia, Placement

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
ALONG_X: Final = Placement.from_xyz_rpy(rpy=(0.0, np.pi / 2, 0.0))
"""The rotation from the z axis, along which cylinders lie, to x."""

__all__ = [
    "ALONG_X", "Assembly", "Free", "Part", "Prismatic", "Revolute", "Spherical", "Universal", "X", "Y", "Z",
    "ball", "box", "rod",
]  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A shape on a body, as in `Geometry`, with its mass [kg]."""

    shape: str
    size: tuple[float, ...]
    mass: float
    placement: Placement = HERE

    @property
    def inertia(self) -> Inertia:
        """The inertia of the shape with uniform density, in the body's frame."""
        if self.shape == "box":
            squares = np.square(self.size)
            moments = self.mass / 12 * (squares.sum() - squares)
        elif self.shape == "sphere":
            moments = np.full(3, 0.4 * self.mass * self.size[0] ** 2)
        else:
            radius, length = self.size
            transverse = self.mass * (3 * radius**2 + length**2) / 12
            moments = np.array([transverse, transverse, 0.5 * self.mass * radius**2])
        return Inertia.of(self.mass, rotational=np.diag(moments)).transform(self.placement)


def box(sides: Sequence[float], mass: float, at: Sequence[float] = (0.0, 0.0, 0.0)) -> Part:
    """A box with its center at a point."""
    return Part("box", tuple(map(float, sides)), mass, Placement.of(p=at))


def ball(radius: float, mass: float, at: Sequence[float] = (0.0, 0.0, 0.0)) -> Part:
    """A sphere with its center at a point."""
    return Part("sphere", (radius,), mass, Placement.of(p=at))


def rod(start: Sequence[float], end: Sequence[float], mass: float, radius: float = 0.01) -> Part:
    """A cylinder from one point to another."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(b - a))
    z = (b - a) / length
    x = np.cross(Y, z) if abs(z[1]) < 0.9 else np.cross(X, z)
    x /= np.linalg.norm(x)
    return Part("cylinder", (radius, length), mass, Placement.of(np.stack([x, np.cross(z, x), z], 1), (a + b) / 2))


@dataclass
class Assembly:
    """Builds a model; bodies have names, and parents are added before children."""

    name: str
    joints: list[Joint] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    shapes: list[Geometry] = field(default_factory=list)
    ties: list[Equality] = field(default_factory=list)

    def body(
        self,
        name: str,
        kind: JointKind,
        on: str | None,
        at: Sequence[float] | Placement = (0.0, 0.0, 0.0),
        parts: Sequence[Part] = (),
        limits: tuple[float, float] | None = None,
        effort: float | None = None,
    ) -> None:
        """Add a body on another one (None: the world), with the joint `name` and a link frame of the same name."""
        placement = at if isinstance(at, Placement) else Placement.of(p=at)
        inertia = MASSLESS
        for part in parts:
            inertia = inertia + part.inertia
        self.joints.append(
            Joint(
                f"{name}_joint",
                kind,
                WORLD if on is None else self._index(on),
                placement,
                inertia,
                lower=() if limits is None else (limits[0],),
                upper=() if limits is None else (limits[1],),
                effort_limit=() if effort is None else (effort,),
            )
        )
        index = len(self.joints) - 1
        self.frames.append(Frame(name, index, role="link"))
        for k, part in enumerate(parts):
            for role in ("visual", "collision"):
                self.shapes.append(Geometry(f"{name}_{k}", index, part.placement, part.shape, part.size, role))

    def frame(self, name: str, on: str | None, at: Sequence[float] | Placement = (0.0, 0.0, 0.0)) -> None:
        """Add a named frame on a body, or on the world."""
        placement = at if isinstance(at, Placement) else Placement.of(p=at)
        self.frames.append(Frame(name, WORLD if on is None else self._index(on), placement))

    def connect(self, name: str, one: str, other: str) -> None:
        """Close a loop: the origins of two frames coincide."""
        self.ties.append(Connect(name, one, other))

    def weld(self, name: str, one: str, other: str) -> None:
        """Close a loop: two frames coincide."""
        self.ties.append(WeldEquality(name, one, other))

    def model(self, home: Sequence[float] | None = None) -> Model:
        """Create the model; `home` is a configuration with closed loops, or a stance."""
        postures = () if home is None else (Posture("home", tuple(float(x) for x in home)),)
        return Model(
            self.name,
            tuple(self.joints),
            tuple(self.frames),
            geometries=tuple(self.shapes),
            constraints=tuple(self.ties),
            postures=postures,
        )

    def _index(self, body: str) -> int:
        return next(i for i, joint in enumerate(self.joints) if joint.name == f"{body}_joint")
