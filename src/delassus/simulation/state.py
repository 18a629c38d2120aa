"""`State`: all that a simulation needs to go on, to the bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import array_of_shape, real_array, whole_number
from delassus.errors import short
from delassus.output.trajectory import Moment, Trajectory
from delassus.simulation.checks import SimulationError
from delassus.step.marks import Mark, described

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """One item or a batch of them, at a time.

    Attributes:
        q: (…, nq) configurations [rad, m].
        v: (…, nv) velocities [rad/s, m/s].
        time: [s].
        impulse: (…, m) impulses of the last step of time [N·s, N·m·s], from which the next solve starts: t1, t2, n of
            each contact slot (and moments about n, t1, t2 where there is torsional or rolling friction), then
            constraints, joint limits, dry friction.
        contact: (…, slots) numbers of the candidates that have the slots.
        residual: (…) the largest residual of a row of the contact problem [m/s].
        status: (…) marks that add up, see `Mark`; zero if all went well.
        count: How many control periods have been simulated.
        seed: Of the stream of random numbers, for controllers that draw some: with `count`, they go on where they were.
        activation: (…, na) of actuators that have a state, in their order; empty without.
    """

    q: Array
    v: Array
    time: float
    impulse: Array
    contact: Array
    residual: Array
    status: NDArray[np.int64]
    count: int = 0
    seed: int = 0
    activation: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        arrays: dict[str, Any] = {}
        for name in ("q", "v", "impulse", "contact", "residual", "status"):
            arrays[name] = real_array(f"{name} of a state", getattr(self, name))
        batch = arrays["q"].shape[:-1]
        activation = real_array("activation of a state", self.activation)
        arrays["activation"] = np.zeros((*batch, 0)) if activation.shape == (0,) else activation
        for name, array in arrays.items():
            core = "" if name in ("residual", "status") else f"n_{name}"
            if (array.shape[:-1] if core else array.shape) != batch or (core and not array.ndim):
                raise SimulationError(
                    f"{name} of a state has shape {array.shape}, and q has {arrays['q'].shape}: with the items {batch} "
                    f"it is ({', '.join(filter(None, (*map(str, batch), core)))}).",
                    code="wrong-shape",
                )
        if np.asarray(self.status).dtype.kind not in "iu":
            raise SimulationError(
                f"status of a state is {short(repr(self.status))}; it is whole numbers, see `Mark`.",
                code="not-a-whole-number",
            )
        arrays["status"] = np.asarray(self.status).astype(np.int64, copy=False)
        arrays["time"] = float(array_of_shape("time of a state", self.time, (), "one number [s]"))
        for name in ("count", "seed"):
            arrays[name] = whole_number(f"{name} of a state", getattr(self, name), 0)
        vars(self).update(arrays)

    @classmethod
    def unchecked(cls, **parts: Any) -> State:
        """One whose parts are known to fit: a check takes as long as a step."""
        state = cls.__new__(cls)
        vars(state).update(parts)
        return state

    @property
    def rows(self) -> Array:
        """(…, rows) what kernels carry from step to step: impulses, then activations."""
        if not self.activation.shape[-1]:
            return self.impulse
        return np.concatenate([self.impulse, self.activation], axis=-1)

    def describe(self) -> str:
        """What happened, in a sentence or several."""
        return described(self.status)


def is_alive(status: NDArray[np.int64]) -> Array:
    """(…) 1.0, and 0.0 for items that are frozen."""
    return np.where(status & int(Mark.FROZEN), 0.0, 1.0)


def reject_moment(given: Any) -> Any:
    """What is given, unless it is a moment of a trajectory, or all of it."""
    if isinstance(given, (Moment, Trajectory)):
        what = "a trajectory" if isinstance(given, Trajectory) else "a moment of a trajectory"
        raise SimulationError(
            f"{what} is given, which has no impulses to go on from. Start again from there: "
            "moment = log[-1]; sim.start(moment.q, moment.v, time=moment.time).",
            code="wrong-type",
        )
    return given
