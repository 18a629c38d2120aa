"""`Runner`: the arrays of the current state of a run, and the calls that advance them by a control period.

- One environment: its arrays are bound to the kernel once and change in place. This avoids the overhead of a NumPy
  call, several times the kernel's own time. If no Python function is called between periods, many periods are made in
  one call (`chunked_run`).
- Small batches are bound for their first attempt (`bound.small_batch`).
- Larger batches call the kernel, which uses threads.

Every period is first solved with the reduced contact set and few iterations. Environments for which this is not enough
are rolled back, and collected for a second call with more iterations or with the full contact set. The result of an
environment never depends on the others.
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
from delassus.simulation.policies.kernels import kernel_with, shared_values
from delassus.simulation.policies.policy import CompiledPolicy
from delassus.simulation.pushes import Push, check_push, kicked, push_at
from delassus.simulation.setup import Setup
from delassus.simulation.state import State, is_alive
from delassus.step.flags import Mark
from delassus.step.period.hooks import COUNTERS
from delassus.step.scene import ARTICULATED, Scene
from delassus.step.stages.collide import has_impulse_outside
from delassus.step.stages.solve import LONGER, QUICKLY
from delassus.step.stages.tree_problem import PATIENTLY
from delassus.step.stages.types import MAX_ITERATIONS, SolverLimits

_FROZEN: Final = int(Mark.FROZEN)
NEEDS_ITERATIONS: Final = float(Mark.NEEDS_ITERATIONS)
NEEDS_FULL_SET: Final = float(Mark.NEEDS_FULL_SET)

_NEW: Final = -1.0
"""The flag of environments before the first attempt."""

_QUICKLY_BY_TREE: Final = 6.0
"""Iterations inside the articulated-body recursion before an environment is left to a second call. Standing robots take
two to four on average, and a sixth of the environments of the slowest more than six."""

_BEYOND_A_VECTOR: Final = 9
"""Least number of environments for which an attempt with `LONGER` iterations precedes that with more. Fewer fit into a
SIMD vector of doubles."""

_MANY: Final = 0.05
"""Fraction of environments that need the full contact set above which it pays to solve them with it at once."""


_VECTORS: Final = frozenset({"q", "v", "rows", "places", "control", "normal", PARAMETERS})
"""Inputs of the kernel that are vectors for one environment."""

_SECTIONS: Final = ("impulse", "contact", "activation", "tally", "memory")
"""Parts of a state that the arrays of rows and contacts consist of."""

_LONG: Final = 200
"""Runs of at least so many control periods compile all their kernels before the first period."""

_SEVERAL: Final = 16
"""Batches of at least so many environments compile all kernels at once: one of them will need another than the
first."""


class Runner:
    """The current state of a run, by the names of `State`; bound arrays change with every step.

    Attributes:
        made: Number of control periods of the run so far.
        log_time: The common time [s] of all environments; where their times differ, the time since the run began.
        consistent: Whether arrays, time and count belong to one state. Ctrl-C may come in the middle of a step.
        given: The controls of the last period, as a tuple.
        pushed: The push of the last period, or None.
    """

    def __init__(self, sim: Setup, state: State, control: Control, bound: bool = True, pushes: Any = None) -> None:
        self.policy = policy = control.policy
        self.sim = sim if policy is None else sim.with_memory(policy.size + COUNTERS)
        sim, self.control = self.sim, control
        self.time, self._first, self.made = state.time, state, 0
        times = np.ravel(state.time)
        self.log_time = float(times[0]) if times.size and (times == times[0]).all() else 0.0
        self.q, self.v, self._rows, self._places = self._moving_of(state)
        self.residual, self.status = state.residual, state.status  # type: Any, Any
        plain = all(np.ndim(x) == (name == "normal") for name, x in sim.ground.inputs.items() if name != "heights")
        same = plain and not sim.nparameters and "heights" not in sim.ground.inputs
        self.alone = not state.q.shape[:-1] and plain and not sim.nparameters
        self.small = same and bound and pushes is None and state.q.ndim == 2 and 0 < len(state.q) <= LARGEST
        self._small: SmallBatch | None = None
        self._bound_rescues: dict[tuple[int, float], Callable[[], None]] = {}
        carried = state.memory.shape[-1] if policy is None else policy.size
        self._period, scene = sim.period, sim.scene
        self._sizes = (scene.m, scene.slots, scene.na, scene.tally_size, carried)
        self._weights: list[Any] = []
        self._tick = self._alone() if self.alone and bound and pushes is None else None
        self.consistent = True
        self._pushes, self._pushed, self._wrench = pushes, (), None  # type: Any, tuple[str, ...], Any
        self.given: tuple[Any, ...] = ()
        self.pushed: RecordedPush | None = None

    def _moving_of(self, state: State) -> tuple[Any, ...]:
        """The arrays of a state that a period changes, in the dtype of the step."""
        rows = state.rows
        if self.policy is not None:
            counters = np.stack(np.broadcast_arrays(state.seed, state.stream, state.count), -1)
            rows = np.concatenate([rows, self.policy.fill(state.memory, state.batch), counters], axis=-1)
        arrays = state.q, state.v, pad_empty(rows), pad_empty(state.contact)
        return tuple(np.asarray(x, self.sim.dtype) for x in arrays)

    @property
    def moving(self) -> tuple[Any, ...]:
        """The arrays that a period changes: q, v, rows and candidates of the contact slots."""
        return self.q, self.v, self._rows, self._places

    @property
    def bound(self) -> bool:
        """Whether the arrays are bound to the kernel, as those of one environment."""
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
    def memory(self) -> Any:
        """The memory (…, n) of the policy, or that of the first state, which runs without a policy keep."""
        if self.policy is None:
            return self._first.memory
        return self._rows[..., self.carried]

    @property
    def carried(self) -> slice:
        """Where the memory of a policy is in the arrays of rows."""
        first = self._sizes[0] + self._sizes[2] + self._sizes[3]
        return slice(first, first + self._sizes[4])

    @property
    def contact(self) -> Any:
        """The candidates (…, slots) of the contacts of the last step."""
        return self._places[..., : self._sizes[1]]

    @property
    def bound_control(self) -> Any:
        """(nu,) controls of the next period, in the bound arrays of one environment."""
        return self._bound_control

    def step(self, k: int) -> None:
        """Make the k-th control period."""
        q, v = self.q, self.v
        if self.control.asks:  # users may modify these
            q, v = q.astype(float), v.astype(float)
        time = self.time.copy() if self.control.asks and np.ndim(self.time) else self.time
        self.given = given = self.control.at(k, time, q, v)
        if self._tick is not None:
            if given:
                self._bound_control[:] = given[0]
            self.advance()
            return
        if self._pushes is not None:
            self._push()
        self._call(given)
        self._count_period()

    def advance(self) -> None:
        """Advance the bound arrays by one period."""
        self._clock.fill(self.time)
        self.consistent = False
        if self._tick is not None:
            self._tick()
        if self.status.item():
            self._look_again()
        self._count_period()

    def _push(self) -> None:
        """Add the kick of the period to the velocity, and keep its wrenches for the kernel."""
        push = push_at(self._pushes, *(np.array(x)[()] for x in (self.time, self.q, self.v)))
        frames, self._wrench, kick = check_push(self.sim, Push() if push is None else push, self.q.shape[:-1])
        self._pushed, self.pushed = frames, RecordedPush(frames, self._wrench, kick)
        if kick is not None:
            v, self.status = kicked(self.v, self.status, kick)
            self.v = np.asarray(v, self.sim.dtype)
            if isinstance(self._pushes, Push):  # the kick of a constant push acts once
                self._pushes = replace(self._pushes, kick=None)

    def _count_period(self) -> None:
        self.time, self.log_time, self.made = self.time + self._period, self.log_time + self._period, self.made + 1
        self.consistent = True

    def compile(self) -> None:
        """Compile all kernels that periods may need, so that no period waits for a compiler."""
        names, several = self.packed(MAX_ITERATIONS)[0], self.q.size > self.q.shape[-1]
        wrench: tuple[str, ...] = ()
        if isinstance(self._pushes, Push) and self._pushes.wrench:
            names, wrench = (*names, "wrench"), tuple(self._pushes.wrench)
        done, form = self.sim.compiled.setdefault(self.control.kernel, set()), (names, several, wrench)
        if form in done:
            return
        sim = self.sim
        # Newton's method for many bodies takes as long to compile as all others, and most scenes never need it.
        rescue = () if sim.scene.many_bodies is not None else (sim.fallback(sim.scene),)
        scenes = {id(x): x for x in (sim.reduced_scene, sim.scene, *rescue)}
        for scene in scenes.values():  # by identity: comparing large scenes takes longer than stepping them
            used = self.sim.with_wrenches(scene, wrench)
            inputs = self.control.kernel.optional_inputs(used, names)
            self.control.kernel.warm_up(used, batch=several, dtype=sim.dtype, inputs=inputs)
        done.add(form)

    def compile_ahead(self, periods: int) -> None:
        """Compile all kernels if a run is long or has many environments."""
        if periods >= _LONG or self.q.size >= _SEVERAL * self.q.shape[-1]:
            self.compile()

    @cached_property
    def _rescues(self) -> tuple[tuple[float, Scene, float], ...]:
        """Flags of earlier attempts, the scene with which a single environment with this flag is solved again, and the
        number of iterations."""
        reduced, full = self.sim.reduced_scene, self.sim.scene
        if not repeats_exactly(reduced):
            return self._schedule[1:]
        if reduced.fallback is None:
            return ((NEEDS_FULL_SET, full, MAX_ITERATIONS),)
        return (NEEDS_FULL_SET, full, PATIENTLY), (NEEDS_ITERATIONS, self.sim.fallback(full), MAX_ITERATIONS)

    def _look_again(self) -> None:
        """Handle flags: solve again with more iterations or the full contact set, or freeze the environment."""
        for flag, scene, most in self._rescues:
            if self.status.item() == flag:
                tick = self._bound_rescues.get((id(scene), most))
                if tick is None:
                    tick = self._bound_rescues[id(scene), most] = self._bound(scene, most)
                tick()
        if int(self.status) & _FROZEN:
            self.alive[...] = 0.0

    def go_on(self, state: State) -> None:
        """Continue from another state of the same environments; the number of periods of the run is kept."""
        new = self._moving_of(state)
        if self._tick is None:
            self.q, self.v, self._rows, self._places = map(np.array, new)
            self.residual, self.status = state.residual, state.status
        else:
            for array, x in zip(self.moving, new, strict=True):
                array[...] = x
            self.residual[...], self.status[...] = state.residual, state.status
            self.alive.fill(float(is_alive(state.status)))
        self.time = state.time
        self._first = replace(state, count=state.count - self.made)

    def takes(self, state: Any, control: Any) -> bool:
        """Whether a state and controls can be copied without checks: same batch, plain arrays of doubles."""
        if isinstance(control, CompiledPolicy):
            known = control is self.policy or kernel_with(control, self.sim.scene) is self.control.kernel
            u = np.zeros((*self.q.shape[:-1], self.sim.nu)) if control.reference is None else control.reference
        else:
            known, u = self.policy is None, control
        return (
            type(state) is State
            and known
            and type(u) is np.ndarray
            and u.dtype == np.float64
            and u.shape == (*self.q.shape[:-1], self.sim.nu)
            and state.q.shape == self.q.shape
            and state.v.shape == self.v.shape
            and tuple(getattr(state, name).shape[-1] for name in _SECTIONS) == self._sizes
        )

    def once(self, state: State, control: Any) -> State:
        """The state after one control period with this control, instead of that of the runner."""
        if isinstance(control, CompiledPolicy):
            self._use(control)
            batch = (*self.q.shape[:-1], self.sim.nu)
            control = np.zeros(batch) if control.reference is None else control.reference
        if self._tick is None:
            self.q, self.v, self._rows, self._places = self._moving_of(state)
            self.time, self.status, self._first, self.made = state.time, state.status, state, 0
            self._call((control,))
            self._count_period()
            return self._state_of(self.q, self.v, self._rows, self._places, self.residual)
        self.q[:], self.v[:] = state.q, state.v
        if self.policy is None:
            for name in _SECTIONS[:-1]:
                getattr(self, name)[:] = getattr(state, name)
        else:
            self._rows[:], self._places[:] = self._moving_of(state)[2:]
        self.time, self._first, self.made = state.time, state, 0
        self.alive.fill(0.0 if state.status.item() & _FROZEN else 1.0)
        self._bound_control[:] = control
        self.advance()
        return self.state()

    def _use(self, policy: CompiledPolicy) -> None:
        """Advance by another policy with the same functions and shapes from now on."""
        if policy is not self.policy:
            self.policy, self.control = policy, replace(self.control, policy=policy)
            for array, x in zip(self._weights, policy.shared_arrays(self.sim.dtype), strict=False):
                array[...] = x

    def state(self) -> State:
        """A copy of the current state."""
        q, v, rows, places = (x.copy() for x in self.moving)
        return self._state_of(q, v, rows, places, self.residual.copy())

    def _state_of(self, q: Any, v: Any, rows: Any, places: Any, residual: Any) -> State:
        """The current state, in these arrays."""
        m, slots, na, tallies, _ = self._sizes
        first = self._first
        q, v, rows, places, residual = (np.asarray(x, float) for x in (q, v, rows, places, residual))
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
            memory=first.memory if self.policy is None else rows[..., self.carried],
            stream=first.stream,
            parameters=first.parameters,
        )

    def _call(self, given: tuple[Any, ...]) -> None:
        needs_full_set, before = self._needs_full_set(), None
        if needs_full_set is not None:
            zeros = np.zeros(needs_full_set.shape)
            before = (*self.moving, zeros, zeros, np.where(needs_full_set, NEEDS_FULL_SET, _NEW))
        elif self.small:
            if self._small is None:
                _, scene, most = self._schedule[0]
                names, shared = self.packed(most)
                inputs = names, (np.array(self.sim.time_step, self.sim.dtype), *shared)
                self._small = SmallBatch(self.control.kernel, scene, self.moving, self.sim.nu, inputs)
            before = self._small.solve(self.moving, self.time, is_alive(self.status), given)
        results = before
        if results is None or _needs_more(results[-1]):
            attempts = [
                Attempt(partial(self._solve, used, most), has_flag(flag, _least(used, most)))
                for flag, used, most in self._schedule
            ]
            results = retry(attempts, self._batch(given), results=before)
        self.consistent = False
        self.q, self.v, self._rows, self._places, self.residual, _, mark = results
        self.status = mark.astype(np.int64)

    @cached_property
    def _schedule(self) -> tuple[tuple[float, Scene, float], ...]:
        """The attempts at a period: the flag of environments that need it, the scene, and the number of iterations."""
        reduced, full = self.sim.reduced_scene, self.sim.scene
        if reduced.method != ARTICULATED:
            return (
                (_NEW, reduced, QUICKLY),
                (NEEDS_ITERATIONS, reduced, LONGER),
                (NEEDS_ITERATIONS, self.sim.fallback(reduced), MAX_ITERATIONS),
                (NEEDS_FULL_SET, full, MAX_ITERATIONS),
            )
        # The recursion leaves few environments unsolved: one kernel with the Delassus matrix of the full set serves
        # them all. Those of the reduced set go there at once, because the recursion with the full set solved almost
        # none of them.
        rescue = (NEEDS_ITERATIONS, self.sim.fallback(full), MAX_ITERATIONS)
        return (
            (_NEW, reduced, _QUICKLY_BY_TREE),
            (NEEDS_ITERATIONS, reduced, LONGER),
            (NEEDS_ITERATIONS, reduced, PATIENTLY),
            rescue,
            (NEEDS_FULL_SET, full, _QUICKLY_BY_TREE),
            (NEEDS_ITERATIONS, full, LONGER),
            (NEEDS_ITERATIONS, full, PATIENTLY),
            rescue,
        )

    def _needs_full_set(self) -> NDArray[np.bool_] | None:
        """(…) whether environments need the full contact set, such as robots on their backs; None if these are few."""
        if self._standing is None:
            return None
        scene, slots, limits = self._standing
        if (self._places == slots).all() and self._rows[..., limits].max(initial=0.0) <= 0.0:
            return None
        needs_full_set: Any = has_impulse_outside(scene, self._rows, self._places)
        return needs_full_set if np.mean(needs_full_set) > _MANY else None

    @cached_property
    def _standing(self) -> tuple[Scene, Any, Any] | None:
        """The scene with the reduced contact set, the candidates of its slots, and the rows of joint limits that it
        omits; None if the reduced set omits nothing."""
        scene = self.sim.reduced_scene
        if scene.reduced is None or not scene.full_slots:
            return None
        outside = () if scene.limit_slots else scene.full.limit_rows
        first, *_ = (*outside, 0)
        return scene, np.array(scene.slot_candidates), slice(first, first + len(outside))

    def _batch(self, control: tuple[Any, ...]) -> Batch:
        """The inputs of the kernel that may differ between environments."""
        moving = dict(zip(("q", "v", "rows", "places"), self.moving, strict=True))
        inputs = {**moving, "time": self.time, "alive": is_alive(self.status), **self.sim.ground.inputs}
        if control:
            inputs["control"] = pad_empty(control[0])
        if self._wrench is not None:
            inputs["wrench"] = self._wrench
        if self.sim.nparameters:
            inputs[PARAMETERS] = self._first.parameters
        return Batch(self.q.shape[:-1], inputs, {name: self._cores(name, x) for name, x in inputs.items()})

    def _solve(
        self, scene: Scene, iterations: float, inputs: dict[str, Any], previous: Results | None
    ) -> tuple[Any, ...]:
        """One period of all environments or a selection. A single one of a batch is computed twice, so that the code
        for batches is used."""
        if inputs["q"].shape[:-1] == (1,) and self.q.size > self.q.shape[-1]:
            doubled = {name: self._doubled(name, x) for name, x in inputs.items()}
            return tuple(x[:1] for x in self._solve(scene, iterations, doubled, previous))
        moving = [inputs.pop(name) for name in ("q", "v", "rows", "places")]
        time, alive, control = (
            inputs.pop("time"),
            inputs.pop("alive"),
            [inputs.pop(name) for name in ("control",) if name in inputs],
        )
        structured = {**structures(inputs), "limits": self._limits(iterations), **self._shared}
        scene = self.sim.with_wrenches(scene, self._pushed)
        results: tuple[Any, ...] = self.control.kernel(
            scene, *moving, time, alive, *control, self.sim.time_step, dtype=self._dtype, **structured
        )
        return results

    @property
    def _dtype(self) -> np.dtype[Any] | None:
        """The dtype of a call of the kernel; None for float64, which converts nothing."""
        return None if self.sim.dtype == np.float64 else self.sim.dtype

    def _doubled(self, name: str, x: Any) -> Any:
        """An input of one environment, repeated; inputs that all environments share are unchanged."""
        return np.repeat(x, 2, axis=0) if np.ndim(x) > self._cores(name, x) else x

    @staticmethod
    def _cores(name: str, x: Any) -> int:
        """Number of axes that an input of the kernel has for one environment."""
        return np.ndim(x) if name == "heights" else 2 if name == "wrench" else int(name in _VECTORS)

    def _alone(self) -> Callable[[], None]:
        """Allocate the arrays of one environment, and bind the function that advances them by a period."""
        self.q, self.v, self._rows, self._places = map(np.array, (self.q, self.v, self._rows, self._places))
        dtype = self.sim.dtype
        self._clock, self.alive = np.array(self.time, dtype), np.array(is_alive(self.status), dtype)
        self._given, self._step = np.zeros(self.sim.scene.control_size, dtype), np.array(self.sim.time_step, dtype)
        self._bound_control = self._given[: self.sim.nu]
        self.residual, self._count, self.status = (np.array(x, dtype) for x in (self.residual, 0.0, self.status))
        return self._bound(self.sim.reduced_scene, iterations_alone(self.sim.reduced_scene))

    def _bound(self, scene: Scene, max_iterations: float) -> Callable[[], None]:
        moving, (names, shared) = self.moving, self.packed(max_iterations)
        return self.control.kernel.bind(
            scene,
            *moving,
            self._clock,
            self.alive,
            self._given,
            self._step,
            *shared,
            *moving,
            self.residual,
            self._count,
            self.status,
            dtype=self.sim.dtype,
            inputs=names,
        )

    def _limits(self, iterations: float) -> SolverLimits:
        """The number of iterations is an input even where it is the default, so that all attempts share a kernel."""
        return SolverLimits(self.sim.tolerance, np.array(iterations))

    @property
    def _shared(self) -> dict[str, Any]:
        """The shared arrays of the policy, as the kernel takes them."""
        return {} if self.policy is None else shared_values(self.policy, self.sim.dtype)

    def packed(self, max_iterations: float) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The optional inputs of the kernel: their names, and the arrays to be bound. All kernels that are bound read
        the shared arrays of a policy at one place, where those of another one can be put."""
        inputs = {**structures(self.sim.ground.inputs), "limits": self._limits(max_iterations), **self._shared}
        if self.sim.nparameters:
            inputs[PARAMETERS] = self._first.parameters
        names, arrays = self.control.kernel.pack(self.sim.scene, **inputs)
        bound = [np.array(x, self.sim.dtype) for x in arrays]
        if self.policy is not None and self.policy.shared and not self.sim.nparameters:
            self._weights = self._weights or bound[-len(self.policy.shared) :]
            bound[-len(self._weights) :] = self._weights
        return names, tuple(bound)


