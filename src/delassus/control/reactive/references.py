"""References of tasks, packed into one array as an input of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.compiler.tracing.trace import trace_of
from delassus.control.reactive.supported import SupportedRobot
from delassus.control.reactive.supports import ReactiveError
from delassus.control.reactive.task import Task


def rest_of(control: SupportedRobot, tasks: tuple[Task, ...], q: Any) -> dict[str, Any]:
    """All parts of a reference by name, with values that keep the robot at rest at a configuration q (nq,)."""
    parts: dict[str, Any] = {}
    for task in tasks:
        for field, value in task.rest(control.plain, q, control.sizes).items():
            parts[f"{task.name}.{field}"] = value
        parts[f"{task.name}.weight"] = np.ones(1)
    for support in control.supports:
        parts[f"{support.frame}.active"] = np.ones(1)
    if control.moves:
        parts["time"] = np.zeros(1)
    return parts


def reference_of(control: SupportedRobot, tasks: tuple[Task, ...], q: Any, changed: Mapping[str, Any]) -> Any:
    """A reference (…, references) that keeps the robot at rest at a configuration q (nq,), with changed parts."""
    parts = list(rest_of(control, tasks, control.plain.neutral()))
    for name in changed:
        if name not in parts:
            raise UnknownName("part of the reference", name, parts, code="unknown-name")
    q = numpy.asarray(q, float)
    if q.shape != (control.nq,):
        raise ReactiveError(
            f"q has shape {q.shape}; a configuration of {control.model.name!r} is ({control.nq},).", code="wrong-shape"
        )
    defaults = {
        name: numpy.atleast_1d(numpy.asarray(value, float)) for name, value in rest_of(control, tasks, q).items()
    }
    if trace_of(tuple(changed.values())) is not None:
        traced = [np.zeros(len(value)) + changed.get(name, value) for name, value in defaults.items()]
        return np.concatenate(traced) if traced else np.zeros(0)
    values = {}
    for name, value in defaults.items():
        part = numpy.asarray(changed.get(name, value), float)
        part = part[..., None] if part.ndim == 0 else part
        if part.shape[-1] not in (1, len(value)):
            raise ReactiveError(
                f"{name} has shape {part.shape}; its last axis must have {len(value)} values.", code="wrong-shape"
            )
        values[name] = part
    batch = numpy.broadcast_shapes(*(x.shape[:-1] for x in values.values()))
    parts_list = [numpy.broadcast_to(x, (*batch, len(defaults[name]))) for name, x in values.items()]
    return numpy.concatenate(parts_list, -1) if parts_list else numpy.zeros(0)
