"""`Sensors`: several sensors of a simulation in one kernel, read from states and from logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
import delassus.simulation.sensors.contacts
import delassus.simulation.sensors.motions  # noqa: F401 - both register their kinds
from delassus.common.checks import array_of_shape
from delassus.common.names import UnknownName
from delassus.compiler.graph.parameters import PARAMETERS, ParametricComposite
from delassus.compiler.host.kernel import Floats, kernel
from delassus.errors import short
from delassus.model.parts import FileSensor
from delassus.output.trajectory import Trajectory
from delassus.simulation.checks import SimulationError, fits
from delassus.simulation.runner import pad_empty
from delassus.simulation.sensors.readout import KINDS, Readout, Sensor
from delassus.simulation.setup import Setup
from delassus.simulation.state import State, check_state
from delassus.step.period.kernels import GROUND as GROUND_INPUTS
from delassus.step.points.statistics import contact_targets, is_contact_target
from delassus.step.scene import ParametricScene, Scene
from delassus.step.scene_sizes import HasScene
from delassus.step.stages.types import GroundShape

Array = NDArray[numpy.float64]

AIR_TIME: Final = "airtime"
"""The type that needs a history. For shapes that are not tracked, it is computed from "touch" at the times of a log."""


@dataclass(frozen=True)
class Panel(HasScene):
    """A scene and its sensors. The kernel is compiled for this object."""

    scene: Scene
    sensors: tuple[Sensor, ...]

    def __new__(cls, scene: Any = None, *_: Any, **__: Any) -> Panel:
        """A panel, with parameters if its scene has some."""
        return object.__new__(ParametricPanel if isinstance(scene, ParametricScene) else cls)

    @property
    def readings(self) -> int:
        """Total number of values of all sensors."""
        return sum(size_of(self.scene, sensor) for sensor in self.sensors)


@dataclass(frozen=True)
class ParametricPanel(Panel, ParametricComposite):
    """The panel of a scene whose robot has parameters."""

    def with_parameters(self, parameters: Any) -> Panel:
        """The panel with these parameters (nparameters,)."""
        return Panel(self.parametric_part.with_parameters(parameters), self.sensors)

    @property
    def parametric_part(self) -> Any:
        """The part with parameters: the scene."""
        return self.scene


def size_of(scene: Scene, sensor: Sensor) -> int:
    """Number of values of a sensor."""
    kind = KINDS[sensor.kind]
    if kind.on == "joint":
        joint = scene.model.joint(sensor.target)
        return int(joint.kind.nq if sensor.kind == "jointpos" else joint.kind.nv)
    return len(sensor.points) if kind.size is None else kind.size


@kernel(
    "(nq),(nv),(nv),(impulse_size),(slot_size),(control_size),(),()->(readings)",
    inputs={"ground": GROUND_INPUTS},
)
def read_sensors(
    panel: Panel,
    q: Any,
    v: Any,
    a: Any,
    impulse: Any,
    contact: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    ground: GroundShape,
) -> Floats:
    """The readings of all sensors in a state, concatenated."""
    scene, level = panel.scene, ground._replace(normal=np.array(ground.normal))
    force, slots, signals = impulse[: scene.m] / time_step, contact[: scene.slots], control[: scene.nu]
    first = scene.m + scene.na
    tally = impulse[first : first + scene.tally_size]
    current = Readout(scene, q, v, a, force, slots, signals, level, time, time_step, tally)
    kinds = ["touch" if _needs_history(scene, sensor) else sensor.kind for sensor in panel.sensors]
    readings = [KINDS[kind].read(current, one) for kind, one in zip(kinds, panel.sensors, strict=True)]
    ends = [one.cutoff for one in panel.sensors]
    return np.concatenate([np.clip(x, -c, c) if c else x for x, c in zip(readings, ends, strict=True)])


def _needs_history(scene: Scene, sensor: Sensor) -> bool:
    """Whether a sensor needs earlier states."""
    return sensor.kind == AIR_TIME and sensor.target not in scene.tracked


class Sensors:
    """Sensors of a simulation: `sensors(state)` and `sensors(log)` return their readings by name.

        sensors = sim.sensors("gyro:trunk", "accelerometer:trunk", "touch:*_calf_1")
        readings = sensors(state, since=before)
        readings["gyro:trunk"]                       (…, 3)

    Attributes:
        sensors: The sensors, in order.
        names: The name of each.

    >>> robot = dl.load("quadruped")
    >>> sim = dl.Simulation(robot, time_step=2e-3)
    >>> sim.sensors("gyro:trunk")(sim.start(robot.posture("home")))["gyro:trunk"]
    array([0., 0., 0.])
    """

    def __init__(self, sim: Setup, sensors: tuple[str | Sensor, ...]) -> None:
        self.sim = sim
        self.sensors = tuple(one for given in sensors for one in _expanded(sim, given))
        if not self.sensors:
            raise SimulationError(
                f"no sensor is named, and the file of {sim.model.name!r} has none: name at least one, such as "
                '"gyro:trunk".',
                code="missing-argument",
            )
        self.names = tuple(one.label for one in self.sensors)
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise SimulationError(f"the sensor {twice[0]!r} is named twice.", code="duplicate-name")
        self._panel = Panel(sim.scene, self.sensors)
        self._needs = {KINDS[one.kind].needs for one in self.sensors}

    @classmethod
    def of_file(cls, sim: Setup) -> Sensors:
        """All sensors of the model's file, in its order."""
        return cls(sim, tuple(one.name for one in sim.model.sensors))

    def __repr__(self) -> str:
        return f"Sensors({', '.join(self.names)})"

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __call__(
        self, current: State | Trajectory, *, since: State | None = None, control: Any = None
    ) -> dict[str, Array]:
        """Readings by name, (…, n) of a state and (times, …, n) of a log.

        Args:
            current: A state, or a log of this simulation.
            since: An earlier state, for sensors of acceleration, which read the mean since then; it is zero for
                environments that were reset in between. In a log, the previous state is used, and accelerations at
                its first time are zero.
            control: (…, nu) for forces of actuators.
        """
        return (
            self._of_log(current, control)
            if isinstance(current, Trajectory)
            else self._of_state(current, since, control)
        )

    def _of_state(self, state: State, since: State | None, control: Any) -> dict[str, Array]:
        check_state(state)
        for one in self.sensors:
            if _needs_history(self.sim.scene, one):
                raise SimulationError(
                    f"{one.label!r} is read from a log, or from states of a simulation that tracks the shape: "
                    f"Simulation(…, tracked={one.target!r}).",
                    code="not-recorded",
                )
        if state.impulse.shape[-1] != self.sim.scene.m or state.q.shape[-1] != self.sim.scene.nq:
            raise SimulationError(
                "the state belongs to another simulation; create the sensors with that simulation.", code="other-system"
            )
        a = numpy.zeros(self.sim.scene.nv)
        if "acceleration" in self._needs:
            if since is None or check_state(since).batch != state.batch:
                raise SimulationError(
                    "sensors of acceleration need an earlier state of the same environments: pass "
                    "sensors(state, since=before).",
                    code="missing-argument",
                )
            a = _mean_acceleration(state.v - since.v, numpy.asarray(state.time - since.time))
        contacts = (state.rows, state.contact)
        return self._read(state.q, state.v, a, contacts, control, state.parameters, state.time)

    def _of_log(self, log: Trajectory, control: Any) -> dict[str, Array]:
        if log.contacts is None or log.contacts.impulse.shape[-1] != self.sim.scene.m:
            raise SimulationError(
                "the log belongs to another simulation; create the sensors with that simulation.", code="other-system"
            )
        a = numpy.zeros(log.v.shape)
        times = log.time if log.run is None or log.run.time is None else log.run.time
        duration = numpy.diff(times, axis=0)
        duration = duration.reshape(duration.shape + (1,) * (log.q.ndim - 1 - duration.ndim))
        a[1:] = _mean_acceleration(numpy.diff(log.v, axis=0), numpy.broadcast_to(duration, log.v[1:].shape[:-1]))
        parts = [log.contacts.impulse, *(x for x in (log.activation, log.tally) if x is not None)]
        contacts = (numpy.concatenate(parts, -1), log.contacts.contact)
        parameters = numpy.zeros(0) if log.parameters is None else log.of_items(log.parameters)
        clock = numpy.asarray(times).reshape(numpy.shape(times) + (1,) * (log.q.ndim - 1 - numpy.ndim(times)))
        readings = self._read(log.q, log.v, a, contacts, control, parameters, clock)
        for one in self.sensors:
            if _needs_history(self.sim.scene, one):
                readings[one.label] = _air_time(readings[one.label], numpy.diff(log.time))
        return readings

    def _read(
        self, q: Any, v: Any, a: Any, contacts: Any, control: Any, parameters: Any, time: Any
    ) -> dict[str, Array]:
        if control is None and "control" in self._needs:
            raise SimulationError(
                "control is missing, and actuator forces depend on it: pass sensors(state, control=u).",
                code="missing-argument",
            )
        sim, nu = self.sim, self.sim.nu
        u = numpy.zeros(nu) if control is None else array_of_shape("the control", control, (..., nu))
        if not fits(u.shape[:-1], q.shape[:-1]):
            raise SimulationError(
                f"the control has shape {u.shape}; it must broadcast to {(*q.shape[:-1], nu)}.", code="batch-mismatch"
            )
        parametric = {PARAMETERS: parameters} if sim.nparameters else {}
        impulse, contact = (pad_empty(x) for x in contacts)
        ground = sim.ground.shape
        values = read_sensors(
            self._panel, q, v, a, impulse, contact, pad_empty(u), time, sim.time_step, ground=ground, **parametric
        )
        ends = numpy.cumsum([size_of(sim.scene, one) for one in self.sensors])[:-1]
        return dict(zip(self.names, numpy.split(numpy.asarray(values), ends, -1), strict=True))