def repeats_exactly(scene: Scene) -> bool:
    """Whether a step that is solved has the same result for any larger number of iterations.

    Other methods may end within the tolerance only because of their number of iterations. All environments must make
    the same attempts with these, so that a result does not depend on the batch.
    """
    return scene.method in ("auto", ARTICULATED)


def iterations_alone(scene: Scene) -> float:
    """The number of iterations of the first attempt for a single environment."""
    if not repeats_exactly(scene):
        return QUICKLY
    return PATIENTLY if scene.fallback else MAX_ITERATIONS


def _least(scene: Scene, iterations: float) -> int:
    """The least number of environments for which an attempt is made."""
    return _BEYOND_A_VECTOR if iterations == LONGER and repeats_exactly(scene) else 1


def _needs_more(marks: Any) -> bool:
    """Whether an environment has a flag that asks for another attempt."""
    return bool((marks != 0.0).any()) and bool(
        ((marks == _NEW) | (marks == NEEDS_ITERATIONS) | (marks == NEEDS_FULL_SET)).any()
    )


def pad_empty(x: Any) -> Any:
    """An array (…, n) unchanged, or zeros (…, 1) if n is 0: kernels take no empty arrays."""
    return np.zeros((*np.shape(x)[:-1], 1)) if np.shape(x)[-1] == 0 else x


def report_progress(progress: Callable[[int, State], Any], k: int, runner: Runner) -> tuple[State, Any]:
    """Call the user's `progress` after a period; return the state and the result of the call."""
    state = runner.state()
    try:
        return state, progress(k, state)
    except Exception as error:
        time = runner.log_time
        raise RunError(
            f"progress failed at {time:g} s: {type(error).__name__}, {error}", time, code="function-failed"
        ) from error
