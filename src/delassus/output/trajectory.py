"""`Trajectory`: recorded states of one robot or a batch, and quantities computed from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.frozen import read_only
from delassus.common.outcomes import members_of, sentence_with_count, worst_of
from delassus.common.types import Objects
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.constrained.rows.references import constraint_error
from delassus.constrained.solvers.dynamics import constrained_dynamics
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.passive import passive_forces
from delassus.errors import short
from delassus.model.links import links_of
from delassus.model.model import sample_of
from delassus.output.arguments import check_items, moments
from delassus.output.checks import ARRAYS, check_fields
from delassus.output.contacts import ContactRecord
from delassus.output.errors import NotRecorded, TimeIndexError, TrajectoryError
from delassus.output.explanation import Explanation
from delassus.output.interpolation import interpolate_state
from delassus.output.measures import mechanical_energy, velocity_error
from delassus.output.replay_record import ReplayRecord
from delassus.output.run_record import RunRecord
from delassus.output.status import MotionStatus
from delassus.step.flags import Mark, describe_marks
from delassus.step.points.statistics import candidate_signs, is_contact_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def _with_items(x: Any, ndim: int) -> Any:
    """An array (times, …, n) with axes for items between, as many as it lacks."""
    return x.reshape(x.shape[0], *(1,) * (ndim - x.ndim), *x.shape[1:])


class Moment(NamedTuple):
    """One moment of a trajectory: time [s], q (…, nq), v (…, nv)."""

    time: float
    q: Floats
    v: Floats


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion, or a batch of them; time is the first axis. One of your own needs times, q, v and its mechanism.

    `simulate_motion` and `Simulation.run` give one. The latter records contacts besides.

    Attributes:
        time: (times,) [s].
        q: Configurations (times, …, nq) [rad, m].
        v: Velocities (times, …, nv) [rad/s, m/s].
        status: (…) numbers of `MotionStatus`; of a simulation (times, …) marks that add up, see `Mark`.
        ended: (…) [s] until when each item was followed; from there on its states repeat.
        steps: (…) how many were made.
        rejected: (…) how many were made again, being too long or in search of an event.
        residual: (…) what is left of the equations of implicit steps, in radians or lengths of the robot; of a
            simulation (times, …) the largest residual of a row [m/s].
        events: By name, (times - 1, …) [s] when they were last between two times; NaN where they were not.
        mechanism: What moves; None if it was loaded without.
        contacts: What a simulation recorded of contacts; None if it is none.
        simulation: The simulation that gave it; None if there was none, or it was loaded without.
        measures: Energy and drift, as far as a file had them.
        parameters: (…, nparameters) of a mechanism that has some, as the motion was simulated with them.
        activation: (times, …, na) of actuators that have a state; None without.
        tally: (times, …, 3 tracked) of shapes that a simulation tracks, see `State.tally`; None without.
        memory: (times, …, n) of a `CompiledPolicy` in the step, see its `unpack`; None without.
        run: What a simulation goes on with besides; None if there was none.
        replay: Inputs of all periods of a run with record="replay"; None without.
        tau: (times, …, nv) generalized forces that were given to a motion, or a function of times, q and v that gives
            them; None if they are not known.

    >>> log = dl.simulate_motion(dl.load("pendulum"), [1.0], times=[0.0, 0.5, 1.0])
    >>> log[-1].q.shape, log.at([0.25]).q.shape
    ((1,), (1, 1))
    """

    time: Floats
    q: Floats
    v: Floats
    status: Any = None
    ended: Any = None
    steps: Any = None
    rejected: Any = None
    residual: Any = None
    events: Mapping[str, Floats] = field(default_factory=dict)
    mechanism: Mechanism | None = None
    contacts: ContactRecord | None = None
    simulation: Any = field(default=None, repr=False)
    measures: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    parameters: Any = field(default=None, repr=False)
    activation: Any = field(default=None, repr=False)
    run: RunRecord | None = field(default=None, repr=False)
    replay: ReplayRecord | None = field(default=None, repr=False)
    tau: Any = field(default=None, repr=False)
    tally: Any = field(default=None, repr=False)
    memory: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in check_fields(vars(self)).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        name = "" if self.mechanism is None else f" of {self.mechanism.model.name!r}"
        batch = self.q.shape[1:-1]
        items = f", {' × '.join(map(str, batch))} items" if batch else ""
        return f"<Trajectory{name}: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s{items}>"

    def __getitem__(self, index: Any) -> Any:
        """A moment, `log[-1]`; a part in time, `log[::10]`; items of a batch, `log[:, 3]`.

        A moment of a simulation's log is the `State` there, from which `run` goes on; else it is a `Moment`.
        """
        first, *items = index if isinstance(index, tuple) and index else (index,)
        environments = tuple(items)
        check_items(environments, self.q.shape[1:-1])
        if isinstance(first, (int, np.integer)) and not isinstance(first, bool):
            if not -len(self) <= first < len(self):
                raise TimeIndexError(f"there is no time {short(str(first), 20)}: the trajectory has {len(self)}.")
            if self.simulation is not None and self.run is not None and self.contacts is not None:
                return self.simulation.resume(self, int(first), environments)
            return Moment(float(self.time[first]), self.q[(first, *environments)], self.v[(first, *environments)])
        try:
            start, stop, step = (first if isinstance(first, slice) else slice(None)).indices(len(self))
        except (TypeError, ValueError, OverflowError):  # a step of zero, or of something else
            start = stop = step = 0
        if not isinstance(first, slice) or step < 1 or stop <= start:
            raise TrajectoryError(
                f"the times of a trajectory are chosen by a number or a slice forwards, not {short(repr(first))}.",
                code="wrong-type",
            )

        def part(x: Any) -> Any:
            """Of an array with a time axis, some times and items; of one without, some items."""
            x = np.asarray(x)
            return x[first][(slice(None), *environments)] if x.ndim >= self.q.ndim - 1 else x[environments]

        events = {} if step > 1 else self.events  # what happened between times that are left out has no place
        return replace(
            self,
            **{name: part(getattr(self, name)) for name in ARRAYS[1:]},
            time=self.time[first],
            events={name: x[start : stop - 1][(slice(None), *environments)] for name, x in events.items()},
            contacts=None if self.contacts is None else self.contacts[first][(slice(None), *environments)],
            measures={name: part(x) for name, x in self.measures.items()},
            parameters=None if self.parameters is None else self.of_items(self.parameters)[environments],
            activation=None if self.activation is None else part(self.activation),
            tally=None if self.tally is None else part(self.tally),
            memory=None if self.memory is None else part(self.memory),
            run=None if self.run is None else self.run.select(first, environments),
            replay=None if environments else self.replay,
            tau=part(self.applied_force) if self.tau is not None else None,
        )

    # --- how it went --------------------------------------------------------------------------------------------------

    @property
    def statuses(self) -> MotionStatus | Mark | Objects:
        """The `MotionStatus` of one item, or an array of them; of a simulation, `Mark`s."""
        kind = MotionStatus if self.contacts is None else Mark
        return members_of(kind, self.status)

    def describe(self) -> str:
        """How it went, in a sentence; of the items that did not get to the end, the worst, where there are several."""
        status = np.asarray(self.status)
        if self.contacts is not None:
            return describe_marks(status) + self._fastest_joint(status & int(Mark.TOO_LONG) != 0)
        worst = worst_of(MotionStatus, status) if status.size else MotionStatus.DONE
        if not status.ndim or worst is MotionStatus.DONE:
            return worst.sentence
        return sentence_with_count(worst, status, "items")

    def explain(self, item: Any = 0, control: ArrayLike | None = None) -> Explanation:
        """What went wrong with an item of a simulation, when, and what its step was like then: a text to print, which
        can also be drawn.

            print(log.explain(3)); log.explain(3).draw()

        The item is made again up to that step, from the last state that was kept and the inputs that
        `run(record="replay")` keeps; the text says what is missing.

        Args:
            item: Which of a batch, by its number or numbers.
            control: (nu,) of the control period in question, where it was not recorded; None for none.
        """
        from delassus.output.explain import explain

        return explain(self, item, control)

    def _fastest_joint(self, chosen: Any) -> str:
        """A sentence about the joint that turns fastest in chosen states (times, …), and the step that follows it."""
        if self.mechanism is None or not chosen.any():
            return ""
        links = links_of(sample_of(self.mechanism.model)).links
        turning = [link.v + k for link in links for k, direction in enumerate(link.motion.directions) if direction >= 3]
        speed = np.abs(self.v[chosen][:, turning]).max(0)
        k, fastest = turning[int(np.argmax(speed))], float(speed.max())
        starts = zip(self.mechanism.model.joints, self.mechanism.model.v_starts, strict=True)
        name = next(joint.name for joint, start in starts if start <= k < start + joint.kind.nv)
        return f" The joint {name!r} turns at {fastest:.3g} rad/s: take a time_step of {0.2 / fastest:.2g} s or less."

    # --- what follows from states -------------------------------------------------------------------------------------

    @cached_property
    def energy(self) -> Floats:
        """(times, …) [J]: kinetic, of gravity, and of the springs in the joints."""
        if "energy" in self.measures:
            return self.measures["energy"]
        return read_only(mechanical_energy(self._require("energies"), self.q, self.v, **self._mechanism_inputs))

    @cached_property
    def drift(self) -> Floats:
        """(times, …) [m, rad]: the largest error of position of any constraint."""
        if "drift" in self.measures:
            return self.measures["drift"]
        mechanism = self._require("drift")
        return self._worst(
            constraint_error(mechanism, self.q, time=self._times, **self._mechanism_inputs) if mechanism.m else None
        )

    @cached_property
    def velocity_drift(self) -> Floats:
        """(times, …) [m/s, rad/s]: the largest velocity of any constraint against its reference."""
        if "velocity_drift" in self.measures:
            return self.measures["velocity_drift"]
        mechanism = self._require("drift")
        return self._worst(
            velocity_error(mechanism, self.q, self.v, time=self._times, **self._mechanism_inputs)
            if mechanism.m
            else None
        )

    @cached_property
    def applied_force(self) -> Floats:
        """(times, …, nv) generalized forces [N·m, N] that were given to a motion, without springs and dampers."""
        if self.tau is None:
            raise NotRecorded("this trajectory has no applied forces: only simulate_motion records them.")
        tau = self.tau(self._times, self.q, self.v) if callable(self.tau) else self.tau
        return read_only(np.broadcast_to(_with_items(np.asarray(tau), self.q.ndim), self.v.shape))

    @cached_property
    def constraint_force(self) -> Floats:
        """(times, …, m) [N, N·m] forces of the mechanism's constraints, on the first frame of each, in its axes.

        Of a motion those of its states; of a simulation the mean over the last step of time before.
        """
        mechanism = self._require("constraint forces")
        if self.contacts is not None:
            if self.simulation is None:
                raise NotRecorded("the log has no simulation, which is needed for the rows of its constraints.")
            scene = self.simulation.scene
            return read_only(self.impulse[..., scene.bilateral] / self.contacts.time_step)
        if not mechanism.m:
            return read_only(np.zeros((*self.q.shape[:-1], 0)))
        inputs: dict[str, Any] = self._mechanism_inputs
        tau = self.applied_force + passive_forces(mechanism.model, self.q, self.v, **inputs)
        if self.parameters is not None:
            inputs = {
                PARAMETERS: np.broadcast_to(
                    self.of_items(self.parameters), (*self.q.shape[:-1], np.shape(self.parameters)[-1])
                )
            }
        times = np.broadcast_to(self._times, self.q.shape[:-1])
        solution = constrained_dynamics(mechanism, self.q, self.v, tau, time=times, method="prox_pv", **inputs)
        return read_only(np.asarray(solution.force))

    def at(self, times: ArrayLike) -> Moment:
        """States (…) between the times of the trajectory: cubic along the way from each to the next (dense output).

        Errors go with the fourth power of the distance of the times, and q keeps to its manifold.
        """
        requested = moments("times", times, self.time[0], self.time[-1])
        if len(self) < 2:
            raise TrajectoryError(
                "this trajectory has a single time, so there is nothing to interpolate.", code="nothing-to-do"
            )
        k = np.clip(np.searchsorted(self.time, requested, side="right") - 1, 0, len(self) - 2)
        span = self.time[k + 1] - self.time[k]
        batch = (...,) + (None,) * (self.q.ndim - 2)
        share, span = ((requested - self.time[k]) / span)[batch], span[batch]
        robot = self._require("states between its times")
        states = interpolate_state(
            robot, self.q[k], self.v[k], self.q[k + 1], self.v[k + 1], share, span, **self._mechanism_inputs
        )
        return Moment(requested, *states)  # type: ignore[arg-type]

    # --- what simulations record besides ------------------------------------------------------------------------------

    @property
    def impulse(self) -> Floats:
        """(times, …, m) [N·s, N·m·s]: of each contact t1, t2, n (and moments, as `contacts.rows` says), then of
        constraints, joint limits, dry friction."""
        return self._require_recorded("impulses").impulse

    @property
    def contact_impulse(self) -> Floats:
        """(times, …, slots, 3) t1, t2, n of each contact [N·s]."""
        return self._require_recorded("contacts").contact_impulse

    @property
    def contact_force(self) -> Floats:
        """(times, …, slots, 3) t1, t2, n of each contact [N], the mean over the last step of time before."""
        return self._require_recorded("contacts").contact_force

    @property
    def contact_moment(self) -> Floats:
        """(times, …, slots, 3) moments about t1, t2, n of each contact [N·m], of rolling and torsional friction."""
        return self._require_recorded("contacts").contact_moment

    def normal_force(self, shape: str) -> Floats:
        """(times, …) the normal force [N] on one shape, all of its points together.

        If the log knows its simulation, also on all shapes of a body, by the name of its joint, link or a frame on it,
        or of a pair, such as "foot|ground".
        """
        contacts = self._require_recorded("contacts")
        is_known = isinstance(shape, str) and self.simulation is not None and shape not in contacts.shapes
        if is_known and is_contact_target(self.simulation.scene, shape):
            signs = np.abs(candidate_signs(self.simulation.scene, shape))[contacts.contact.astype(int)]
            return np.asarray((signs * contacts.contact_force[..., 2]).sum(-1))
        return contacts.normal_force(shape)

    # --- files and pictures -------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file of NumPy (.npz), with energies and drift, without its mechanism or simulation.

        A file that was there is replaced when all is written.
        """
        from delassus.output.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], of: Any = None) -> Trajectory:
        """Read what `save` wrote.

        Films, and states between the times, need to know what it is `of`: a mechanism, a model or a simulation.
        """
        from delassus.output.files import load

        return load(path, of)

    def plot(self, label: str | None = None, item: int | Iterable[int] | None = None, ax: Axes | None = None) -> Axes:
        """A drawing over time, with matplotlib; gives its axes.

        Args:
            label: "q", "v", "energy", "drift", "velocity_drift"; of simulations also "contact_force", "impulse" and
                "residual". By default "contact_force" if contacts were recorded, else "q".
            item: Which of a batch; by default the first sixteen.
            ax: Where to draw; a new figure by default.
        """
        from delassus.output.plots import plot

        return plot(self, label, item, ax)

    def draw(
        self,
        times: int | ArrayLike = 6,
        item: int = 0,
        *,
        turn: float = -0.9,
        rise: float = 0.25,
        axes: Objects | None = None,
    ) -> Objects:
        """Drawings of a robot at several times, side by side, with ground and contact forces; with matplotlib.

        Gives the axes, an array of them.

        Args:
            times: How many drawings, spread evenly, or their times [s].
            item: Which of a batch.
            turn: Where one looks from, about the vertical [rad].
            rise: And above the horizontal [rad].
            axes: Where to draw, one for each time; a new figure by default.
        """
        from delassus.output.strip import draw

        return draw(self, times, item, turn, rise, axes)

    def save_html(
        self, path: str | os.PathLike[str], items: Iterable[int] | None = None, frames_per_second: float = 50.0
    ) -> None:
        """Write one file that plays the robots in any browser, offline: shapes, ground and contact forces.

        Args:
            path: Of the file.
            items: Numbers of the items of a batch that are shown; by default the first sixteen.
            frames_per_second: Of the film; states in between are left out.
        """
        from delassus.output.film import save_html

        save_html(self, path, items, frames_per_second)

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _times(self) -> Floats:
        return self.time[(...,) + (None,) * (self.q.ndim - 2)]

    @property
    def _mechanism_inputs(self) -> dict[str, Any]:
        """What kernels of its mechanism take besides."""
        return {} if self.parameters is None else {PARAMETERS: self.parameters}

    def of_items(self, x: ArrayLike) -> Floats:
        """An array (…, n) with all axes of the batch."""
        try:
            return np.broadcast_to(x, (*self.q.shape[1:-1], np.shape(x)[-1]))
        except (IndexError, ValueError):
            raise TrajectoryError(
                f"{short(repr(x))} is no array for the items {self.q.shape[1:-1]}.", code="wrong-shape"
            ) from None

    def _worst(self, rows: Any) -> Floats:
        return read_only(np.zeros(self.q.shape[:-1]) if rows is None else np.abs(rows).max(-1))

    def _require(self, label: str) -> Mechanism:
        if self.mechanism is None:
            raise NotRecorded(
                f"this trajectory has no mechanism, which is needed for {label}: load it with one, "
                "Trajectory.load(path, mechanism)."
            )
        return self.mechanism

    def _require_recorded(self, label: str) -> ContactRecord:
        if self.contacts is None:
            raise NotRecorded(f"this trajectory has no {label}: dl.Simulation records them, simulate_motion does not.")
        return self.contacts
