"""The base class of constraints: rows K a = k on accelerations of bodies or joints, and their parameters.

Row r has the target acceleration

    a*_r = acceleration_r - velocity_gain_r · (its velocity) - position_gain_r · (its error of position)

(Baumgarte), and complies by `compliance_r` times its force. A constraint provides, for every body that it acts on, the
coefficients K (rows, 6) of that body's acceleration, and the coefficients of the joints' own accelerations; a row may
have both. The set of bodies and joints is the same in all states; the coefficients depend on the state. The algorithms
use only these rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.common.types import Traced
from delassus.constraints.basis.motions import LinkMotions
from delassus.errors import BadArgument, OutOfRange, WrongShape
from delassus.model.model import Model, ParametricModel
from delassus.model.placement import Placement

PerRow: TypeAlias = float | tuple[float, ...]
"""One value for all rows, or one for each."""

NOT_NEGATIVE: Final = ("position_gain", "velocity_gain", "compliance")
"""Parameters that must not be negative."""


class ConstraintError(BadArgument):
    """A constraint that is empty, inconsistent, or does not fit its model."""


@dataclass(frozen=True, eq=False)
class BodyRows:
    """The rows of a constraint on one body: coefficients `K` (rows, 6) of the link's acceleration, in the axes of the
    link.

    >>> dl.constraints.BodyRows(0, np.eye(6)[:3]).K.shape
    (3, 6)
    """

    link: int
    K: Any


@dataclass(frozen=True, eq=False)
class JointRow:
    """The coefficient `factor` of the velocity with index `v` in row `row` of a constraint.

    >>> dl.constraints.JointRow(row=0, v=2, factor=-1.0).factor
    -1.0
    """

    row: int
    v: int
    factor: Any = 1.0


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """Parameters of any constraint, each one value for all rows or one per row.

    Attributes:
        name: Name of its forces; by default the name of the frame or joint.
        acceleration: Target acceleration [m/s², rad/s²].
        position_gain: Feedback of the position error [1/s²].
        velocity_gain: Feedback of the velocity error [1/s]; 2 √position_gain is critically damped.
        compliance: Acceleration of the row per unit of its force [1/kg, 1/(kg·m²)]. It is physical: unlike the
            `proximal` parameter of the algorithms, iterations do not remove it.

    >>> isinstance(dl.Point("tip"), dl.constraints.Constraint)
    True
    """

    name: str = ""
    acceleration: PerRow = 0.0
    position_gain: PerRow = 0.0
    velocity_gain: PerRow = 0.0
    compliance: PerRow = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ConstraintError(
                f"the name of a constraint is {self.name!r}; it must be a string, such as 'left foot'.",
                code="wrong-type",
            )
        for field in ("acceleration", *NOT_NEGATIVE):
            values = frozen_numbers(f"{field} of {self.label!r}", getattr(self, field))
            if field in NOT_NEGATIVE and np.min(values) < 0.0:
                raise ConstraintError(
                    f"{field} of {self.label!r} is {np.min(values):g}; it must not be negative: the "
                    "constraint would drive the robot away from its reference.",
                    code="out-of-range",
                )
            object.__setattr__(self, field, values)

    def per_row(self, field: str, count: int) -> NDArray[np.float64]:
        """A parameter as one value per row."""
        value = getattr(self, field)
        if isinstance(value, tuple) and len(value) != count:
            raise ConstraintError(
                f"{field} of {self.label!r} has {len(value)} values; it needs one for all rows or one for each of "
                f"its {count}.",
                code="wrong-shape",
            )
        return np.broadcast_to(np.asarray(value, float), count)

    @property
    def label(self) -> str:
        """The name, or that of what it is attached to."""
        raise TypeError(f"{type(self).__name__} has no label.")

    def count(self, model: Model) -> int:
        """The number of rows on this model."""
        raise TypeError(f"{type(self).__name__} has no rows.")

    def bind(self, model: Model) -> Constraint:
        """The constraint on a model, with parameters checked against its rows there."""
        for field in ("acceleration", *NOT_NEGATIVE):
            self.per_row(field, self.count(model))
        return self

    def bind_parametric(self, parametric: ParametricModel) -> Constraint:
        """Bind to a model with run-time parameters; `with_parameters` completes rows that depend on these."""
        return self.bind(parametric.model)

    def with_parameters(self, parameters: Traced) -> Constraint:
        """The constraint with the parameters (nparameters,) of its model, traced or plain."""
        return self

    def links(self, model: Model) -> tuple[int, ...]:
        """The links that it acts on; empty for a constraint on joints. A mechanism checks them."""
        return ()

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The indices of velocities that it acts on; empty for a constraint on bodies. Checked, as `links`."""
        return ()

    def inner(self, model: Model) -> bool:
        """Whether joints that carry all of its bodies never move it: rows of a relative motion, in axes of the
        bodies.
        """
        return False

    def relative(self, model: Model) -> bool:
        """Whether bodies in common free fall do not move it: rows of a relative motion, independent of gravity."""
        return False

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """Its rows on the links that it acts on."""
        return ()

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """Its rows on the velocities that it acts on."""
        return ()

    def attachment(self, model: Model) -> tuple[int, Placement] | None:
        """The link (or the world) on which its force acts, and the placement there; None for a constraint on joints."""
        return None

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """The velocity (rows,) of its reference [m/s, rad/s]; None if the reference rests."""
        return None

    @property
    def has_reference(self) -> bool:
        """Whether it constrains positions or only accelerations."""
        return False

    @property
    def holonomic(self) -> bool:
        """Whether its velocity is the rate of its position error, where that vanishes."""
        return True

    @property
    def holds_positions(self) -> bool:
        """Whether it constrains positions; rows on velocities only do not (see `Nonholonomic`)."""
        return True

    def time_in(self, motions: LinkMotions, moves: bool) -> Traced:
        """The time [s] in a state; required if the constraint moves."""
        if motions.time is not None:
            return motions.time
        if moves:
            raise ConstraintError(
                f"the constraint {self.label!r} moves in time; pass time= [s].",
                code="missing-argument",
            )
        return 0.0

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """The part of its acceleration besides K a (rows,): velocity products of its own."""
        return np.zeros(self.count(motions.model))

    def position_error(self, motions: LinkMotions) -> Traced:
        """Its position error (rows,) [m, rad]; called only where a position gain is not zero."""
        raise TypeError(f"{type(self).__name__} has no reference.")


