"""Options of `Simulation` and `Ground`: what a log contains, how steps are solved, and where the ground is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from delassus.common.checks import (
    TOLERANCES,
    Range,
    check_integer,
    number_in_range,
    one_of,
)
from delassus.common.options import Options
from delassus.errors import BadArgument, short
from delassus.step.stages.types import TOLERANCE

_TOLERANCES: Final = Range(1e-13, 1e-2, "from 1e-13 to 0.01, such as 1e-8", TOLERANCES.code)
"""Tolerances outside this range are refused as mistakes."""


_SINGLE_TOLERANCES: Final = Range(1e-6, 1e-2, "from 1e-6 to 0.01 in single precision, such as 1e-4", TOLERANCES.code)

_PRECISIONS: Final = {"float64": (TOLERANCE, _TOLERANCES), "float32": (1e-4, _SINGLE_TOLERANCES)}
"""Default and range of the tolerance for each dtype."""


LAWS: Final = ("rigid", "mujoco")
"""The laws of contact of a simulation."""


_RECORDS: Final = {"states": 1, "replay": 100}
"""Values of `record`, with the default interval between recorded states."""


@dataclass(frozen=True, eq=False)
class Recording(Options):
    """Contents of the log of a run.

    Attributes:
        record: "states", or "replay" to record controls, pushes and resets of all periods as well. With these,
            `log.explain(item)` can replay any environment bit for bit.
        every: Interval between recorded states, in control periods. The first and the last state are always recorded.
            None for 1, or with "replay" for 100.

    >>> dl.simulation.Recording(record="replay").interval
    100
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
        """Control periods between two recorded states."""
        return _RECORDS[self.record] if self.every is None else self.every


@dataclass(frozen=True, eq=False)
class StepSolver(Options):
    """The contact law of a step, and its solver.

    Attributes:
        law: "rigid" for Signorini's and Coulomb's laws, without penetration and creep. "mujoco" for MuJoCo's
            convex model with elliptic cones, in which `solref` and `solimp` of the model's file determine the
            compliance of contacts, limits, joint friction and constraints.
        method: "auto" selects the cheaper of the next two. "dual" is Newton's method on impulses, with the Delassus
            matrix of the motions of bodies. "articulated" is Newton's method on velocities, inside the articulated-body
            recursion: for robots with friction in many joints, saturating servos and joint limits, and a single tree
            without closed loops and tendons. "sweeps" loops over bodies, pairs and contacts, for
            scenes of free bodies only; "auto" selects it from seven bodies on. Any method of `ContactProblem.solve`,
            such as "pgs", is also available, for comparison.
        tolerance: Residual as a fraction of the velocities involved; "auto" for 1e-8, in single precision 1e-4.
        dtype: np.float64, or np.float32 for steps in single precision, which take twice the states per instruction.
            States and logs stay float64. The law "mujoco", closed loops and scenes of many free bodies need float64.

    The law "mujoco" has one method, Newton's on velocities; "auto" and "primal" both select it.

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
        precision = np.dtype(dtype)
    except TypeError:
        precision = None
    if precision is None or precision.name not in _PRECISIONS:
        raise BadArgument(
            f"dtype is {short(repr(dtype))}; a simulation computes in np.float64 or np.float32.", code="wrong-dtype"
        )
    return precision


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
        spacing: Distance between neighboring points [m]; a pair for x and y.
        origin: Position (x, y) of its first point [m]; by default its center is at the world's origin.

    >>> dl.simulation.HeightField(heights=np.zeros((4, 4)), spacing=0.5).spacing
    0.5
    """

    heights: Any = None
    spacing: float | tuple[float, float] = 0.1
    origin: tuple[float, float] | None = None