def _mean_acceleration(change: Array, duration: Array) -> Array:
    """Mean accelerations (…, nv); zero for environments that were reset or for which no time has passed."""
    passed = duration > 0.0
    if passed.all():
        return change / duration[..., None]
    return numpy.where(passed[..., None], change, 0.0) / numpy.where(passed, duration, 1.0)[..., None]


def _air_time(touch: Array, durations: Array) -> Array:
    """Time (times, …, 1) [s] since the last contact of a shape, or since the start of the log."""
    air = numpy.zeros(touch.shape)
    for k, duration in enumerate(durations):
        air[k + 1] = numpy.where(touch[k + 1] > 0.0, 0.0, air[k] + duration)
    return air


# --- names ------------------------------------------------------------------------------------------------------------


def _expanded(sim: Setup, sensor_or_name: Any) -> list[Sensor]:
    """The sensors that match a name or a pattern."""
    if isinstance(sensor_or_name, Sensor):
        sensor = sensor_or_name
    elif isinstance(sensor_or_name, str):
        kind, _, target = sensor_or_name.partition(":")
        of_file = {one.name: _of_file(one) for one in sim.model.sensors}
        sensor = of_file.get(sensor_or_name, Sensor(kind, target))
    else:
        raise SimulationError(
            f'a sensor is {short(repr(sensor_or_name))}; it must be a name such as "gyro:trunk", or a Sensor.',
            code="wrong-type",
        )
    names = matching_targets(sim.scene, sensor, airtime_of_logs=not sim.scene.tracked)
    if sensor.reference:
        sim.model.frame(sensor.reference)
    return [replace(sensor, target=name) for name in names]


