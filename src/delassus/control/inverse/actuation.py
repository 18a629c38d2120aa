"""The actuation matrix B from a matrix, joint names or actuators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import elements
from delassus.common.names import find_by_pattern
from delassus.errors import BadArgument, short
from delassus.model.model import Model
from delassus.model.transmission import Actuator
from delassus.step.actuators.checks import check_actuators, driving_terms

Floats: TypeAlias = NDArray[np.float64]


class ActuationError(BadArgument):
    """Invalid actuators."""


Actuation: TypeAlias = str | Actuator | Iterable[str] | Iterable[Actuator] | ArrayLike
"""The actuators of a robot: names or patterns of joints, `Actuator`s, or a matrix B (nv, nu)."""


def read_actuation(model: Model, actuation: Any) -> tuple[Floats, tuple[str, ...]]:
    """B (nv, nu), and names of the actuators."""
    if actuation is None and model.actuators:
        actuation = model.actuators
    if actuation is None:
        return _of_velocities(model, model.actuated_velocities)
    if isinstance(actuation, str):
        actuation = (actuation,)
    if isinstance(actuation, Actuator):
        actuation = (actuation,)
    entries = list(elements(actuation)) if isinstance(actuation, Iterable) else []
    if entries and all(isinstance(x, Actuator) for x in entries):
        return _of_actuators(model, entries)
    if entries and all(isinstance(x, str) for x in entries):
        return _of_velocities(model, _velocities(model, entries))
    return _of_matrix(model, actuation)


def _of_matrix(model: Model, actuation: Any) -> tuple[Floats, tuple[str, ...]]:
    try:
        B = np.array(actuation, float)
    except (TypeError, ValueError, OverflowError):
        raise ActuationError(
            f"actuation is {short(repr(actuation))}; it must be a matrix ({model.nv}, nu), names of joints, or "
            "actuators.",
            code="wrong-type",
        ) from None
    if B.ndim != 2 or len(B) != model.nv:
        raise ActuationError(
            f"actuation has shape {B.shape}; it must have a row for each of the {model.nv} velocities of "
            f"{model.name!r} and a column for each actuator: ({model.nv}, nu). Alternatively pass names of joints.",
            code="wrong-shape",
        )
    if not np.all(np.isfinite(B)):
        raise ActuationError("actuation has elements that are not finite numbers.", code="not-finite")
    return B, tuple(f"actuator {k}" for k in range(B.shape[1]))


def _of_velocities(model: Model, indices: Sequence[int]) -> tuple[Floats, tuple[str, ...]]:
    B = np.zeros((model.nv, len(indices)))
    B[list(indices), range(len(indices))] = 1.0
    return B, tuple(_name_of(model, v) for v in indices)


def _of_actuators(model: Model, actuators: Sequence[Actuator]) -> tuple[Floats, tuple[str, ...]]:
    check_actuators(model, tuple(actuators), only_affine=True)
    B = np.zeros((model.nv, len(actuators)))
    for k, actuator in enumerate(actuators):
        for name, gear in driving_terms(model, actuator):
            B[model.v_slice(name).start, k] += gear
    return B, tuple(actuator.name for actuator in actuators)


def _velocities(model: Model, patterns: Sequence[str]) -> list[int]:
    """The velocities of joints by names or patterns, in the given order."""
    independent = [joint for joint in model.joints if joint.mimic is None]
    indices: list[int] = []
    for pattern in patterns:
        for joint in find_by_pattern("joint", pattern, independent, code="unknown-joint"):
            at = model.v_slice(joint.name)
            indices += [v for v in range(at.start, at.stop) if v not in indices]
    return indices


def _name_of(model: Model, v: int) -> str:
    for joint, start in zip(model.joints, model.v_starts, strict=True):
        if joint.mimic is None and start <= v < start + joint.kind.nv:
            return joint.name if joint.kind.nv == 1 else f"{joint.name} {v - start}"
    raise ActuationError(f"the velocity {v} has no joint.", code="index-out-of-range")
