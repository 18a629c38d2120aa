"""A simulation on its way: the arrays of the present state, and what takes them one control period further.

One item runs on arrays that are bound to the kernel once and change in place, which takes a call of NumPy's machinery,
several times the kernel's own time, out of every step; and in stretches of many periods, where nobody is asked in
between. Small batches are bound for their first attempt (`bound.small_batch`); others go through the kernel's call,
which uses threads.

Every period is first solved with the reduced contact set and few iterations. Items for which this is not enough keep
their state, and are collected for a second call with more iterations, or for one with the full contact set. What an
item does never depends on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph.parameters import PARAMETERS
from delassus.compiler.host.retry import Attempt, Batch, Results, has_flag, retry
from delassus.output.replay_record import RecordedPush
from delassus.simulation.bound.small_batch import LARGEST, SmallBatch
from delassus.simulation.checks import RunError
from delassus.simulation.controls import Control
from delassus.simulation.ground import structures
from delassus.simulation.pushes import Push, check_push, kicked, push_at
from delassus.simulation.setup import Setup
from delassus.simulation.state import State, is_alive
from delassus.step.articulated.qualification import ARTICULATED
from delassus.step.marks import Mark
from delassus.step.scene import Scene
from delassus.step.stages.collide import has_impulse_outside
from delassus.step.stages.solve import LONGER, QUICKLY
from delassus.step.stages.types import MAX_ITERATIONS, SolverLimits

_FROZEN: Final = int(Mark.FROZEN)
NEEDS_ITERATIONS: Final = float(Mark.NEEDS_ITERATIONS)
NEEDS_FULL_SET: Final = float(Mark.NEEDS_FULL_SET)

_NEW: Final = -1.0
"""The flag of items before the first attempt."""

_QUICKLY_BY_TREE: Final = 6.0
"""Iterations inside the articulated-body recursion after which an item is left to a second call. A standing G1 takes
three, and the slowest of eight four to five; after four a fifth of all items would be left, after six a twelfth."""

_MANY: Final = 0.05
"""The fraction of items from which on it pays to send those that need it straight to the full contact set."""


_VECTORS: Final = frozenset({"q", "v", "rows", "places", "control", "normal", PARAMETERS})
"""Inputs of the kernel that have one axis for one item."""

_SECTIONS: Final = ("impulse", "contact", "activation", "tally")
"""Parts of a state that arrays of rows and contacts are made of."""

_LONG: Final = 200
"""Control periods from which on all kernels of a run are compiled before the first of them."""

_SEVERAL: Final = 16
"""Items from which on one of them will need another kernel than the first."""


class Runner:
    """The present state of a run, by the names of `State`; bound arrays change with every step.

    Attributes:
        made: How many control periods the run has made.
        log_time: The time [s] of all items; where theirs differ, that since the run's beginning.
        consistent: Whether arrays, time and count are those of one state: Ctrl-C may come in the middle of a step.
        given: The controls of the last period, in a tuple; none if they are compiled into the step.
        pushed: The push of the last period; None without.
    """

    def __init__(self, sim: Setup, state: State, control: Control, bound: bool = True, pushes: Any = None) -> None:
        self.sim, self.control = sim, control
        self.time, self._first, self.made = state.time, state, 0
        times = np.ravel(state.time)
        self.log_time = float(times[0]) if times.size and (times == times[0]).all() else 0.0
        self.q, self.v = state.q, state.v
        self._rows, self._places = some(state.rows), some(state.contact)
        self.residual, self.status = state.residual, state.status  # type: Any, Any
        plain = all(np.ndim(x) == (name == "normal") for name, x in sim.ground.inputs.items() if name != "heights")
        same = plain and not sim.nparameters and "heights" not in sim.ground.inputs
        self.alone = not state.q.shape[:-1] and plain and not sim.nparameters
        self.small = same and bound and pushes is None and state.q.ndim == 2 and 0 < len(state.q) <= LARGEST
        self._small: SmallBatch | None = None
        self._bound_rescues: dict[int, Callable[[], None]] = {}
        self._period, self._sizes = sim.period, (sim.scene.m, sim.scene.slots, sim.scene.na, sim.scene.tally_size)
        self._tick = self._alone() if self.alone and bound and pushes is None else None
        self.consistent = True
        self._pushes, self._pushed, self._wrench = pushes, (), None  # type: Any, tuple[str, ...], Any
        self.given: tuple[Any, ...] = ()
        self.pushed: RecordedPush | None = None

    @property
    def moving(self) -> tuple[Any, ...]:
        """The arrays that change."""
        return self.q, self.v, self._rows, self._places

    @property
    def bound(self) -> bool:
        """Whether arrays of one item are bound to the kernel."""
        return self._tick is not None

    @property
    def impulse(self) -> Any:
        """The impulses (…, m) [N·s] of the last step."""
        return self._rows[..., : self._sizes[0]]

    @property
    def activation(self) -> Any:
        """The activations (…, na) of the actuators."""
        return self._rows[..., self._sizes[0] : self._sizes[0] + self._sizes[2]]

    @property
    def tally(self) -> Any:
        """The tallies (…, 3 tracked) of contacts."""
        first = self._sizes[0] + self._sizes[2]
        return self._rows[..., first : first + self._sizes[3]]

    @property
    def contact(self) -> Any:
        """The candidates (…, slots) of the contacts of the last step."""
        return self._places[..., : self._sizes[1]]

    @property
    def own_control(self) -> Any:
        """(nu,) the controls of the next period, in the arrays of one item that is bound."""
        return self._own

    def step(self, k: int) -> None:
        """Make the k-th control period."""
        q, v = (self.q.copy(), self.v.copy()) if self.control.asks else (self.q, self.v)  # users may write to theirs
        time = self.time.copy() if self.control.asks and np.ndim(self.time) else self.time
        self.given = given = self.control.at(k, time, q, v)
        if self._tick is not None:
            if given:
                self._own[:] = given[0]
            self.advance()
            return
        if self._pushes is not None:
            self._push()
        self._call(given)
        self._count_period()

    def advance(self) -> None:
        """One period of the bound arrays."""
        self._clock.fill(self.time)
        self.consistent = False
        if self._tick is not None:
            self._tick()
        if self.status.item():
            self._look_again()
        self._count_period()

    def _push(self) -> None:
        """Change the velocity by the kick of the period, and keep its wrenches."""
        push = push_at(self._pushes, *(np.array(x)[()] for x in (self.time, self.q, self.v)))
        frames, self._wrench, kick = check_push(self.sim, Push() if push is None else push, self.q.shape[:-1])
        self._pushed, self.pushed = frames, RecordedPush(frames, self._wrench, kick)
        if kick is not None:
            self.v, self.status = kicked(self.v, self.status, kick)
            if isinstance(self._pushes, Push):  # that of a run has its kick once
                self._pushes = replace(self._pushes, kick=None)

    def _count_period(self) -> None:
        self.time, self.log_time, self.made = self.time + self._period, self.log_time + self._period, self.made + 1
        self.consistent = True

    def compile(self) -> None:
        """Compile all kernels that periods may need, so that none of them waits for a compiler."""
        names, several = self.packed(MAX_ITERATIONS)[0], self.q.size > self.q.shape[-1]
        wrench: tuple[str, ...] = ()
        if isinstance(self._pushes, Push) and self._pushes.wrench:
            names, wrench = (*names, "wrench"), tuple(self._pushes.wrench)
        key = (id(self.control.kernel), names, several, wrench)
        if key in self.sim.compiled:
            return
        sim = self.sim
        # That of Newton's method for many bodies takes as long as all others, and most scenes never need it.
        rescue = () if sim.scene.many_bodies is not None else (sim.fallback(sim.scene),)
        scenes = {id(x): x for x in (sim.reduced_scene, sim.scene, *rescue)}
        for scene in scenes.values():  # by identity: to compare large scenes takes longer than to step them
            used = self.sim.pushed_scene(scene, wrench)
            inputs = self.control.kernel.optional_inputs(used, names)
            self.control.kernel.warm_up(used, batch=several, inputs=inputs)
        self.sim.compiled[key] = self.control.kernel

    def compile_ahead(self, periods: int) -> None:
        """Compile all kernels if a run is long, or has several items."""
        if periods >= _LONG or self.q.size >= _SEVERAL * self.q.shape[-1]:
            self.compile()

    @cached_property
    def _rescues(self) -> tuple[tuple[float, Scene], ...]:
        """With which scene an item is solved again that has a flag, one after the other."""
        reduced, full = self.sim.reduced_scene, self.sim.scene
        if reduced.fallback is None:
            return ((NEEDS_FULL_SET, full),)
        return (NEEDS_FULL_SET, full), (NEEDS_ITERATIONS, self.sim.fallback(full))

    def _look_again(self) -> None:
        """Handle flags: a step that needs the full contact set, or an item that ends here."""
        for flag, scene in self._rescues:
            if self.status.item() == flag:
                tick = self._bound_rescues.get(id(scene))
                if tick is None:
                    most = LONGER if scene.fallback else MAX_ITERATIONS
                    tick = self._bound_rescues[id(scene)] = self._bound(scene, most)
                tick()
        if int(self.status) & _FROZEN:
            self.alive[...] = 0.0

    def go_on(self, state: State) -> None:
        """Go on from another state of the same items; how many periods the run has made stays."""
        new = (state.q, state.v, some(state.rows), some(state.contact))
        if self._tick is None:
            self.q, self.v, self._rows, self._places = map(np.array, new)
            self.residual, self.status = state.residual, state.status
        else:
            for own, x in zip(self.moving, new, strict=True):
                own[...] = x
            self.residual[...], self.status[...] = state.residual, state.status
            self.alive.fill(float(is_alive(state.status)))
        self.time = state.time
        self._first = replace(state, count=state.count - self.made)

    def takes(self, state: Any, control: Any) -> bool:
        """Whether a state and controls can be copied as they are: those of as many items, in arrays of their own."""
        return (
            type(state) is State
            and type(control) is np.ndarray
            and control.dtype == np.float64
            and control.shape == (*self.q.shape[:-1], self.sim.nu)
            and state.q.shape == self.q.shape
            and state.v.shape == self.v.shape
            and tuple(getattr(state, name).shape[-1] for name in _SECTIONS) == self._sizes
        )

    def once(self, state: State, control: Any) -> State:
        """The state after one control period; the runner is bound, and its controls are not asked."""
        if self._tick is None:
            self.q, self.v, self._rows, self._places = state.q, state.v, some(state.rows), some(state.contact)
            self.time, self.status, self._first, self.made = state.time, state.status, state, 0
            self._call((control,))
            self._count_period()
            return self._state_of(self.q, self.v, self._rows, self._places, self.residual)
        self.q[:], self.v[:] = state.q, state.v
        for name in _SECTIONS:
            getattr(self, name)[:] = getattr(state, name)
        self.time, self._first, self.made = state.time, state, 0
        self.alive.fill(0.0 if state.status.item() & _FROZEN else 1.0)
        self._own[:] = control
        self.advance()
        return self.state()

    def state(self) -> State:
        """The present state, with arrays of its own."""
        q, v, rows, places = (x.copy() for x in self.moving)
        return self._state_of(q, v, rows, places, self.residual.copy())

    def _state_of(self, q: Any, v: Any, rows: Any, places: Any, residual: Any) -> State:
        """The present state in some arrays."""
        m, slots, na, tallies = self._sizes
        first = self._first
        return State.unchecked(
            q=q,
            v=v,
            time=self.time,
            impulse=rows[..., :m],
            contact=places[..., :slots],
            residual=residual,
            status=self.status.astype(np.int64),
            count=first.count + self.made,
            seed=first.seed,
            activation=rows[..., m : m + na],
            tally=rows[..., m + na : m + na + tallies],
            stream=first.stream,
            parameters=first.parameters,
        )

    def _call(self, given: tuple[Any, ...]) -> None:
        lying, before = self._needs_full_set(), None
        if lying is not None:
            numbers = np.zeros(lying.shape)
            before = (*self.moving, numbers, numbers, np.where(lying, NEEDS_FULL_SET, _NEW))
        elif self.small:
            if self._small is None:
                _, scene, most = self._schedule[0]
                names, shared = self.packed(most)
                inputs = names, (np.array(self.sim.time_step), *shared)
                controls = self.sim.nu if self.control.takes else None
                self._small = SmallBatch(self.control.kernel, scene, self.moving, controls, inputs)
            before = self._small.solve(self.moving, self.time, is_alive(self.status), given)
        found = before
        if found is None or _needs_more(found[-1]):
            attempts = [
                Attempt(partial(self._solve, used, most), has_flag(flag)) for flag, used, most in self._schedule
            ]
            found = retry(attempts, self._batch(given), results=before)
        self.consistent = False
        self.q, self.v, self._rows, self._places, self.residual, _, mark = found
        self.status = mark.astype(np.int64)

    @cached_property
    def _schedule(self) -> tuple[tuple[float, Scene, float], ...]:
        """The attempts at a period: the mark of items that need it, the scene, and how many iterations are made."""
        reduced, full = self.sim.reduced_scene, self.sim.scene
        if reduced.method != ARTICULATED:
            return (
                (_NEW, reduced, QUICKLY),
                (NEEDS_ITERATIONS, reduced, LONGER),
                (NEEDS_ITERATIONS, self.sim.fallback(reduced), MAX_ITERATIONS),
                (NEEDS_FULL_SET, full, MAX_ITERATIONS),
            )
        # What it leaves unsolved is little: one kernel by the matrix, of the full set, serves all of it. Items of the
        # reduced set go there at once: inside the recursion, the full set solved next to none of them.
        rescue = (NEEDS_ITERATIONS, self.sim.fallback(full), MAX_ITERATIONS)
        return (
            (_NEW, reduced, _QUICKLY_BY_TREE),
            (NEEDS_ITERATIONS, reduced, LONGER),
            rescue,
            (NEEDS_FULL_SET, full, _QUICKLY_BY_TREE),
            (NEEDS_ITERATIONS, full, LONGER),
            rescue,
        )

    def _needs_full_set(self) -> NDArray[np.bool_] | None:
        """Items that need the full contact set, such as robots that lie on their backs; None if they are few."""
        if self._standing is None:
            return None
        scene, slots, limits = self._standing
        if (self._places == slots).all() and self._rows[..., limits].max(initial=0.0) <= 0.0:
            return None
        lying: Any = has_impulse_outside(scene, self._rows, self._places)
        return lying if np.mean(lying) > _MANY else None

    @cached_property
    def _standing(self) -> tuple[Scene, Any, Any] | None:
        """The scene with the reduced contact set, the candidates of its slots, and the full set's rows of joint limits;
        None if there is nothing that it leaves out."""
        scene = self.sim.reduced_scene
        if scene.reduced is None or not scene.full_slots:
            return None
        first, *_ = (*scene.full.limit_rows, 0)
        return scene, np.array(scene.slot_candidates), slice(first, first + len(scene.full.limit_rows))

    def _batch(self, control: tuple[Any, ...]) -> Batch:
        """The inputs of the kernel that differ from item to item."""
        moving = dict(zip(("q", "v", "rows", "places"), self.moving, strict=True))
        inputs = {**moving, "time": self.time, "alive": is_alive(self.status), **self.sim.ground.inputs}
        if control:
            inputs["control"] = some(control[0])
        if self._wrench is not None:
            inputs["wrench"] = self._wrench
        if self.sim.nparameters:
            inputs[PARAMETERS] = self._first.parameters
        return Batch(self.q.shape[:-1], inputs, {name: self._cores(name, x) for name, x in inputs.items()})

    def _solve(
        self, scene: Scene, iterations: float, inputs: dict[str, Any], previous: Results | None
    ) -> tuple[Any, ...]:
        """One period of all items or of some; one of several is computed twice, by the code for batches."""
        if inputs["q"].shape[:-1] == (1,) and self.q.size > self.q.shape[-1]:
            doubled = {name: self._doubled(name, x) for name, x in inputs.items()}
            return tuple(x[:1] for x in self._solve(scene, iterations, doubled, previous))
        moving = [inputs.pop(name) for name in ("q", "v", "rows", "places")]
        time, alive, control = (
            inputs.pop("time"),
            inputs.pop("alive"),
            [inputs.pop(name) for name in ("control",) if name in inputs],
        )
        structured = {**structures(inputs), "limits": SolverLimits(self.sim.tolerance, iterations)}
        found: tuple[Any, ...] = self.control.kernel(
            self.sim.pushed_scene(scene, self._pushed), *moving, time, alive, *control, self.sim.time_step, **structured
        )
        return found

    def _doubled(self, name: str, x: Any) -> Any:
        """An input of one item twice; one that is the same for all items stays."""
        return np.repeat(x, 2, axis=0) if np.ndim(x) > self._cores(name, x) else x

    @staticmethod
    def _cores(name: str, x: Any) -> int:
        """How many axes an input of the kernel has for one item."""
        return np.ndim(x) if name == "heights" else 2 if name == "wrench" else int(name in _VECTORS)

    def _alone(self) -> Callable[[], None]:
        """The arrays of one item, and what takes them through a period."""
        self.q, self.v, self._rows, self._places = map(np.array, (self.q, self.v, self._rows, self._places))
        self._clock, self.alive = np.array(self.time), np.array(float(is_alive(self.status)))
        self._given, self._step = np.zeros(self.sim.scene.control_size), np.array(self.sim.time_step)
        self._own = self._given[: self.sim.nu]
        self.residual, self._count, self.status = (np.array(float(x)) for x in (self.residual, 0.0, self.status))
        most = LONGER if self.sim.reduced_scene.fallback else MAX_ITERATIONS
        return self._bound(self.sim.reduced_scene, most)

    def _bound(self, scene: Scene, patience: float) -> Callable[[], None]:
        moving, (names, numbers) = self.moving, self.packed(patience)
        control = (self._given,) if self.control.takes else ()
        return self.control.kernel.bind(
            scene,
            *moving,
            self._clock,
            self.alive,
            *control,
            self._step,
            *numbers,
            *moving,
            self.residual,
            self._count,
            self.status,
            inputs=names,
        )

    def packed(self, patience: float) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The optional inputs of the kernel: their names, and the arrays to be bound."""
        given = {**structures(self.sim.ground.inputs), "limits": SolverLimits(self.sim.tolerance, patience)}
        if self.sim.nparameters:
            given[PARAMETERS] = self._first.parameters
        names, numbers = self.control.kernel.pack(self.sim.scene, **given)
        return names, tuple(np.array(x) for x in numbers)


def _needs_more(marks: Any) -> bool:
    """Whether an item (…) has a mark that asks for another attempt."""
    return bool((marks != 0.0).any()) and bool(
        ((marks == _NEW) | (marks == NEEDS_ITERATIONS) | (marks == NEEDS_FULL_SET)).any()
    )


def some(x: Any) -> Any:
    """An array (…, n), with one element that means nothing if n is 0."""
    return np.zeros((*np.shape(x)[:-1], 1)) if np.shape(x)[-1] == 0 else x


def report_progress(progress: Callable[[int, State], Any], k: int, runner: Runner) -> tuple[State, Any]:
    """Call a function of the user after a period: the state, and what the function gives."""
    state = runner.state()
    try:
        return state, progress(k, state)
    except Exception as error:
        time = runner.log_time
        raise RunError(
            f"progress failed at {time:g} s: {type(error).__name__}, {error}", time, code="function-failed"
        ) from error
