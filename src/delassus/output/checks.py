"""Checks of the fields of a trajectory: arrays with the same times and environments, of the sizes of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.common.frozen import read_only
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import NotANumber, expect, short
from delassus.model.model import Model, ParametricModel
from delassus.output.contacts import ContactRecord
from delassus.output.errors import TrajectoryError

ARRAYS: Final = ("time", "q", "v", "status", "ended", "steps", "rejected", "residual")
"""Fields of every trajectory."""

MEASURES: Final = ("energy", "drift", "velocity_drift")
"""Fields that are computed from states and the mechanism."""

_WHOLE: Final = ("status", "steps", "rejected")
_AT_TIMES: Final = ("status", "residual")
"""Fields of simulations with a time axis."""

_CARRIED: Final = ("activation", "tally", "memory")
"""Vectors of each environment at each time, which simulations carry from step to step."""


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a trajectory as read-only arrays; raises an error unless they fit together."""
    time, q, v = (_numbers(name, fields[name]) for name in ("time", "q", "v"))
    if time.ndim != 1 or not len(time) or not np.isfinite(time).all() or np.any(np.diff(time) < 0.0):
        raise TrajectoryError(
            f"time has shape {time.shape}; it must be a list of finite times that do not decrease.",
            code="not-increasing",
        )
    batch = q.shape[1:-1]
    if q.ndim < 2 or q.shape[0] != len(time):
        raise TrajectoryError(
            f"q has shape {q.shape}; with {len(time)} times it must be ({len(time)}, …, nq).", code="wrong-shape"
        )
    if v.shape[:-1] != q.shape[:-1]:
        raise TrajectoryError(
            f"v has shape {v.shape}, and q {q.shape}: they must have the same times and environments.",
            code="wrong-shape",
        )
    parts: dict[str, Any] = {"time": time, "q": q, "v": v}
    contacts = fields["contacts"]
    defaults = {"status": 0, "ended": time[-1], "steps": len(time) - 1, "rejected": 0, "residual": 0.0}
    for name, value in defaults.items():
        given = fields[name]
        at_times = [(len(time), *batch)] if name in _AT_TIMES else []
        shapes = at_times if contacts is not None and at_times else [batch, *at_times]
        parts[name] = np.full(shapes[0], value) if given is None else _numbers(name, given, name in _WHOLE)
        _fits(name, parts[name], *shapes)
    for name, shape in (("events", (len(time) - 1, *batch)), ("measures", (len(time), *batch))):
        parts[name] = {
            key: read_only(_fits(key, _numbers(key, x), shape)) for key, x in _check_names(name, fields[name]).items()
        }
    if fields["parameters"] is not None:
        _check_parameters(fields["parameters"], batch)
    parts["mechanism"] = mechanism = mechanism_of(fields["mechanism"], q.shape[-1], v.shape[-1])
    if mechanism is not None and fields["parameters"] is not None:
        _check_nparameters(mechanism, np.shape(fields["parameters"])[-1])
    for name in _CARRIED:
        if fields[name] is not None:
            parts[name] = _numbers(name, fields[name])
            _fits(name, parts[name], (*q.shape[:-1], *parts[name].shape[-1:]))
    if contacts is not None:
        _check_contacts(contacts, q.shape[:-1])
        impulse, contact = read_only(contacts.impulse), read_only(contacts.contact)
        parts["contacts"] = replace(contacts, impulse=impulse, contact=contact)
    return {name: read_only(x) if isinstance(x, np.ndarray) else x for name, x in parts.items()}


def mechanism_of(system: Any, nq: int, nv: int) -> Mechanism | None:
    """The mechanism of a motion with these sizes; a model is converted."""
    mechanism = Mechanism(system) if isinstance(system, (Model, ParametricModel)) else system
    if mechanism is None:
        return None
    if not isinstance(mechanism, Mechanism):
        raise TrajectoryError(
            f"a trajectory needs a Mechanism, a Model or a Simulation, not {type(system).__name__}.",
            code="wrong-type",
        )
    if (nq, nv) != (mechanism.nq, mechanism.nv):
        raise TrajectoryError(
            f"the trajectory has nq {nq} and nv {nv}; the mechanism has {mechanism.nq} and {mechanism.nv}.",
            code="other-system",
        )
    return mechanism


def _numbers(name: str, value: Any, is_integer: bool = False) -> NDArray[Any]:
    label = f"{name} of a trajectory"
    array = real_array(label, value, "an array of real numbers")
    if is_integer and np.asarray(value).dtype.kind not in "biu":
        raise NotANumber(
            f"{label} is {short(repr(value))}; it must be an array of integers.", code="not-a-whole-number"
        )
    return array.astype(np.int64) if is_integer else array


def _fits(name: str, array: NDArray[Any], *shapes: tuple[int, ...]) -> NDArray[Any]:
    if array.shape not in shapes:
        forms = " or ".join(map(str, shapes))
        raise TrajectoryError(
            f"{name} of a trajectory has shape {array.shape}; with these q it must be {forms}.", code="wrong-shape"
        )
    return array


def _check_names(name: str, values: Any) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise TrajectoryError(
            f"{name} of a trajectory is {short(repr(values))}; it must be a mapping of names to arrays.",
            code="wrong-type",
        )
    return values


def _check_parameters(parameters: Any, batch: tuple[int, ...]) -> None:
    shape = _numbers("parameters", parameters).shape
    try:
        fits = bool(shape) and np.broadcast_shapes(shape[:-1], batch) == batch
    except ValueError:
        fits = False
    if not fits:
        raise TrajectoryError(
            f"parameters of a trajectory have shape {shape}, which does not fit its batch {batch}.",
            code="batch-mismatch",
        )


def _check_nparameters(mechanism: Mechanism, count: int) -> None:
    parametric = getattr(mechanism, "parametric", None)
    most = 0 if parametric is None else parametric.nparameters
    if count != most:
        raise TrajectoryError(
            f"the trajectory has {count} parameters for each environment; the mechanism has {most}.",
            code="other-system",
        )


def _check_contacts(record: Any, axes: tuple[int, ...]) -> None:
    expect("contacts of a trajectory", record, ContactRecord, "log.contacts of a simulation")
    for name in ("impulse", "contact"):
        shape = np.shape(getattr(record, name))
        if shape[:-1] != axes or not shape:
            raise TrajectoryError(
                f"{name} of contacts has shape {shape}; with these q it is {axes} and one axis more.",
                code="wrong-shape",
            )
    rows, m = record.rows * record.slots, record.impulse.shape[-1]
    if record.rows not in (3, 4, 6) or rows > m:
        raise TrajectoryError(
            f"impulses of {m} rows do not fit contacts in {record.slots} slots of {record.rows} rows each, which must "
            "be 3, 4 or 6.",
            code="wrong-shape",
        )
