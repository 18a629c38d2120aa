"""`Push`: external wrenches and velocity changes in a control period."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from delassus.common.checks import array_of_shape
from delassus.errors import expect, short
from delassus.model.parts import WORLD
from delassus.simulation.checks import RunError, SimulationError, fits
from delassus.simulation.setup import Setup
from delassus.step.flags import Mark


@dataclass(frozen=True, eq=False)
class Push:
    """Wrenches on bodies through a control period, and a change of velocity at its beginning.

        sim.step(state, control, push=dl.Push({"trunk": [0, 50, 0, 0, 0, 0]}))

    Attributes:
        wrench: Wrenches (…, 6) by frame name: force [N] and torque [N·m] at the origin of the frame, in world axes. A
            new set of names compiles the step again; new values do not.
        kick: (…, nv) added to the velocity [rad/s, m/s]; None for no change.

    >>> dl.simulation.Push(wrench={"trunk": [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]}).kick is None
    True
    """

    wrench: Mapping[str, ArrayLike] = field(default_factory=dict)
    kick: ArrayLike | None = None


Pushes: TypeAlias = Push | Callable[[Any, Any, Any], Push | None]
"""A push, or a function of times (…), configurations and velocities that returns a push or None."""


def check_push(sim: Setup, push: Any, batch: tuple[int, ...]) -> tuple[tuple[str, ...], Any, Any]:
    """The names of frames, their wrenches (…, frames, 6), and the kick (…, nv) or None."""
    expect("the push", push, Push, 'Push({"trunk": (0, 50, 0, 0, 0, 0)})')
    if not isinstance(push.wrench, Mapping):
        raise SimulationError(
            f"wrench is {short(repr(push.wrench))}; it must map names of frames to wrenches, such as "
            '{"trunk": (0, 50, 0, 0, 0, 0)}.',
            code="wrong-type",
        )
    names, wrenches = tuple(push.wrench), []
    for name, wrench in push.wrench.items():
        if sim.model.frame(name).joint == WORLD:
            raise SimulationError(
                f"the frame {name!r} is fixed to the world; name a frame of a moving body.", code="unknown-frame"
            )
        wrenches.append(_of_items(f"the wrench on {name!r}", wrench, 6, batch))
    kick = None if push.kick is None else _of_items("the kick", push.kick, sim.model.nv, batch)
    stacked = np.stack(np.broadcast_arrays(*wrenches), -2) if wrenches else None
    return names, stacked, kick


def _of_items(what: str, values: Any, size: int, batch: tuple[int, ...]) -> Any:
    x = array_of_shape(what, values, (..., size))
    if not fits(x.shape[:-1], batch):
        raise SimulationError(
            f"{what} has shape {x.shape}; it must broadcast to {(*batch, size)}.", code="batch-mismatch"
        )
    return x


def kicked(v: Any, status: Any, kick: Any) -> tuple[Any, Any]:
    """Velocities (…, nv) after a kick, and status (…). A kick that contains NaN freezes its environment."""
    frozen, status = int(Mark.FROZEN), np.asarray(status).astype(np.int64)
    if not np.isfinite(np.sum(kick)):
        status = np.where(np.isfinite(kick).all(-1), status, status | frozen)
    alive = (status & frozen) == 0
    return (v + kick if alive.all() else np.where(alive[..., None], v + kick, v)), status


def push_at(pushes: Any, time: Any, q: Any, v: Any) -> Any:
    """The push of a period."""
    if not callable(pushes):
        return pushes
    try:
        return pushes(time, q, v)
    except Exception as error:
        now = float(np.max(time, initial=0.0))
        raise RunError(f"push failed at {now:g} s: {type(error).__name__}, {error}", now) from error
