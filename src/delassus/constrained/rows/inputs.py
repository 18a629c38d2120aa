"""Run-time inputs of the solvers besides the state."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

from delassus.common.checks import TOLERANCES, number_in_range, real_array
from delassus.compiler.host.inputs import Bundle, Input
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import RowTargets
from delassus.errors import BadArgument

SIGNATURE: Final = "(nq),(nv),(nv)->(nv),(m)"
SINGLE: Final = (
    "penalties leave it five digits on a robot that stands on points, and two where a hand is welded or loops are near "
    "singular poses. Take prox_pv or prox_ltl, which have none."
)
"""Remark on single precision for methods with penalties."""


def per_row(name: str, least: float = -numpy.inf) -> Input:
    """An input with one value per row, each at least `least`."""

    def read(mechanism: Mechanism, value: Any) -> Any:
        if type(value) is not numpy.ndarray or value.dtype.kind not in "biuf":
            value = _numbers(name, value)
        shape = value.shape
        if shape and shape[-1] != mechanism.m:
            raise BadArgument(
                f"{name} has shape {shape}; its last axis has one number for each of the {mechanism.m} rows "
                f"({', '.join(mechanism.names)}).",
                code="wrong-shape",
            )
        if least > -numpy.inf and numpy.any(numpy.less(value, least)):
            raise BadArgument(f"{name} is {numpy.min(value):g}; it must not be below {least:g}.", code="out-of-range")
        return value if shape else numpy.full(mechanism.m, value)

    return Input("(m)", read=read)


def _numbers(name: str, value: Any, example: str = "1.0") -> Any:
    return real_array(name, value, f"one number, or one per row, such as {example}")


def not_negative(name: str, most: float = numpy.inf) -> Input:
    """A nonnegative scalar input with an upper bound; NaN is reported by the status."""

    def read(_: Any, value: Any) -> Any:
        values = _numbers(name, value, example="0.0")
        if numpy.any(values < 0.0) or numpy.any(values > most):
            bad = numpy.min(values) if numpy.any(values < 0.0) else numpy.max(values)
            raise BadArgument(
                f"{name} is {bad:g}; it must be not below zero{f', and {most:g} at most' if most < numpy.inf else ''}.",
                code="out-of-range",
            )
        return values

    return Input("()", read=read)


def tolerance_input(usual: float) -> Input:
    """A tolerance; `usual` is a recommended value."""

    def read(_: Mechanism, value: Any) -> Any:
        if type(value) is numpy.ndarray and value.ndim and value.dtype.kind == "f":
            for worst in (value.min(initial=usual), value.max(initial=usual)):
                number_in_range("tolerance", worst, TOLERANCES)
            return value
        return number_in_range("tolerance", value, TOLERANCES)

    return Input("()", read=read)


def read_proximal(mechanism: Mechanism, proximal: Any) -> Any:
    """ε, one value or one per row, checked."""
    # Frequent cases first: every call passes here.
    if type(proximal) is float and 0.0 < proximal < numpy.inf:
        return proximal
    is_valid_array = type(proximal) is numpy.ndarray and proximal.shape == (mechanism.m,) and proximal.dtype == float
    if is_valid_array and proximal.min(initial=1.0) > 0.0 and proximal.max(initial=1.0) < numpy.inf:
        return proximal
    epsilon = _numbers("proximal", proximal, "1e-6")
    if epsilon.ndim and epsilon.shape[-1] != mechanism.m:
        raise BadArgument(
            f"proximal has shape {epsilon.shape}; it must be one number, or one for each of the {mechanism.m} rows.",
            code="wrong-shape",
        )
    valid = (epsilon > 0.0) & numpy.isfinite(epsilon)
    if not numpy.all(valid):
        raise BadArgument(
            f"proximal is {epsilon[~valid].flat[0]:g}; it must be positive and finite. It makes redundant constraints "
            "solvable, and iterations remove its effect: omit it, or use 1e-6 and more iterations instead of 0. A "
            "smaller value converges in fewer iterations and loses digits.",
            code="out-of-range",
        )
    return epsilon if epsilon.ndim else float(epsilon)


TIME: Final = Input("()")
PROXIMAL: Final = Input("(m)", read=read_proximal)
_ROWS: Final = {
    "mask": per_row("mask"),
    "force": per_row("force"),
    "acceleration": per_row("acceleration"),
    "time": TIME,
    "proximal": PROXIMAL,
    "position_gain": per_row("position_gain", 0.0),
    "velocity_gain": per_row("velocity_gain", 0.0),
}


class ConstraintInputs(NamedTuple):
    """Run-time inputs of the rows of a mechanism other than the state; None for the defaults.

    Attributes:
        mask: (m,) nonzero for active rows; by default all.
        force: (m,) initial forces [N, N·m]; by default zero.
        acceleration: (m,) target accelerations of the rows, instead of the constraints' own [m/s², rad/s²].
        time: () [s] time of moving references, required if there are any.
        proximal: (m,) the proximal parameter ε [1/kg, 1/(kg·m²)]; by default a compile-time constant, a fraction of the
            mobility of the rows (see `natural_proximal`).
        position_gain: (m,) Baumgarte's position gains [1/s²], instead of the constraints' own.
        velocity_gain: (m,) velocity gains [1/s], likewise.

    >>> dl.constrained.ConstraintInputs(mask=np.zeros(3)).mask.shape
    (3,)
    """

    mask: Any = None
    force: Any = None
    acceleration: Any = None
    time: Any = None
    proximal: Any = None
    position_gain: Any = None
    velocity_gain: Any = None

    @property
    def targets(self) -> RowTargets:
        """The targets of the rows, which determine the right-hand side."""
        return RowTargets(self.acceleration, self.position_gain, self.velocity_gain)


NO_INPUTS: Final = ConstraintInputs()


def row_inputs(*left_out: str) -> Bundle:
    """The row inputs of a kernel: all except `left_out`."""
    return Bundle(ConstraintInputs, **{name: declared for name, declared in _ROWS.items() if name not in left_out})
