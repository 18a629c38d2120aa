"""Options of `Simulation` and `Ground`: what may touch, how steps are solved, and where the ground is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from delassus.common.checks import (
    TOLERANCES,
    Range,
    boolean,
    check_integer,
    number_in_range,
    one_of,
    positive_number,
)
from delassus.common.options import Options
from delassus.errors import BadArgument, short
from delassus.step.sources.contact import Contact
from delassus.step.stages.types import TOLERANCE

_TOLERANCES: Final = Range(1e-13, 1e-2, "from 1e-13 to 0.01, such as 1e-8", TOLERANCES.code)
"""Those beyond are taken for a mistake."""


_SINGLE_TOLERANCES: Final = Range(1e-6, 1e-2, "from 1e-6 to 0.01 in single precision, such as 1e-4", TOLERANCES.code)

_PRECISIONS: Final = {"float64": (TOLERANCE, _TOLERANCES), "float32": (1e-4, _SINGLE_TOLERANCES)}
"""Default and range of the tolerance for each dtype."""


LAWS: Final = ("rigid", "mujoco")
"""The laws of contact of a simulation."""


_RECORDS: Final = {"states": 1, "replay": 100}
"""What a run keeps, and of how many states one by default."""


@dataclass(frozen=True, eq=False)
class ContactSelection(Options):
    """What may touch, and how many rows a state has.

    Attributes:
        touching: Names or patterns of the collision shapes that may touch the ground, and points by name: a `Contact`
            such as Contact("left_foot", corners=…), with the ground's normal and restitution.
        colliding: Pairs of names or patterns of collision shapes that may touch each other, with the friction and
            restitution that the ground is given: of one robot, of several, or of the world.
        self_collision: Whether moving bodies touch each other as the model's file says, besides those of `colliding`;
            what is fixed to the world is touched as the file says, too.
        max_contacts: How many contacts a state has at most; the nearest are solved for. None for 8, up to 16 where
            many bodies of a robot may touch each other, and for as many as a scene of many free bodies usually has.
        max_limits: How many joints are at their limits at most; 0 for joints without limits.
        joint_friction: Whether joints have their dry friction.
        tracked: Names or patterns of shapes, or names of bodies, of whose contacts each control period keeps mean and
            peak force and air time: sensors "touchmean", "touchpeak", "airtime" of states.
        hull_error: The Hausdorff distance [m] to which the hulls of meshes are simplified, with at most 64 vertices
            each; by default 5 mm or 1 % of a mesh's diagonal, whichever is smaller.

    >>> dl.simulation.ContactSelection(touching="*_foot").touching
    '*_foot'
    """

    touching: str | Contact | Iterable[str | Contact] = "*"
    colliding: Iterable[tuple[str, str]] = ()
    self_collision: bool = True
    max_contacts: int | None = None
    max_limits: int = 4
    joint_friction: bool = True
    hull_error: float | None = None
    tracked: str | Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("joint_friction", "self_collision"):
            object.__setattr__(self, name, boolean(name, getattr(self, name)))
        for name in ("max_contacts", "max_limits"):
            if name == "max_limits" or self.max_contacts is not None:
                object.__setattr__(self, name, check_integer(name, getattr(self, name), 0))
        tracked = (self.tracked,) if isinstance(self.tracked, str) else tuple(self.tracked)
        if not all(isinstance(name, str) for name in tracked):
            raise BadArgument(
                f"tracked is {short(repr(self.tracked))}; it is some names of shapes or bodies.", code="wrong-type"
            )
        object.__setattr__(self, "tracked", tracked)
        if self.hull_error is not None:
            object.__setattr__(self, "hull_error", positive_number("hull_error [m]", self.hull_error))


@dataclass(frozen=True, eq=False)
class Recording(Options):
    """What the log of a run keeps.

    Attributes:
        record: "states", or "replay" for controls, pushes and resets of all periods besides, with which
            `log.explain(item)` makes any item again, to the bit.
        every: Of so many states one is kept, the first and the last among them; None for all, or with "replay" for one
            of a hundred.
    """

    main: ClassVar[str] = "record"
    record: str = "states"
    every: int | None = None

    def __post_init__(self) -> None:
        one_of("record", self.record, _RECORDS)
        if self.every is not None:
            object.__setattr__(self, "every", check_integer("every", self.every))

    @property
    def interval(self) -> int:
        """Of so many states one is kept."""
        return _RECORDS[self.record] if self.every is None else self.every


@dataclass(frozen=True, eq=False)
class StepSolver(Options):
    """The law of contact of a step, and how it is solved.

    Attributes:
        law: "rigid" for Signorini's and Coulomb's laws: nothing penetrates, nothing creeps. "mujoco" for MuJoCo's
            convex model with elliptic cones, in which contacts, limits, dry friction and constraints give way as the
            model's file says by `solref` and `solimp`.
        method: "auto" takes the cheaper of the next two. "dual" is Newton's method on impulses, by the Delassus matrix
            of the motions of bodies. "articulated" is Newton's method on velocities, inside the articulated-body
            recursion: for robots with dry friction in many joints, servos that saturate and limits; one tree
            without closed loops and tendons. "sweeps" are loops over bodies, pairs and contacts, for
            scenes of free bodies alone; "auto" takes it from seven of them on. Or a method of `ContactProblem.solve` on
            the Delassus matrix, such as "pgs", to compare with.
        tolerance: The residual as a share of the velocities involved; "auto" for 1e-8, in single precision 1e-4.
        dtype: np.float64, or np.float32 for steps in single precision, which take twice the states per instruction.
            States and logs stay float64. The law "mujoco", closed loops and scenes of many free bodies need float64.

    The law "mujoco" has one method, Newton's on velocities, which "auto" and "primal" name.

    >>> dl.simulation.StepSolver(method="newton").method
    'newton'
    """

    main: ClassVar[str] = "method"
    method: str = "auto"
    tolerance: float | str = "auto"
    law: str = "rigid"
    dtype: Any = np.float64

    def __post_init__(self) -> None:
        one_of("law", self.law, LAWS)
        object.__setattr__(self, "dtype", _precision(self.dtype))
        if not self._is_automatic:
            allowed = _PRECISIONS[self.dtype.name][1]
            object.__setattr__(self, "tolerance", number_in_range("tolerance", self.tolerance, allowed))

    @property
    def _is_automatic(self) -> bool:
        return isinstance(self.tolerance, str) and self.tolerance == "auto"

    @property
    def effective_tolerance(self) -> float:
        """The tolerance, or the default of the dtype."""
        return _PRECISIONS[self.dtype.name][0] if self._is_automatic else float(self.tolerance)


def _precision(dtype: Any) -> np.dtype[Any]:
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = None
    if known is None or known.name not in _PRECISIONS:
        raise BadArgument(
            f"dtype is {short(repr(dtype))}; a simulation computes in np.float64 or np.float32.", code="wrong-dtype"
        )
    return known


@dataclass(frozen=True, eq=False)
class GroundPlane(Options):
    """A plane.

    Attributes:
        normal: (…, 3) its direction, of any length: (-sin a, 0, cos a) rises along x at the angle a.
        height: (…) its distance from the world's origin along the normal [m].

    >>> dl.simulation.GroundPlane(height=0.1).height
    0.1
    """

    normal: Any = (0.0, 0.0, 1.0)
    height: Any = 0.0


@dataclass(frozen=True, eq=False)
class HeightField(Options):
    """Heights on a grid, instead of a plane.

    Attributes:
        heights: (rows, columns) [m], rows along x and columns along y. A cell is two triangles that share the diagonal
            from its first to its last point.
        spacing: Between its points [m].
        origin: Where its first point is, (x, y) [m]; by default its centre is at the world's origin.

    >>> dl.simulation.HeightField(heights=np.zeros((4, 4)), spacing=0.5).spacing
    0.5
    """

    heights: Any = None
    spacing: float = 0.1
    origin: tuple[float, float] | None = None
