"""`State`: all that a simulation needs to go on, to the bit."""

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
from delassus.step.marks import Mark, describe_marks

Array = NDArray[np.float64]

_VECTORS: Final = ("q", "v", "impulse", "contact", "activation", "parameters", "tally")
"""What an item has several numbers of."""

_NUMBERS: Final = ("residual", "time")
_WHOLE: Final = ("status", "count", "seed", "stream")
"""What an item has one of."""


@dataclass(frozen=True)
class Draws:
    """How many random numbers are drawn for an item."""

    count: int


@lru_cache(maxsize=64)
def draws_of(count: int) -> Draws:
    """The same object for the same number: kernels find their code by it."""
    return Draws(count)


@kernel("(),(),(),()->(count)")
def draw_uniform(draws: Draws, seed: Any, stream: Any, period: Any, place: Any) -> Floats:
    """(count,) in [0, 1)."""
    return random.uniform(seed, stream, period, place, shape=(draws.count,))


@kernel("(),(),(),()->(count)")
def draw_normal(draws: Draws, seed: Any, stream: Any, period: Any, place: Any) -> Floats:
    """(count,) with mean 0 and standard deviation 1."""
    return random.normal(seed, stream, period, place, shape=(draws.count,))


@dataclass(frozen=True, eq=False)
class State:
    """One item or a batch of them, at a time.

    `state[3]`, `state[2:8]` and `state[mask]` are some of its items, `State.join([one, other])` those of several
    states.

    Attributes:
        q: (…, nq) configurations [rad, m].
        v: (…, nv) velocities [rad/s, m/s].
        time: (…) of each item since its own start [s].
        impulse: (…, m) impulses of the last step of time [N·s, N·m·s], from which the next solve starts: t1, t2, n of
            each contact slot (and moments about n, t1, t2 where there is torsional or rolling friction), then
            constraints, joint limits, dry friction.
        contact: (…, slots) numbers of the candidates that have the slots.
        residual: (…) the largest residual of a row of the contact problem [m/s].
        status: (…) marks that add up, see `Mark`; zero if all went well.
        count: (…) control periods that have been simulated, resets included.
        seed: (…) of the random numbers.
        activation: (…, na) of actuators that have a state, in their order; empty without.
        stream: (…) which of the seed's streams of random numbers an item has; by default its number in the batch. With
            `seed` and `count`, an item draws the same numbers in any batch.
        parameters: (…, nparameters) of a robot that has some; empty without.
        tally: (…, 3 tracked) mean and peak force [N] over the last control period, and air time [s], of each shape that
            is tracked; empty without.

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

    def __post_init__(self) -> None:
        arrays: dict[str, Any] = {}
        for name in (*_VECTORS, "residual", "status"):
            arrays[name] = real_array(f"{name} of a state", getattr(self, name))
        batch = arrays["q"].shape[:-1]
        for name in ("activation", "parameters", "tally"):
            arrays[name] = np.zeros((*batch, 0)) if arrays[name].shape == (0,) else arrays[name]
        for name, array in arrays.items():
            core = f"n_{name}" if name in _VECTORS else ""
            if (array.shape[:-1] if core else array.shape) != batch or (core and not array.ndim):
                raise SimulationError(
                    f"{name} of a state has shape {array.shape}, and q has {arrays['q'].shape}: with the items {batch} "
                    f"it is ({', '.join(filter(None, (*map(str, batch), core)))}).",
                    code="wrong-shape",
                )
        arrays["time"] = _of_items("time", real_array("time of a state", self.time), batch)
        streams = np.arange(int(np.prod(batch))).reshape(batch) if self.stream is None else self.stream
        for name, given in zip(_WHOLE, (self.status, self.count, self.seed, streams), strict=True):
            arrays[name] = _of_items(name, _whole_numbers(name, given), batch)
        arrays["status"] = np.asarray(arrays["status"])
        vars(self).update(arrays)

    @classmethod
    def unchecked(cls, **parts: Any) -> State:
        """One whose parts are known to fit: a check takes as long as a step."""
        state = cls.__new__(cls)
        vars(state).update(parts)
        return state

    @property
    def batch(self) -> tuple[int, ...]:
        """The axes of the items; none for one item."""
        return self.q.shape[:-1]

    @property
    def frozen(self) -> NDArray[np.bool_]:
        """(…) whether items are frozen: `Simulation.reset` lets them go on."""
        frozen: NDArray[np.bool_] = (np.asarray(self.status) & int(Mark.FROZEN)) != 0
        return frozen

    @property
    def rows(self) -> Array:
        """(…, rows) what kernels carry from step to step: impulses, then activations."""
        if not self.activation.shape[-1] + self.tally.shape[-1]:
            return self.impulse
        return np.concatenate([self.impulse, self.activation, self.tally], axis=-1)

    def describe(self) -> str:
        """What happened, in a sentence or several."""
        return describe_marks(self.status)

    # --- random numbers -------------------------------------------------------------------------------------------

    def uniform(self, count: int, place: int = 0) -> Array:
        """(…, count) random numbers in [0, 1), of each item's own stream.

        They follow from the item's seed, stream and control period, and from `place`, which differs from draw to draw
        of a period: the same numbers in any batch, on any machine and number of threads.
        """
        return self._draw(draw_uniform, count, place)

    def normal(self, count: int, place: int = 0) -> Array:
        """(…, count) random numbers with mean 0 and standard deviation 1, drawn as those of `uniform`."""
        return self._draw(draw_normal, count, place)

    def _draw(self, draw: Any, count: int, place: int) -> Array:
        size, place = draws_of(check_integer("count", count)), check_integer("place", place, 0)
        counters = (np.asarray(x, float) for x in (self.seed, self.stream, self.count))
        numbers: Array = draw(size, *counters, float(place))
        return numbers

    # --- items --------------------------------------------------------------------------------------------------------

    def __getitem__(self, items: Any) -> State:
        """Some items, chosen as from an array with the batch axes: numbers, slices, masks. They are copies."""
        batch = self.batch
        if not batch:
            raise SimulationError("the state is that of one item, which has no number.", code="index-out-of-range")
        try:
            numbers = np.arange(int(np.prod(batch))).reshape(batch)[items]
        except (IndexError, TypeError, ValueError, OverflowError):
            raise NoSuchItem(
                f"items are chosen by {short(repr(items))}; those of this state have the axes {batch}."
            ) from None
        return State(**{name: x[numbers] for name, x in self.flat().items()})

    def flat(self) -> dict[str, Any]:
        """All parts with one axis for the items."""
        parts = {name: np.asarray(getattr(self, name)) for name in (*_VECTORS, *_NUMBERS, *_WHOLE)}
        count = int(np.prod(self.batch))
        return {name: x.reshape((count, *x.shape[len(self.batch) :])) for name, x in parts.items()}

    @classmethod
    def join(cls, states: Iterable[State]) -> State:
        """The items of several states of one simulation, one after the other along the first axis.

        Items keep their streams of random numbers: start the states with seeds of their own.
        """
        parts = tuple(states) if isinstance(states, Iterable) else ()
        if not parts or not all(isinstance(one, State) for one in parts):
            raise SimulationError(
                f"states are {short(repr(states))}; they are several, such as [sim.start(a), sim.start(b)].",
                code="wrong-type",
            )
        joined = {}
        for name in parts[0].flat():
            arrays = [np.asarray(getattr(one, name)) for one in parts]
            arrays = [x if one.batch else x[None] for one, x in zip(parts, arrays, strict=True)]
            if len({x.shape[1:] for x in arrays}) > 1:
                raise SimulationError(
                    f"states are joined whose {name} have the shapes {[x.shape for x in arrays]}: they are of one "
                    "simulation, and have the same batch axes but the first.",
                    code="other-system",
                )
            joined[name] = np.concatenate(arrays)
        return cls(**joined)

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file of NumPy (.npz). A file that was there is replaced when all is written."""
        arrays = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}
        write_arrays("the state", path, arrays, StateFileError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read what `save` wrote, to the bit."""
        arrays = read_arrays("the state", path, StateFileError)
        names = [one.name for one in fields(cls)]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise StateFileError(f"{path} is not a state: it has no {', '.join(missing)}.", code="other-file")
        try:
            return cls(**{name: arrays[name] for name in names})
        except BadArgument as error:
            raise StateFileError(f"{path} is not a state: {error}", code="other-file") from error


def _whole_numbers(name: str, given: Any) -> NDArray[np.int64]:
    array = np.asarray(given)
    whole = array.dtype.kind in "iu"
    if whole and (name == "status" or not (array < 0).any()):
        return array.astype(np.int64, copy=False)
    what = "whole numbers, see `Mark`" if name == "status" else "a whole number, zero or more, or one for each item"
    sentence = f"{name} of a state is {short(repr(given))}; it is {what}."
    raise OutOfRange(sentence) if whole else SimulationError(sentence, code="not-a-whole-number")


def _of_items(name: str, array: Any, batch: tuple[int, ...]) -> Any:
    """An array with the axes of the items, or the number of one item."""
    if not fits(array.shape, batch):
        raise SimulationError(
            f"{name} of a state has shape {array.shape}; it is one number, or one for each of the items {batch}.",
            code="wrong-shape",
        )
    return np.broadcast_to(array, batch).copy() if batch else array.item()


def item_numbers(items: Any, batch: tuple[int, ...]) -> NDArray[np.int64]:
    """The numbers (n,) among all items of those that a mask (…), a number or some numbers choose, each once."""
    every = np.arange(int(np.prod(batch)))
    chosen = np.asarray(items)
    if chosen.dtype.kind == "b":
        if chosen.shape != batch:
            raise SimulationError(
                f"the mask of items has shape {chosen.shape}; the state has the items {batch}.", code="wrong-shape"
            )
        return every[chosen.ravel()]
    numbers = np.atleast_1d(chosen)
    whole = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if not whole or len(batch) > 1:
        raise SimulationError(
            f"items are {short(repr(items))}; they are a mask of shape {batch}, or numbers of items of one axis.",
            code="wrong-type",
        )
    unknown = numbers[(numbers < 0) | (numbers >= len(every))]
    if unknown.size or len(np.unique(numbers)) < len(numbers):
        wrong = f"there is no item {unknown[0]}" if unknown.size else f"an item comes twice in {short(repr(items))}"
        raise NoSuchItem(f"{wrong}: the state has {len(every)} items, numbered from 0.")
    return numbers.astype(np.int64)


def is_alive(status: Any) -> Array:
    """(…) 1.0, and 0.0 for items that are frozen."""
    return np.where(status & int(Mark.FROZEN), 0.0, 1.0)


def resume(log: Trajectory, k: int, items: tuple[Any, ...]) -> State:
    """The state at the k-th time of a simulation's log, of all items or some: a run goes on from it, to the bit."""
    record, contacts, at = log.run, log.contacts, (k, *items)
    if record is None or contacts is None:
        raise SimulationError("the log is not one of a simulation.", code="not-recorded")
    batch = log.q.shape[1:-1]
    made = record.periods(float(log.time[k]))
    whole = {name: np.broadcast_to(getattr(record, name), batch)[items] for name in ("count", "seed", "stream")}
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
        count=whole["count"] + made,
        seed=whole["seed"],
        activation=(none if log.activation is None else np.asarray(log.activation))[at],
        stream=whole["stream"],
        parameters=none[0][items] if log.parameters is None else log.of_items(log.parameters)[items],
        tally=(none if log.tally is None else np.asarray(log.tally))[at],
    )


def reject_moment(given: Any) -> Any:
    """What is given, unless it is a moment of a trajectory, or all of it."""
    if isinstance(given, (Moment, Trajectory)):
        what = "a trajectory" if isinstance(given, Trajectory) else "a moment of a trajectory"
        raise SimulationError(
            f"{what} is given, which has no impulses to go on from: log[-1] of a simulation's log is a state, if the "
            "log knows its simulation. Else start again: sim.start(moment.q, moment.v, time=moment.time).",
            code="wrong-type",
        )
    return given


def check_state(state: Any) -> State:
    """A state, and nothing else."""
    expect("the state", reject_moment(state), State, "sim.start(q0)")
    checked: State = state
    return checked
