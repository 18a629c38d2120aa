"""`Readout` and the table of kinds of sensors: a kind is a function of a state, one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from delassus.step.scene import Scene
from delassus.step.stages.types import GroundShape


class Readout(NamedTuple):
    """What sensors read, of one state.

    Attributes:
        scene: The robot and its contacts.
        q: (nq,).
        v: (nv,).
        a: (nv,) v̇ [rad/s², m/s²].
        force: (m,) of the rows of the contact problem, the mean over the last step of time [N, N·m].
        contact: (slots,) candidates of the slots.
        control: (nu,).
        ground: Where it is.
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
    """A sensor by its kind and what it is on, as in "gyro:trunk".

    Attributes:
        kind: See `docs/simulation.md`.
        target: The name of a frame, joint, tendon, actuator, body or shape; for contacts also "shape|other".
        points: Of a height scan, (x, y) [m] about the frame's origin, turned with its heading.
        name: By which it is read; "" for kind and target.
        reference: A frame, with respect to which and in whose axes position and velocity of another one are measured.
        numbers: Of a magnetometer, the magnetic flux (3,) in the world.
        cutoff: The largest magnitude of a reading; zero for no end.
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
        """By which it is read."""
        return self.name or (f"{self.kind}:{self.target}" if self.target else self.kind)


class SensorKind(NamedTuple):
    """How a kind of sensor reads a state.

    Attributes:
        on: What it is on: "frame", "joint", "tendon", "actuator", "body", "shape", "tracked" for tracked shapes, or ""
            for the robot.
        size: How many numbers it gives; None for as many as the sensor has points.
        read: Of a state and a sensor, (size,).
        needs: What it needs besides the state: "acceleration", "control".
    """

    on: str
    size: int | None
    read: Callable[[Readout, Sensor], Any]
    needs: str = ""


KINDS: Final[dict[str, SensorKind]] = {}
"""All kinds of sensors by their names, which are MuJoCo's where it has them."""


def register_sensor(
    name: str, on: str, size: int | None, needs: str = ""
) -> Callable[[Callable[[Readout, Sensor], Any]], Callable[[Readout, Sensor], Any]]:
    """Put the function below into the table."""

    def register(read: Callable[[Readout, Sensor], Any]) -> Callable[[Readout, Sensor], Any]:
        KINDS[name] = SensorKind(on, size, read, needs)
        return read

    return register
