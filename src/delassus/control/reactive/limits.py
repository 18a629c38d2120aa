"""Limits as rows on x = (a, f): forces of actuators, and accelerations that keep joints within their ranges.

A joint that is at q with velocity v, and accelerates by a for a time T, is within its limits then if

    lower ≤ q + T v + ½ T² a ≤ upper,    -v_max ≤ v + T a ≤ v_max,

and where both cannot be, the velocity's limit is the one that holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.control.reactive.situation import Situation

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import Actuated
    from delassus.control.reactive.control import ReactiveControl
    from delassus.model.model import Model
    from delassus.model.transmission import Actuator


class Rows(NamedTuple):
    """Rows (k, n), their bounds (k,) and (k,)."""

    C: Any
    lower: Any
    upper: Any


def torque_limits(actuated: Actuated) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """(nu,) the least and the largest force of each actuator [N·m, N], infinite where nobody says.

    That of its joints counts, its own range of forces, and for a motor that of its controls.
    """
    model, B = actuated.mechanism.plain.model, actuated.B
    effort = numpy.asarray(model.effort_limit)
    most = numpy.full(actuated.nu, numpy.inf)
    for v, k in numpy.argwhere(B):
        most[k] = min(most[k], effort[v] / abs(B[v, k]))
    lower, upper = -most, most.copy()
    known = {actuator.name: actuator for actuator in model.actuators}
    for k, name in enumerate(actuated.names):
        for low, high in _forces(known[name]) if name in known else ():
            lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
    return lower, upper


def _forces(actuator: Actuator) -> list[tuple[float, float]]:
    """The ranges of an actuator's force."""
    gain, *rest = actuator.gain
    found = [actuator.force_range] if actuator.force_range else []
    if actuator.control_range and not any((*rest, *actuator.bias)):
        found.append(tuple(gain * u for u in actuator.control_range))
    return [(min(ends), max(ends)) for ends in found]


def limited_joints(model: Model) -> list[tuple[str, int, int]]:
    """Name, coordinate and velocity of joints with one coordinate and limits of position or velocity."""
    found = []
    for joint, i, j in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if joint.mimic is None and joint.kind.nq == joint.kind.nv == 1:
            limits = (model.lower[i], model.upper[i], model.velocity_limit[j])
            if any(numpy.isfinite(x) for x in limits):
                found.append((joint.name, i, j))
    return found


def row_names(control: ReactiveControl) -> list[str]:
    """Names of the rows of C, in the order of `rows_of`."""
    names = [name for support in control.supports for name, *_ in support.bounds(control.cone)]
    names += [f"{control.actuated.names[k]} torque" for k in control.limited_torques]
    return names + [f"{name} range" for name, _, _ in control.limited_joints]


def rows_of(s: Situation) -> Rows:
    """All rows of C and their bounds."""
    control = s.control
    parts = [_supports(control)]
    if control.limited_torques:
        own = list(control.limited_torques)
        U, u0 = s.torque
        lower, upper = numpy.array(control.torque_limit)[:, own]
        parts.append(Rows(U[own], lower - u0[own], upper - u0[own]))
    if control.limited_joints:
        parts.append(_ranges(s))
    return Rows(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _supports(control: ReactiveControl) -> Rows:
    rows, lower, upper = [], [], []
    for support in control.supports:
        at = control.force_slices[support.frame]
        for _, numbers, low, high in support.bounds(control.cone):
            row = [0.0] * control.n
            row[control.nv + at.start : control.nv + at.stop] = numbers
            rows.append(row)
            lower.append(low)
            upper.append(high)
    return Rows(np.array(numpy.array(rows).reshape(-1, control.n)), np.array(lower), np.array(upper))


def _ranges(s: Situation) -> Rows:
    control, T = s.control, s.control.horizon
    rows, lower, upper = [], [], []
    for _, i, j in control.limited_joints:
        row = [0.0] * control.n
        row[j] = 1.0
        rows.append(row)
        model = control.plain
        ahead, most = s.q[i] + T * s.v[j], model.velocity_limit[j]
        low, high = 2.0 * (model.lower[i] - ahead) / T**2, 2.0 * (model.upper[i] - ahead) / T**2
        # A joint beyond its range, or about to be, comes back, but no faster than it may.
        slowest, fastest = (-most - s.v[j]) / T, (most - s.v[j]) / T
        lower.append(np.clip(low, slowest, fastest))
        upper.append(np.clip(high, slowest, fastest))
    return Rows(np.array(rows), np.stack(lower), np.stack(upper))


def cones_of(control: ReactiveControl) -> Any:
    """K (cone rows, n) of friction."""
    rows = []
    for support in control.supports if control.cone == "second order" else ():
        at = control.force_slices[support.frame]
        for numbers in support.cone():
            row = [0.0] * control.n
            row[control.nv + at.start : control.nv + at.stop] = numbers
            rows.append(row)
    return np.array(numpy.array(rows).reshape(-1, control.n))
