"""What the solvers can be given besides a state: numbers to be tuned, which compile nothing again."""

from __future__ import annotations

from typing import Any, Final

import numpy

from delassus.common.checks import TOLERANCES, number_in_range, real_array
from delassus.compiler.host.inputs import Input
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import BadArgument

SIGNATURE: Final = "(nq),(nv),(nv)->(nv),(m)"
SINGLE: Final = (
    "penalties leave it five digits on a robot that stands on points, and two where a hand is welded or loops are near "
    "singular poses. Take prox_pv or prox_ltl, which have none."
)
"""What single precision means to the methods with penalties."""


def per_row(name: str, least: float = -numpy.inf) -> Input:
    """An input with a number for each row, which is not below the least."""

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
    """An input of one number, which is not below zero and not beyond the most; NaN is told by the status."""

    def read(_: Any, value: Any) -> Any:
        numbers = _numbers(name, value, example="0.0")
        if numpy.any(numbers < 0.0) or numpy.any(numbers > most):
            bad = numpy.min(numbers) if numpy.any(numbers < 0.0) else numpy.max(numbers)
            raise BadArgument(
                f"{name} is {bad:g}; it is not below zero{f', and {most:g} at most' if most < numpy.inf else ''}.",
                code="out-of-range",
            )
        return numbers

    return Input("()", read=read)


def tolerance_input(usual: float) -> Input:
    """A tolerance; `usual` is the one to take where in doubt."""

    def read(_: Mechanism, value: Any) -> Any:
        if type(value) is numpy.ndarray and value.ndim and value.dtype.kind == "f":
            for worst in (value.min(initial=usual), value.max(initial=usual)):
                number_in_range("tolerance", worst, TOLERANCES)
            return value
        return number_in_range("tolerance", value, TOLERANCES)

    return Input("()", read=read)


def read_proximal(mechanism: Mechanism, proximal: Any) -> Any:
    """ε, one number or one per row, checked."""
    # Short ways first: every call comes here.
    if type(proximal) is float and 0.0 < proximal < numpy.inf:
        return proximal
    usual = type(proximal) is numpy.ndarray and proximal.shape == (mechanism.m,) and proximal.dtype == float
    if usual and proximal.min(initial=1.0) > 0.0 and proximal.max(initial=1.0) < numpy.inf:
        return proximal
    epsilon = _numbers("proximal", proximal, "1e-6")
    if epsilon.ndim and epsilon.shape[-1] != mechanism.m:
        raise BadArgument(
            f"proximal has shape {epsilon.shape}; it is one number, or one for each of the {mechanism.m} rows.",
            code="wrong-shape",
        )
    fine = (epsilon > 0.0) & numpy.isfinite(epsilon)
    if not numpy.all(fine):
        raise BadArgument(
            f"proximal is {epsilon[~fine].flat[0]:g}; it must be positive and finite. It is what makes redundant "
            "constraints solvable, and iterations remove its effect: leave it out, or take 1e-6 and more iterations, "
            "rather than 0. A smaller one converges in fewer iterations and loses digits.",
            code="out-of-range",
        )
    return epsilon if epsilon.ndim else float(epsilon)


TIME: Final = Input("()")
PROXIMAL: Final = Input("(m)", read=read_proximal)
ROW_INPUTS: Final = {
    "mask": per_row("mask"),
    "force": per_row("force"),
    "acceleration": per_row("acceleration"),
    "time": TIME,
    "proximal": PROXIMAL,
    "position_gain": per_row("position_gain", 0.0),
    "velocity_gain": per_row("velocity_gain", 0.0),
}
"""Optional inputs of all methods: by row, not zero where it acts, the force to start from, its desired acceleration;
the time that references move with; by row, the proximal parameter and the gains of Baumgarte."""
