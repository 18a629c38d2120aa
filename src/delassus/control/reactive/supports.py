"""Supports: frames in contact with friction, as points or as flat soles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.checks import FRICTIONS, Range, array_of_shape, number_in_range
from delassus.common.types import Traced
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_bias, frame_in_world
from delassus.errors import BadArgument
from delassus.model.model import Model


class ReactiveError(BadArgument):
    """Invalid data of a reactive controller."""


CONES: Final = {"pyramid": math.sqrt(0.5), "outer pyramid": 1.0, "second order": 1.0}
"""Factor of friction: the inner pyramid lies inside the cone, so that its forces do, too."""


_LOADS: Final = Range(0.0, math.inf, "finite and not negative", open_above=True)
_FRICTIONS: Final = Range(0.0, math.inf, "finite and not negative", FRICTIONS.code, open_above=True)


@dataclass(frozen=True)
class Support:
    """A frame of the robot supported by the ground: a point of three rows, or with a size, a sole of six.

    The force of a point has the rows t1, t2, n, the normal last. The wrench of a sole is about the origin and in the
    axes of its frame, whose z is the normal: three forces and three moments.

    Attributes:
        frame: The frame, or its name.
        friction: Coefficient of Coulomb friction.
        size: Length along x and width along y of a sole [m]; the center of pressure stays inside.
        normal: Normal of the ground under a point, in the world.
        torsional: Largest moment about a sole's normal per normal force [m]; by default the friction times a quarter of
            its shorter side.
        least: Lower bound of the normal force [N].
        most: Upper bound of the normal force [N].
        gain: Rate at which a velocity of the frame decays [1/s].

    >>> dl.control.Support("left_foot", friction=0.6).friction
    0.6
    """

    frame: Any
    friction: float = 0.7
    size: tuple[float, float] | None = None
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    torsional: float | None = None
    least: float = 0.0
    most: float = math.inf
    gain: float = 20.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", getattr(self.frame, "name", self.frame))
        for label, within in (("friction", _FRICTIONS), ("gain", _LOADS), ("torsional", _FRICTIONS), ("least", _LOADS)):
            if getattr(self, label) is not None or label != "torsional":
                number_in_range(f"{label} of {self.frame!r}", getattr(self, label), within)
        if not (isinstance(self.most, Real) and self.most >= self.least):
            raise ReactiveError(
                f"{self.frame!r} has least={self.least!r} N and most={self.most!r} N; most must not be below least.",
                code="empty-interval",
            )
        if self.size is not None:
            object.__setattr__(self, "size", self._numbers("size", 2, "a length and a width [m]"))
            if min(self.size) <= 0.0:
                raise ReactiveError(
                    f"the size of {self.frame!r} is {self.size!r}; both sides must be positive.", code="out-of-range"
                )
        object.__setattr__(self, "normal", self._numbers("normal", 3, "a direction in the world"))
        if not any(self.normal):
            raise ReactiveError(
                f"the normal of {self.frame!r} is zero; it must be a direction, such as (0, 0, 1).",
                code="zero-direction",
            )

    def _numbers(self, label: str, count: int, means: str) -> tuple[float, ...]:
        values = array_of_shape(f"{label} of {self.frame!r}", getattr(self, label), (count,), means)
        if not numpy.isfinite(values).all():
            raise ReactiveError(
                f"{label} of {self.frame!r} is {getattr(self, label)!r}; it must be finite.", code="not-finite"
            )
        return tuple(values.tolist())

    @property
    def rows(self) -> int:
        """Three for a point, six for a sole."""
        return 3 if self.size is None else 6

    def motion(self, model: Model, q: Traced, v: Traced) -> tuple[Any, Any]:
        """J (rows, nv), and the target of J a (rows,) that keeps the support at rest."""
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
        """Rows on the force: a name, coefficients (rows,), lower and upper bound."""
        rows: list[tuple[str, list[float], float, float]] = []

        def add(name: str, at: int, limit: float) -> None:
            for sign, mark in ((1.0, "+"), (-1.0, "-")):
                row = [0.0] * self.rows
                row[at], row[2] = sign, -limit
                rows.append((f"{self.frame} {mark}{name}", row, -math.inf, 0.0))

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
        rows.append((f"{self.frame} normal", row, self.least, self.most))
        return rows

    def cone(self) -> list[list[float]]:
        """The rows (3, rows) of t1, t2 and friction times n."""
        rows = [[0.0] * self.rows for _ in range(3)]
        rows[0][0], rows[1][1], rows[2][2] = 1.0, 1.0, self.friction
        return rows
