"""`State`: everything that a simulation needs to continue bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.archives import read_arrays, write_arrays
from delassus.common.checks import check_integer, real_array
from delassus.compiler import random
from delassus.compiler.host.kernel import Floats, kernel
from delassus.errors import BadArgument, OutOfRange, expect, short
from delassus.output.trajectory import Moment, Trajectory
from delassus.simulation.checks import NoSuchItem, SimulationError, StateFileError, fits
from delassus.step.flags import Mark, describe_marks

Array = NDArray[np.float64]

_VECTORS: Final = ("q", "v", "impulse", "contact", "activation", "parameters", "tally", "memory")
"""Parts of a state that are vectors for one environment."""

_NUMBERS: Final = ("residual", "time")
_INTEGERS: Final = ("status", "count", "seed", "stream")
"""Parts of a state that are scalars for one environment: floating-point numbers, and integers."""


@dataclass(frozen=True)
class DrawCount:
    """Number of random numbers that are drawn for an environment."""

    count: int


@lru_cache(maxsize=64)
def draws_of(count: int) -> DrawCount:
    """A cached `DrawCount`: equal counts return one object, because it is a key of the kernel cache."""
    return DrawCount(count)


@kernel("(),(),(),()->(count)")
def draw_uniform(draws: DrawCount, seed: Any, stream: Any, period: Any, place: Any) -> Floats:
    """(count,) in [0, 1)."""
    return random.uniform(seed, stream, period, place, shape=(draws.count,))


@kernel("(),(),(),()->(count)")
def draw_normal(draws: DrawCount, seed: Any, stream: Any, period: Any, place: Any) -> Floats:
    """(count,) with mean 0 and standard deviation 1."""
    return random.normal(seed, stream, period, place, shape=(draws.count,))


@dataclass(frozen=True, eq=False)
class State:
    """The state of one environment or a batch.

    `state[3]`, `state[2:8]` and `state[mask]` select environments; `State.join([first, second])` concatenates states.

    Attributes:
        q: (…, nq) configurations [rad, m].
        v: (…, nv) velocities [rad/s, m/s].
        time: (…) time of each environment since its start [s].
        impulse: (…, m) impulses of the last time step [N·s, N·m·s], the warm start of the next one: t1, t2, n of each
            contact slot (and moments about n, t1, t2 where there is torsional or rolling friction), then constraints,
            joint limits, joint friction.
        contact: (…, slots) indices of the candidates in the contact slots.
        residual: (…) the largest residual of a row of the contact problem [m/s].
        status: (…) sum of flags, see `Mark`; zero if there are none.
        count: (…) number of control periods that have been simulated, including those before a reset.
        seed: (…) seed of the random numbers.
        activation: (…, na) activations of actuators with a state, in the order of the actuators.
        stream: (…) stream of random numbers, by default the index in the batch. With the same seed, stream and count,
            an environment draws the same numbers in any batch.
        parameters: (…, nparameters) of a parametric robot.
        tally: (…, 3 tracked) mean and peak force [N] over the last control period, and air time [s], of each tracked
            shape.
        memory: (…, n) memory of a `CompiledPolicy` in the step; NaN stands for its initial values. (…, 0) for a state
            that no policy has advanced; runs without one keep it.

    >>> sim = dl.Simulation(dl.load("pendulum"), time_step=1e-2, touching=())
    >>> float(sim.step(sim.start([1.0])).time)
    0.01
    """

    q: Array
    v: Array
    time: Any
    impulse: Array
    contact: Array
    residual: Array
    status: NDArray[np.int64]
    count: Any = 0
    seed: Any = 0
    activation: Array = field(default_factory=lambda: np.zeros(0))
    stream: Any = None
    parameters: Array = field(default_factory=lambda: np.zeros(0))
    tally: Array = field(default_factory=lambda: np.zeros(0))
    memory: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        arrays: dict[str, Any] = {}
        for name in (*_VECTORS, "residual", "status"):
            arrays[name] = real_array(f"{name} of a state", getattr(self, name))
        batch = arrays["q"].shape[:-1]
        for name in ("activation", "parameters", "tally", "memory"):
            arrays[name] = np.zeros((*batch, 0)) if arrays[name].shape == (0,) else arrays[name]
        for name, array in arrays.items():
            core = f"n_{name}" if name in _VECTORS else ""
            if (array.shape[:-1] if core else array.shape) != batch or (core and not array.ndim):
                raise SimulationError(
                    f"{name} of a state has shape {array.shape}; since q has {arrays['q'].shape}, it must be "
                    f"({', '.join(filter(None, (*map(str, batch), core)))}).",
                    code="wrong-shape",
                )
        arrays["time"] = _broadcast("time", real_array("time of a state", self.time), batch)
        streams = np.arange(int(np.prod(batch))).reshape(batch) if self.stream is None else self.stream
        for name, values in zip(_INTEGERS, (self.status, self.count, self.seed, streams), strict=True):
            arrays[name] = _broadcast(name, _check_integers(name, values), batch)
        arrays["status"] = np.asarray(arrays["status"])
        vars(self).update(arrays)

    @classmethod
    def unchecked(cls, **parts: Any) -> State:
        """Create a state without checks, which take as long as a step."""
        state = cls.__new__(cls)
        vars(state).update(parts)
        return state

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes; empty for one environment."""
        return self.q.shape[:-1]

    @property
    def frozen(self) -> NDArray[np.bool_]:
        """(…) whether environments are frozen. `Simulation.reset` unfreezes them."""
        frozen: NDArray[np.bool_] = (np.asarray(self.status) & int(Mark.FROZEN)) != 0
        return frozen

    @property
    def rows(self) -> Array:
        """(…, rows) values that kernels carry from step to step: impulses, activations, tallies."""
        if not self.activation.shape[-1] + self.tally.shape[-1]:
            return self.impulse
        return np.concatenate([self.impulse, self.activation, self.tally], axis=-1)

    def describe(self) -> str:
        """The flags in words."""
        return describe_marks(self.status)

    # --- random numbers -------------------------------------------------------------------------------------------

    def uniform(self, count: int, place: int = 0) -> Array:
        """(…, count) random numbers in [0, 1), from the stream of each environment.

        They depend on seed, stream and control period of the environment, and on `place`: use another `place` for each
        draw in a period. The numbers are the same in any batch, on any machine and with any number of threads.
        """
        return self._draw(draw_uniform, count, place)

    def normal(self, count: int, place: int = 0) -> Array:
        """(…, count) random numbers with mean 0 and standard deviation 1, drawn like those of `uniform`."""
        return self._draw(draw_normal, count, place)

    def _draw(self, draw: Any, count: int, place: int) -> Array:
        size, place = draws_of(check_integer("count", count)), check_integer("place", place, 0)
        counters = (np.asarray(x, float) for x in (self.seed, self.stream, self.count))
        numbers: Array = draw(size, *counters, float(place))
        return numbers

    # --- selections ---------------------------------------------------------------------------------------------------

    def __getitem__(self, items: Any) -> State:
        """Select environments as from an array with the batch axes: by indices, slices or masks. Returns copies."""
        batch = self.batch
        if not batch:
            raise SimulationError(
                "a state of one environment has no batch axes and cannot be indexed.", code="index-out-of-range"
            )
        try:
            numbers = np.arange(int(np.prod(batch))).reshape(batch)[items]
        except (IndexError, TypeError, ValueError, OverflowError):
            raise NoSuchItem(
                f"the index is {short(repr(items))}; it must select from the batch axes {batch}."
            ) from None
        return State(**{name: x[numbers] for name, x in self.flat().items()})

    def flat(self) -> dict[str, Any]:
        """All parts, with a single batch axis."""
        parts = {name: np.asarray(getattr(self, name)) for name in (*_VECTORS, *_NUMBERS, *_INTEGERS)}
        count = int(np.prod(self.batch))
        return {name: x.reshape((count, *x.shape[len(self.batch) :])) for name, x in parts.items()}

    @classmethod
    def join(cls, states: Iterable[State]) -> State:
        """Concatenate states of one simulation along the first batch axis.

        Environments keep their streams of random numbers: start the states with different seeds.
        """
        parts = tuple(states) if isinstance(states, Iterable) else ()
        if not parts or not all(isinstance(one, State) for one in parts):
            raise SimulationError(
                f"states is {short(repr(states))}; it must be a sequence of states, such as [sim.start(a), "
                "sim.start(b)].",
                code="wrong-type",
            )
        joined = {}
        for name in parts[0].flat():
            arrays = [np.asarray(getattr(one, name)) for one in parts]
            arrays = [x if one.batch else x[None] for one, x in zip(parts, arrays, strict=True)]
            if len({x.shape[1:] for x in arrays}) > 1:
                raise SimulationError(
                    f"{name} of the states has the shapes {[x.shape for x in arrays]}; the states must belong to one "
                    "simulation, and their batch axes must be equal except for the first.",
                    code="other-system",
                )
            joined[name] = np.concatenate(arrays)
        return cls(**joined)

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NumPy file (.npz). An existing file is replaced once the new one is complete."""
        arrays = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}
        write_arrays("the state", path, arrays, StateFileError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read a file that `save` wrote; the state is the same bit for bit."""
        arrays = read_arrays("the state", path, StateFileError)
        names = [one.name for one in fields(cls)]
        arrays.setdefault("memory", np.zeros(0))  # older files have none
        missing = [name for name in names if name not in arrays]
        if missing:
            raise StateFileError(f"{path} is not a state: {', '.join(missing)} is missing.", code="other-file")
        try:
            return cls(**{name: arrays[name] for name in names})
        except BadArgument as error:
            raise StateFileError(f"{path} is not a state: {error}", code="other-file") from error


