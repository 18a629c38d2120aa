"""A simulation on its way: the arrays of the present state, and what takes them one control period further.

One item runs on arrays that are bound to the kernel once and change in place, which takes a call of NumPy's machinery,
several times the kernel's own time, out of every step; and in stretches of many periods, where nobody is asked in
between. Batches go through the kernel's call, which uses threads.

Every period is tried in the usual world first, with few iterations of the contact solve. Items that this is not enough
for keep their state, and are collected for a second call with many iterations, or for one in the whole world. What an
item does never depends on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.simulation.controls import Control
from delassus.simulation.state import State, is_alive
from delassus.simulation.step.advance import HARD, MISSED
from delassus.simulation.step.rows import pushed_elsewhere
from delassus.simulation.step.solve import LONGER, PATIENCE, QUICKLY
from delassus.simulation.step.world import World
from delassus.simulation.stretch import LONGEST, Stretch
from delassus.stepping.marks import Mark

if TYPE_CHECKING:
    from delassus.simulation.simulation import Simulation

_FROZEN: Final = int(Mark.FROZEN)

_WORTH_IT: Final = 64
"""Periods from which on a stretch pays for what it takes to be made."""

_MANY: Final = 0.05
"""The share of items from which on it pays to sort out those that the usual world is not enough for."""


class Runner:
    """The present state of a run, by the names of `State`; bound arrays change with every step.

    Attributes:
        consistent: Whether arrays, time and count are those of one state: Ctrl-C may come in the middle of a step.
    """

    def __init__(self, sim: Simulation, state: State, control: Control, bound: bool = True) -> None:
        self.sim, self.control = sim, control
        self.time, self.count, self.seed = state.time, state.count, state.seed
        self.q, self.v = state.q, state.v
        self._rows, self._places = some(state.rows), some(state.contact)
        self.residual, self.status = state.residual, state.status  # type: Any, Any
        plain = all(np.ndim(x) == (name == "normal") for name, x in sim.ground.inputs.items() if name != "heights")
        self.alone = not state.q.shape[:-1] and plain
        self._thorough: Callable[[], None] | None = None
        self._period, self._sizes = sim.period, (sim.world.m, sim.world.slots, sim.world.na)
        self._tick = self._alone() if self.alone and bound else None
        self.stretch: Stretch | None = None
        self.consistent = True
        self._ahead = 8

    @property
    def moving(self) -> tuple[Any, ...]:
        """The arrays that change."""
        return self.q, self.v, self._rows, self._places

    @property
    def impulse(self) -> Any:
        """(…, m)."""
        return self._rows[..., : self._sizes[0]]

    @property
    def activation(self) -> Any:
        """(…, na)."""
        return self._rows[..., self._sizes[0] : self._sizes[0] + self._sizes[2]]

    @property
    def contact(self) -> Any:
        """(…, slots)."""
        return self._places[..., : self._sizes[1]]

    def go(self, k: int, most: int) -> int:
        """Make control periods from the k-th on, `most` of them or fewer, in a stretch; how many, perhaps none.

        Where periods are marked, one after the other, a stretch is not worth its start.
        """
        if self.stretch is None:
            if most < _WORTH_IT or self._tick is None or self.control.ahead is None:
                return 0
            self.stretch = Stretch(self)
        periods = min(self._ahead, most, LONGEST)
        if periods < 4:
            self._ahead = min(2 * self._ahead + 1, LONGEST)
            return 0
        made = self.stretch.go(self, k, periods)
        self._ahead = min(2 * made, LONGEST) if made < periods else min(2 * self._ahead, LONGEST)
        return made

    def step(self, k: int) -> None:
        """Make the k-th control period."""
        q, v = (self.q.copy(), self.v.copy()) if self.control.asks else (self.q, self.v)  # users may write to theirs
        given = self.control.at(k, self.time, q, v)
        if self._tick is not None:
            if given:
                self._own[:] = given[0]
            self._advance()
            return
        self._call(given)
        self.time, self.count = self.time + self._period, self.count + 1
        self.consistent = True

    def _advance(self) -> None:
        """One period of the bound arrays."""
        self._clock.fill(self.time)
        self.consistent = False
        if self._tick is not None:
            self._tick()
        if self.status.item():
            self._look_again()
        self.time, self.count = self.time + self._period, self.count + 1
        self.consistent = True

    def _look_again(self) -> None:
        """What has a mark: a step that the whole world is needed for, or an item that ends here."""
        if self.status.item() == MISSED:
            self._thorough = self._thorough or self._bound(self.sim.world, PATIENCE)
            self._thorough()
        if int(self.status) & _FROZEN:
            self.alive[...] = 0.0

    def takes(self, state: Any, control: Any) -> bool:
        """Whether a state and controls can be copied as they are: those of one item, in arrays of their own."""
        return (
            type(state) is State
            and type(control) is np.ndarray
            and control.dtype == np.float64
            and control.shape == self._own.shape
            and state.q.shape == self.q.shape
            and state.v.shape == self.v.shape
            and (*state.impulse.shape, *state.contact.shape, *state.activation.shape) == self._sizes
        )

    def once(self, state: State, control: Any) -> State:
        """The state after one control period of one item; the runner is bound, and its controls are not asked."""
        self.q[:], self.v[:] = state.q, state.v
        self.impulse[:], self.contact[:], self.activation[:] = state.impulse, state.contact, state.activation
        self.time, self.count, self.seed = state.time, state.count, state.seed
        self.alive.fill(0.0 if state.status.item() & _FROZEN else 1.0)
        self._own[:] = control
        self._advance()
        return self.state()

    def state(self) -> State:
        """A copy of the present state."""
        return State.unchecked(
            q=self.q.copy(),
            v=self.v.copy(),
            time=self.time,
            impulse=self.impulse.copy(),
            contact=self.contact.copy(),
            residual=self.residual.copy(),
            status=self.status.astype(np.int64),
            count=self.count,
            seed=self.seed,
            activation=self.activation.copy(),
        )

    def _call(self, given: tuple[Any, ...]) -> None:
        usual, world = self.sim.usual, self.sim.world
        others = (is_alive(self.status), *map(some, given))
        lying = self._lying()
        if lying is None:
            found = self._made(usual, QUICKLY, others)
        else:
            tried = self._made(usual, QUICKLY, others, ~lying)
            found = tuple(np.empty((*lying.shape, *x.shape[1:])) for x in tried)
            for every, part in zip(found, tried, strict=True):
                every[~lying] = part
            found[-1][lying] = MISSED
        for left, used, patience in ((HARD, usual, LONGER), (HARD, usual, PATIENCE), (MISSED, world, PATIENCE)):
            again = found[-1] == left
            if again.any():
                for every, part in zip(found, self._made(used, patience, others, again), strict=True):
                    every[again] = part
        self.consistent = False
        self.q, self.v, self._rows, self._places, self.residual, _, mark = found
        self.status = mark.astype(np.int64)

    def _lying(self) -> NDArray[np.bool_] | None:
        """Which items would be missed by the usual world, as robots that lie on their backs; None if they are few."""
        usual = self.sim.usual
        if usual.usual is None or not usual.all_slots:
            return None
        start = usual.contact_rows * usual.all_slots + usual.mechanism.m
        limits = self._rows[..., start : start + usual.whole.ends]
        if (self._places == np.array(usual.numbers)).all() and not (limits > 0.0).any():
            return None
        lying: Any = pushed_elsewhere(usual, self._rows, self._places)
        return lying if np.mean(lying) > _MANY else None

    def _made(
        self, world: World, patience: float, others: tuple[Any, ...], items: NDArray[np.bool_] | None = None
    ) -> tuple[Any, ...]:
        """What the kernel gives, for all items or for some; `others` are who is alive, and controls."""
        moving, ground, (alive, *control) = self.moving, self.sim.ground.inputs, others
        if items is not None:
            batch = items.shape
            ground = {
                name: x if name == "heights" else _of(x, batch, items, name == "normal") for name, x in ground.items()
            }
            moving, alive = tuple(x[items] for x in moving), alive[items]
            control = [_of(x, batch, items, True) for x in control]
        found = self.control.kernel(
            world,
            *moving,
            self.time,
            alive,
            *control,
            self.sim.time_step,
            **ground,
            tolerance=self.sim.tolerance,
            patience=patience,
        )
        return tuple(np.asarray(x) for x in found)

    def _alone(self) -> Callable[[], None]:
        """The arrays of one item, and what takes them through a period."""
        self.q, self.v, self._rows, self._places = map(np.array, (self.q, self.v, self._rows, self._places))
        self._clock, self.alive = np.array(self.time), np.array(float(is_alive(self.status)))
        self._given, self._step = np.zeros(self.sim.world.controls), np.array(self.sim.time_step)
        self._own = self._given[: self.sim.nu]
        self.residual, self._count, self.status = (np.array(float(x)) for x in (self.residual, 0.0, self.status))
        return self._bound(self.sim.usual, PATIENCE)

    def _bound(self, world: World, patience: float) -> Callable[[], None]:
        moving, named = self.moving, self.named(patience)
        control = (self._given,) if self.control.takes else ()
        return self.control.kernel.bind(
            world,
            *moving,
            self._clock,
            self.alive,
            *control,
            self._step,
            *named.values(),
            *moving,
            self.residual,
            self._count,
            self.status,
            inputs=tuple(named),
        )

    def named(self, patience: float) -> dict[str, Any]:
        """The inputs of the kernel that have names; what items share comes last."""
        given = {**self.sim.ground.inputs, "tolerance": self.sim.tolerance, "patience": patience}
        return {name: np.array(given[name]) for name in sorted(given, key=lambda name: name == "heights")}


def some(x: Any) -> Any:
    """An array (…, n), with one element that means nothing if n is 0."""
    return np.zeros((*np.shape(x)[:-1], 1)) if np.shape(x)[-1] == 0 else x


def _of(x: Any, batch: tuple[int, ...], items: NDArray[np.bool_], vectors: bool) -> Any:
    """What some items of a batch have of an array that may be the same for several of them."""
    x = np.asarray(x)
    inner = x.shape[-1:] if vectors else ()
    return x if x.shape == inner else np.broadcast_to(x, (*batch, *inner))[items]
