"""Trajectories of large systems."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.archives import read_arrays, write_arrays
from delassus.common.checks import check_integer
from delassus.common.outcomes import worst_of
from delassus.constrained.solvers.status import Status
from delassus.errors import short
from delassus.output.errors import TrajectoryFileError
from delassus.particles.algebra.memory import check_bytes
from delassus.particles.description.checks import ParticlesError
from delassus.particles.description.particles import Particles
from delassus.particles.motion.drawing import draw_state, plot_curve
from delassus.particles.motion.energy import total_energy
from delassus.particles.motion.film import Places, save_film
from delassus.particles.motion.state import ParticleState, check_state, initial_state
from delassus.particles.motion.step import Stepper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_ARRAYS = ("time", "x", "v", "orientations", "status", "residual", "contacts")
_END = ("impulse", "touched", "contact")
INTERRUPTED = "The motion was interrupted before its last step."


@dataclass(frozen=True, eq=False)
class ParticleTrajectory:
    """A motion of a large system; time is the first axis.

    Attributes:
        particles: The system.
        time: (times,) [s].
        x: (times, n + b, 3) positions [m].
        v: (times, n + 2 b, 3) velocities [m/s, rad/s].
        orientations: (times, b, 4) quaternions of bricks.
        status: (times,) values of `Status`: the worst of the steps since the previous time.
        residual: (times,) the largest residual of these steps.
        contacts: (times,) number of contacts.
        end: The last state, in which a motion can continue.
        interrupted: Whether Ctrl-C ended the motion before its last step.

    >>> dl.particles.simulate_particles(dl.particles.rope(segments=3), steps=2).x.shape
    (3, 4, 3)
    """

    particles: Particles
    time: Array
    x: Array
    v: Array
    orientations: Array
    status: NDArray[np.int64]
    residual: Array
    contacts: NDArray[np.int64]
    end: ParticleState
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"<{self.particles.name}: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s>"

    def __getitem__(self, k: int) -> ParticleState:
        """The state at one of the times, without impulses."""
        return ParticleState(
            float(self.time[k]), self.x[k], self.v[k], self.orientations[k], np.zeros(self.particles.rows)
        )

    @property
    def energy(self) -> Array:
        """(times,) kinetic, elastic and gravitational energy [J]."""
        return np.array([total_energy(self.particles, self[k]) for k in range(len(self))])

    @property
    def speed(self) -> Array:
        """(times,) speed of the fastest particle or brick [m/s]."""
        moving = self.v[:, : self.particles.n + self.particles.b]
        return np.asarray(np.linalg.norm(moving, axis=-1).max(-1, initial=0.0))

    def describe(self) -> str:
        """Describe the status of the worst step in a sentence, and whether the motion was interrupted."""
        worst = worst_of(Status, self.status)
        count = int(np.sum(self.status == worst))
        end = f" {INTERRUPTED}" if self.interrupted else ""
        if worst is Status.CONVERGED:
            return f"{worst.sentence}{end}"
        return f"{worst.sentence[:-1]}, at {count} of {len(self)} times.{end}"

    def plot(self, label: str = "energy", ax: Axes | None = None) -> Axes:
        """Plot "energy", "speed", "residual" or "contacts" over time."""
        return plot_curve(label, self.time, lambda: np.asarray(getattr(self, label)), ax)

    def draw(self, k: int = -1, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the system in space, at one of the times."""
        return draw_state(self.particles, self[k], ax, **options)

    def save_html(self, path: str | os.PathLike[str], frames_per_second: float = 30.0) -> None:
        """Write a film as a single HTML file."""
        save_film(self.particles, Places(self.time, self.x, self.orientations), path, frames_per_second)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays to a NumPy file (.npz), without the system; an existing file is replaced when writing has
        succeeded.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS} | {name: getattr(self.end, name) for name in _END}
        arrays["interrupted"] = np.array(self.interrupted)
        write_arrays("the motion", path, arrays, TrajectoryFileError)

    @classmethod
    def load(cls, path: str | os.PathLike[str], particles: Particles) -> ParticleTrajectory:
        """Read a file written by `save` for this system; simulations continue from `end`."""
        arrays = read_arrays("the motion", path, TrajectoryFileError)
        missing = [name for name in (*_ARRAYS, *_END) if name not in arrays]
        if missing:
            raise TrajectoryFileError(
                f"{path} is not a motion of a large system: it has no {', '.join(missing)}.", code="other-file"
            )
        _check_shapes(path, arrays, particles)
        last = {name: arrays[name][-1] for name in ("x", "v", "orientations")}
        end = ParticleState(float(arrays["time"][-1]), **last, **{name: arrays[name] for name in _END})
        check_state(particles, end)
        interrupted = bool(np.any(arrays.get("interrupted", False)))  # older files do not say
        return cls(particles, **{name: arrays[name] for name in _ARRAYS}, end=end, interrupted=interrupted)