def _check_integers(name: str, values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    is_integer = array.dtype.kind in "iu"
    if is_integer and (name == "status" or not (array < 0).any()):
        return array.astype(np.int64, copy=False)
    form = "a sum of flags, see `Mark`" if name == "status" else "an integer, zero or more, or one for each environment"
    sentence = f"{name} of a state is {short(repr(values))}; it must be {form}."
    raise OutOfRange(sentence) if is_integer else SimulationError(sentence, code="not-a-whole-number")


def _broadcast(name: str, array: Any, batch: tuple[int, ...]) -> Any:
    """An array with the batch axes, or a number for one environment."""
    if not fits(array.shape, batch):
        raise SimulationError(
            f"{name} of a state has shape {array.shape}; it must be one number, or fit the batch axes {batch}.",
            code="wrong-shape",
        )
    return np.broadcast_to(array, batch).copy() if batch else array.item()


def item_numbers(items: Any, batch: tuple[int, ...]) -> NDArray[np.int64]:
    """Flat indices (n,) of the environments that a mask (…) or indices select, without duplicates."""
    every = np.arange(int(np.prod(batch)))
    chosen = np.asarray(items)
    if chosen.dtype.kind == "b":
        if chosen.shape != batch:
            raise SimulationError(
                f"the mask has shape {chosen.shape}; it must be {batch}, the batch axes of the state.",
                code="wrong-shape",
            )
        return every[chosen.ravel()]
    numbers = np.atleast_1d(chosen)
    is_index = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if not is_index or len(batch) > 1:
        raise SimulationError(
            f"items is {short(repr(items))}; it must be a mask of shape {batch} or, for one batch axis, indices.",
            code="wrong-type",
        )
    unknown = numbers[(numbers < 0) | (numbers >= len(every))]
    if unknown.size or len(np.unique(numbers)) < len(numbers):
        if unknown.size:
            raise NoSuchItem(f"items has the index {unknown[0]}; indices must be from 0 to {len(every) - 1}.")
        raise NoSuchItem(f"items is {short(repr(items))}; each environment must be selected only once.")
    return numbers.astype(np.int64)


def is_alive(status: Any) -> Array:
    """(…) 0.0 for frozen environments, 1.0 for others."""
    return np.where(status & int(Mark.FROZEN), 0.0, 1.0)


def resume(log: Trajectory, k: int, items: tuple[Any, ...]) -> State:
    """The state at the k-th time of a simulation's log, of selected environments; a run continues from it bit for
    bit."""
    record, contacts, at = log.run, log.contacts, (k, *items)
    if record is None or contacts is None:
        raise SimulationError("the log was not recorded by a simulation.", code="not-recorded")
    batch = log.q.shape[1:-1]
    periods = record.periods(float(log.time[k]))
    integers = {name: np.broadcast_to(getattr(record, name), batch)[items] for name in ("count", "seed", "stream")}
    time = np.broadcast_to(log.time[k], batch)[items] if record.time is None else record.time[at]
    status = np.broadcast_to(log.status, log.q.shape[:-1])[at] & ~int(Mark.INTERRUPTED)
    none = np.zeros((*log.q.shape[:-1], 0))
    return State(
        q=log.q[at],
        v=log.v[at],
        time=time,
        impulse=contacts.impulse[at],
        contact=contacts.contact[at],
        residual=np.broadcast_to(log.residual, log.q.shape[:-1])[at],
        status=status,
        count=integers["count"] + periods,
        seed=integers["seed"],
        activation=(none if log.activation is None else np.asarray(log.activation))[at],
        stream=integers["stream"],
        parameters=none[0][items] if log.parameters is None else log.of_items(log.parameters)[items],
        tally=(none if log.tally is None else np.asarray(log.tally))[at],
        memory=(none if log.memory is None else np.asarray(log.memory))[at],
    )


def reject_moment(value: Any) -> Any:
    """The value unchanged; refuses trajectories and their moments."""
    if isinstance(value, (Moment, Trajectory)):
        what = "a trajectory" if isinstance(value, Trajectory) else "a moment of a trajectory"
        raise SimulationError(
            f"the state is {what}, which has no impulses to continue from. Use log[-1] of a log that knows its "
            "simulation, or start again: sim.start(moment.q, moment.v, time=moment.time).",
            code="wrong-type",
        )
    return value


def check_state(state: Any) -> State:
    """Refuse everything but a state."""
    expect("the state", reject_moment(state), State, "sim.start(q0)")
    checked: State = state
    return checked
