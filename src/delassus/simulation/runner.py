"""A simulation on its way: the arrays of the present state, and what takes them one control period further.

One item runs on arrays that are bound to the kernel once and change in place, which takes a call of NumPy's machinery,
several times the kernel's own time, out of every step. Batches go through the kernel's call, which uses threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from delassus.simulation.controls import Control
from delassus.simulation.state import State, is_alive
from delassus.stepping.marks import Mark

if TYPE_CHECKING:
    from delassus.simulation.simulation import Simulation


class Runner:
    """The present state of a run, by the names of `State`; bound arrays change with every step."""

    def __init__(self, sim: Simulation, state: State, control: Control, bound: bool = True) -> None:
        self.sim, self.control = sim, control
        self.time, self.count, self.seed = state.time, state.count, state.seed
        self.q, self.v = state.q, state.v
        self._rows, self._places = some(state.impulse), some(state.contact)
        self.residual, self.status = state.residual, state.status  # type: Any, Any
        plain = all(np.ndim(x) == (name == "normal") for name, x in sim.ground.inputs.items() if name != "heights")
        alone = not state.q.shape[:-1] and plain
        self._tick = self._bound() if alone and bound else None

    @property
    def impulse(self) -> Any:
        """(…, m)."""
        return self._rows[..., : self.sim.world.m]

    @property
    def contact(self) -> Any:
        """(…, slots)."""
        return self._places[..., : self.sim.world.slots]

    def step(self, k: int) -> None:
        """Make the k-th control period."""
        live = self._tick is not None
        seen = (self.time, self.q.copy(), self.v.copy()) if live and self.control.asks else (self.time, self.q, self.v)
        given = self.control.at(k, *seen)
        if self._tick is None:
            self._call(given)
        else:
            if given:
                self._given[: self.sim.nu] = given[0]
            self._clock[...] = self.time
            self._tick()
            if int(self.status) & Mark.FROZEN:
                self._alive[...] = 0.0
        self.time, self.count = self.time + self.sim.period, self.count + 1

    def state(self) -> State:
        """A copy of the present state."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(State)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value.copy()
        return State(**values | {"status": np.asarray(self.status).astype(np.int64)})

    def _call(self, given: tuple[Any, ...]) -> None:
        found = self.control.kernel(
            self.sim.world,
            self.q,
            self.v,
            self._rows,
            self._places,
            self.time,
            is_alive(self.status),
            *map(some, given),
            self.sim.time_step,
            **self.sim.ground.inputs,
        )
        self.q, self.v, self._rows, self._places, residual, _, mark = found
        self.residual = np.asarray(residual)
        self.status = np.asarray(mark).astype(np.int64)

    def _bound(self) -> Callable[[], None]:
        self.q, self.v, self._rows, self._places = map(np.array, (self.q, self.v, self._rows, self._places))
        self._clock, self._alive = np.array(self.time), np.array(float(is_alive(self.status)))
        self._given, self._step = np.zeros(self.sim.world.controls), np.array(self.sim.time_step)
        self.residual, iterations, self.status = (np.array(float(x)) for x in (self.residual, 0.0, self.status))
        moving = (self.q, self.v, self._rows, self._places)
        control = (self._given,) if self.control.takes else ()
        ground = self.sim.ground.inputs
        return self.control.kernel.bind(
            self.sim.world,
            *moving,
            self._clock,
            self._alive,
            *control,
            self._step,
            *(np.array(x) for x in ground.values()),
            *moving,
            self.residual,
            iterations,
            self.status,
            inputs=tuple(ground),
        )


def some(x: Any) -> Any:
    """An array (…, n), with one element that means nothing if n is 0."""
    return np.zeros((*np.shape(x)[:-1], 1)) if np.shape(x)[-1] == 0 else x