def _check_shapes(path: Any, arrays: dict[str, NDArray[Any]], particles: Particles) -> None:
    """Raise an error unless the arrays of a file have the same times, and the particles of this system."""
    times, touched = arrays["time"].shape[:1], arrays["touched"].shape[:1]
    sizes = {"x": (particles.n + particles.b, 3), "v": (particles.nodes, 3), "orientations": (particles.b, 4)}
    shapes = {name: (*times, *sizes.get(name, ())) for name in _ARRAYS}
    shapes |= {"impulse": (particles.rows,), "touched": touched, "contact": (*touched, 3)}
    for name, shape in shapes.items():
        array, is_integer = arrays[name], name in ("status", "contacts", "touched")
        if array.shape != shape or array.dtype.kind not in ("iu" if is_integer else "f") or not all(times):
            raise TrajectoryFileError(
                f"{path} is a file of another system, or damaged: {name} is an array of {array.dtype} of shape "
                f"{array.shape}, and {particles!r} needs {shape}.",
                code="other-file",
            )
    if not set(np.unique(arrays["status"]).tolist()) <= set(map(int, Status)):
        raise TrajectoryFileError(
            f"{path} is a file of another system, or damaged: a value of its status is not valid.", code="other-file"
        )


def simulate_particles(
    particles: Particles,
    state: ParticleState | None = None,
    *,
    time_step: float = 1e-2,
    steps: int = 100,
    every: int = 1,
    until: Callable[[ParticleState], bool] | None = None,
    **options: Any,
) -> ParticleTrajectory:
    """Simulate a motion. Ctrl-C ends it early, and the trajectory up to that time is returned.

    Args:
        particles: The system.
        state: Initial state; by default the described positions at rest.
        time_step: h [s].
        steps: Number of steps; the motion ends early at a state that is not finite.
        every: Number of steps between stored states.
        until: A function of a state; the motion ends when it returns True.
        **options: Options of `Stepper`: alpha, beta, stabilization, method, tolerance, …

    >>> dl.particles.simulate_particles(dl.particles.rope(segments=3), steps=2).time.shape
    (3,)
    """
    steps, every = check_integer("steps", steps, most=2**53), check_integer("every", every)
    stepper = Stepper(particles, time_step, **options)
    state = initial_state(particles) if state is None else state
    check_state(particles, state)
    if until is not None and not callable(until):
        raise ParticlesError(
            f"until is {short(repr(until))}; it must be a function of a state, such as lambda s: s.time > 1.",
            code="wrong-type",
        )
    bytes_per_state = sum(np.asarray(x).nbytes for x in (state.x, state.v, state.orientations, state.impulse))
    check_bytes(
        f"a motion of {1 + -(-steps // every)} states", (1.0 + -(-steps // every)) * bytes_per_state, "a larger `every`"
    )
    records: list[Any] = [(state, 0, 0.0)]
    status, residual, has_ended, interrupted = 0, 0.0, False, False
    for k in range(1, steps + 1):
        try:
            result = stepper.step(state)
            state = result.state
            status = int(worst_of(Status, np.array([status, int(result.status)])))
            residual = max(residual, result.residual)
            has_ended = result.status is Status.NOT_FINITE or (until is not None and until(state))
        except KeyboardInterrupt:
            has_ended = interrupted = True
        if (k % every == 0 or k == steps or has_ended) and state is not records[-1][0]:
            records.append((state, status, residual))
            status, residual = 0, 0.0
        if has_ended:
            break
    states = [entry[0] for entry in records]
    return ParticleTrajectory(
        particles,
        np.array([s.time for s in states]),
        np.stack([s.x for s in states]),
        np.stack([s.v for s in states]),
        np.stack([s.orientations for s in states]),
        np.array([entry[1] for entry in records]),
        np.array([entry[2] for entry in records]),
        np.array([len(s.touched) for s in states]),
        state,
        interrupted,
    )