def matching_targets(scene: Scene, sensor: Sensor, airtime_of_logs: bool = False) -> list[str]:
    """The names that the target of a sensor matches; logs have the air time of shapes that are not tracked, too."""
    if sensor.kind not in KINDS:
        raise UnknownName("kind of sensor", sensor.kind, list(KINDS), code="unknown-sensor")
    on = "shape" if sensor.kind == AIR_TIME and airtime_of_logs else KINDS[sensor.kind].on
    targets = _targets(scene, on)
    if sensor.kind == "heightscan" and not _are_points(sensor.points):
        raise SimulationError(
            f"the points of a height scan are {short(repr(sensor.points))}; they must be a sequence of (x, y) [m].",
            code="wrong-shape",
        )
    if any(sign in sensor.target for sign in "*?["):
        names = [name for name in targets if fnmatchcase(name, sensor.target)]
    else:
        names = [sensor.target] if _is_target(scene, on, sensor.target, targets) else []
    if not names and on == "tracked":
        raise SimulationError(
            f"{sensor.kind!r} needs a tracked shape, and {short(repr(sensor.target))} is not tracked "
            f"(tracked: {', '.join(targets) or 'none'}). Set Simulation(…, tracked={short(repr(sensor.target))}).",
            code="unknown-sensor",
        )
    if not names:
        raise UnknownName(f"{on} for {sensor.kind!r} named", sensor.target, targets, code="unknown-sensor")
    return names


def _of_file(one: FileSensor) -> Sensor:
    """A sensor of the model's file."""
    sensor = Sensor(one.kind, one.target, (), one.name, one.reference, one.numbers, one.cutoff)
    return replace(sensor, name="") if sensor.name == replace(sensor, name="").label else sensor


def _is_target(scene: Scene, on: str, target: str, targets: list[str]) -> bool:
    if not on:
        return not target
    return is_contact_target(scene, target) if on == "shape" else target in targets


def _are_points(points: Any) -> bool:
    try:
        return numpy.asarray(points, float).ndim == 2 and numpy.asarray(points).shape[1] == 2
    except (TypeError, ValueError):
        return False


def _targets(scene: Scene, on: str) -> list[str]:
    """The names that sensors of a kind can be on."""
    model = scene.model
    if on == "frame":
        return [frame.name for frame in model.frame_list]
    if on == "joint":
        return [joint.name for joint in model.joints if joint.mimic is None]
    if on == "tendon":
        return [tendon.name for tendon in model.tendons]
    if on == "actuator":
        return [actuator.name for actuator in scene.actuators]
    if on == "body":
        links = [frame.name for frame in model.frame_list if frame.role == "link" and frame.joint >= 0]
        return [*(joint.name for joint in model.joints), *links]
    return list(scene.tracked) if on == "tracked" else contact_targets(scene)
