"""Supports: frames that stand on something, which pushes them with friction: points, and soles that turn as well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_bias, frame_in_world
from delassus.errors import DelassusError
from delassus.model.model import Model


class ReactiveError(DelassusError, ValueError):
    """A reactive controller that cannot be built."""


CONES: Final = {"pyramid": math.sqrt(0.5), "outer pyramid": 1.0, "second order": 1.0}
"""What friction is multiplied with: the pyramid lies inside of the cone, so that its forces are in the cone, too."""


@dataclass(frozen=True)
class Support:
    """A frame of the robot that is held by the ground: a point of three rows, or with a size a sole of six.

    A point's force has the rows t1, t2, n, the normal last. A sole's wrench is about its frame's origin and in its
    frame's axes, whose z is the normal: three forces and three moments.

    Attributes:
        frame: The frame's name.
        friction: Coefficient of Coulomb friction.
        size: Of a sole, its length along x and its width along y [m]; the pressure's centre stays inside of it.
        normal: Of the ground under a point, in the world.
        torsional: The largest moment about a sole's normal per normal force [m]; by default the friction times a
            quarter of its shorter side.
        least: The normal force is at least this [N].
        most: And at most this [N].
        gain: The frame's velocity is taken back at this rate [1/s].
    """

    frame: str
    friction: float = 0.7
    size: tuple[float, float] | None = None
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    torsional: float | None = None
    least: float = 0.0
    most: float = math.inf
    gain: float = 20.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.friction) and self.friction >= 0.0):
            raise ReactiveError(f"the friction of {self.frame!r} is {self.friction!r}; it is finite and not negative.")
        if self.size is not None and not (len(self.size) == 2 and all(0.0 < x < math.inf for x in self.size)):
            raise ReactiveError(f"the size of {self.frame!r} is {self.size!r}; it is a length and a width [m].")
        if not self.least >= 0.0 or not self.most >= 0.0:
            raise ReactiveError(f"{self.frame!r} pushes with {self.least!r} to {self.most!r} N; neither is negative.")
        if self.size is not None:
            object.__setattr__(self, "size", tuple(float(x) for x in self.size))
        object.__setattr__(self, "normal", tuple(float(x) for x in self.normal))

    @property
    def rows(self) -> int:
        """Three of a point, six of a sole."""
        return 3 if self.size is None else 6

    def motion(self, model: Model, q: Any, v: Any) -> tuple[Any, Any]:
        """J (rows, nv), and what J a has to be for the support to stay where it is (rows,)."""
        world = "LOCAL_WORLD_ALIGNED"
        J = frame_jacobian(model, q, frame=self.frame, reference=world)
        bias = frame_bias(model, q, v, frame=self.frame, reference=world)
        if self.size is None:
            axes = numpy.round(contact_axes(numpy.array(self.normal)), 15)
            J, bias = np.array(axes.T) @ J[:3], np.array(axes.T) @ bias[:3]
        else:
            R, _ = frame_in_world(model, q, self.frame)
            J, bias = (np.concatenate([R.T @ x[:3], R.T @ x[3:]]) for x in (J, bias))
        return J, -bias - self.gain * (J @ v)

    def bounds(self, cone: str) -> list[tuple[str, list[float], float, float]]:
        """Rows on the force: a name, numbers (rows,), a lower and an upper bound."""
        found: list[tuple[str, list[float], float, float]] = []

        def add(name: str, at: int, limit: float) -> None:
            for sign, mark in ((1.0, "+"), (-1.0, "-")):
                row = [0.0] * self.rows
                row[at], row[2] = sign, -limit
                found.append((f"{self.frame} {mark}{name}", row, -math.inf, 0.0))

        if cone != "second order":
            share = CONES[cone] * self.friction
            add("friction 1", 0, share)
            add("friction 2", 1, share)
        if self.size is not None:
            length, width = self.size
            torsional = 0.25 * self.friction * min(self.size) if self.torsional is None else self.torsional
            add("pressure y", 3, 0.5 * width)
            add("pressure x", 4, 0.5 * length)
            add("torsion", 5, torsional)
        row = [0.0] * self.rows
        row[2] = 1.0
        found.append((f"{self.frame} normal", row, self.least, self.most))
        return found

    def cone(self) -> list[list[float]]:
        """The rows (3, rows) of t1, t2 and friction times n."""
        rows = [[0.0] * self.rows for _ in range(3)]
        rows[0][0], rows[1][1], rows[2][2] = 1.0, 1.0, self.friction
        return rows
