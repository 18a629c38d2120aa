"""`Readout` and the table of sensor types. A type is a function of a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from delassus.step.scene import Scene
from delassus.step.stages.types import GroundShape


class Readout(NamedTuple):
    """The quantities of one state that sensors read.

    Attributes:
        scene: The robot and its contacts.
        q: (nq,).
        v: (nv,).
        a: (nv,) v̇ [rad/s², m/s²].
        force: (m,) forces of the rows of the contact problem, averaged over the last time step [N, N·m].
        contact: (slots,) candidates of the slots.
        control: (nu,).
        ground: Geometry of the ground.
        time: [s].
        time_step: [s].
        tally: (3 tracked,) of tracked shapes.
    """

    scene: Scene
    q: Any
    v: Any
    a: Any
    force: Any
    contact: Any
    control: Any
    ground: GroundShape
    time: Any
    time_step: Any
    tally: Any

    @property
    def model(self) -> Any:
        """The model of the robot."""
        return self.scene.model


@dataclass(frozen=True)
class Sensor:
    """A sensor, given by its type and its target, as in "gyro:trunk".

    Attributes:
        kind: The type; `docs/simulation.md` lists them.
        target: The name of a frame, joint, tendon, actuator, body or shape; for contacts also "shape|other".
        points: Points (x, y) of a height scan relative to the frame's origin [m], rotated with its heading.
        name: Name of the readings; "" for type and target.
        reference: Frame relative to which, and in whose axes, position and velocity of the target are measured.
        numbers: Magnetic flux (3,) in the world, for a magnetometer.
        cutoff: Largest magnitude of a reading; zero for no limit.

    >>> dl.simulation.Sensor("gyro", "trunk").label
    'gyro:trunk'
    """

    kind: str
    target: str = ""
    points: tuple[tuple[float, float], ...] = ()
    name: str = ""
    reference: str = ""
    numbers: tuple[float, ...] = ()
    cutoff: float = 0.0

    @property
    def label(self) -> str:
        """The name of the readings."""
        return self.name or (f"{self.kind}:{self.target}" if self.target else self.kind)


class SensorKind(NamedTuple):
    """A type of sensor.

    Attributes:
        on: Type of its target: "frame", "joint", "tendon", "actuator", "body", "shape", "tracked" for tracked shapes,
            or "" for the robot.
        size: Number of values of a reading; None for one value per point of the sensor.
        read: Function of a state and a sensor that returns the reading (size,).
        needs: Input besides the state: "acceleration" or "control".
    """

    on: str
    size: int | None
    read: Callable[[Readout, Sensor], Any]
    needs: str = ""


KINDS: Final[dict[str, SensorKind]] = {}
"""All types of sensors by name. Names are MuJoCo's, where MuJoCo has the type."""


def register_sensor(
    name: str, on: str, size: int | None, needs: str = ""
) -> Callable[[Callable[[Readout, Sensor], Any]], Callable[[Readout, Sensor], Any]]:
    """Register the decorated function as a type of sensor."""

    def register(read: Callable[[Readout, Sensor], Any]) -> Callable[[Readout, Sensor], Any]:
        KINDS[name] = SensorKind(on, size, read, needs)
        return read

    return register