def frozen_numbers(label: str, value: Any, form: str = "one number, or one per row") -> PerRow:
    """A finite value, or a tuple of them; `form` describes the expected form in errors."""
    array = real_array(label, value, form)
    if array.ndim > 1 or array.size == 0:
        raise WrongShape(f"{label} has shape {array.shape}; it must be {form}.")
    if not np.all(np.isfinite(array)):
        raise OutOfRange(f"{label} is {value!r}; it must be finite.", code="not-finite")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def parse_rows(label: str, rows: str | Iterable[int | str]) -> tuple[int | str, ...]:
    """Rows given by numbers or names, as a tuple; booleans are rejected."""
    try:
        entries = tuple(rows)
    except TypeError:
        raise ConstraintError(
            f"the rows of {label!r} are {rows!r}; they must be numbers or names of rows, such as (0, 2).",
            code="wrong-type",
        ) from None
    indices: list[int | str] = []
    for row in entries:
        if isinstance(row, str):
            indices.append(str(row))
        elif isinstance(row, Real) and not isinstance(row, bool) and row == row // 1 and abs(row) < 2**31:
            indices.append(int(row))
        else:
            raise ConstraintError(
                f"{row!r} is not a row of {label!r}; pass numbers or names of rows.", code="unknown-row"
            )
    return tuple(indices)


def row_indices(label: str, rows: str | Iterable[int | str], names: tuple[str, ...]) -> tuple[int, ...]:
    """Rows given by numbers or names, as indices in the given order."""
    indices = []
    for row in parse_rows(label, rows):
        number = names.index(row) if row in names else row
        if isinstance(number, str) or not 0 <= number < len(names):
            row_list = ", ".join(f"{k} ({name})" for k, name in enumerate(names))
            raise ConstraintError(
                f"the constraint {label!r} has no row {row!r}; its rows are {row_list}.", code="unknown-row"
            )
        indices.append(number)
    if not indices:
        raise ConstraintError(f"the constraint {label!r} has no rows; omit it instead.", code="nothing-to-do")
    if len(set(indices)) < len(indices):
        raise ConstraintError(f"the constraint {label!r} names a row twice: {rows!r}.", code="duplicate-name")
    return tuple(indices)
