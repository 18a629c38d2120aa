"""Short motions across the steppers, whose states are on record in `golden/trajectories.npz`.

The record is a guard for changes that are to leave the physics alone, not an oracle: it says that a stepper moves
something differently than before, never which of the two is right. What is right is the matter of `test_physics_*`.

When a change is meant, write the record anew, and say in the commit why:

    python tests/reference_trajectories.py            writes all of it, and prints what is different
    python tests/reference_trajectories.py --check    only prints

Contact problems are solved to `TIGHT`, so that the path of a solver does not show, and have one solution: what lies on
four corners slides without turning, since the friction of a turn depends on how the corners share the weight. Motions
are short: other roundings, such as those of a CPU without fused multiply-adds, change them by less than `TOLERANCE`.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import delassus as dl
from physics_rooms import ROOMS, Room
from physics_scenes import (
    SLAB,
    Scene,
    balls_on_a_rail,
    box_on_box,
    free_ball,
    free_box,
    robot,
    slider,
    stick,
    tied,
)

RECORD = Path(__file__).parent / "golden" / "trajectories.npz"
TOLERANCE = 1e-9
"""What states may be off, as a share of the largest number of a motion's configurations, or of its velocities."""
TIGHT = 1e-12
"""The residual of contact problems, as a share of the velocities involved."""
KEPT = 6
"""States of a motion that are on record: the last, and others at even distances before it."""

BY_NAME: dict[str, Room] = {room.name: room for room in ROOMS}


class Start(NamedTuple):
    """What moves, and from where."""

    model: Any
    q: Any
    v: Any
    scene: Scene | None = None


class Motion(NamedTuple):
    """A start, and how it is stepped: by a room, in steps of h [s], with what acts on it (see `Physics`)."""

    room: str
    start: Callable[[], Start]
    h: float
    steps: int
    physics: dict[str, Any]

    def states(self) -> np.ndarray:
        """Configurations and velocities (KEPT, nq + nv)."""
        start = self.start()
        touch = start.scene.touch if start.scene else {}
        physics = touch | self.physics
        _, q, v = BY_NAME[self.room].rollout(start.model, start.q, start.v, self.h, self.steps, **physics)
        kept = np.linspace(0, self.steps, KEPT + 1).round().astype(int)[1:]
        return np.concatenate([q[kept], v[kept]], -1)

    @property
    def nq(self) -> int:
        return int(np.shape(self.start().q)[-1])


# --- starts -----------------------------------------------------------------------------------------------------------


def _bundled(name: str, speed: float = 1.0) -> Start:
    """A robot of the package in its posture, or turned a little, with all joints moving."""
    model = dl.load(name)
    q = np.array(model.posture("home") if model.postures else np.linspace(0.5, -0.8, model.nq), float)
    return Start(model, q, speed * np.sin(1.0 + np.arange(model.nv)))


def _linkage(name: str) -> Start:
    """A robot with closed loops, let go at rest."""
    model = dl.load(name)
    return Start(model, np.array(model.posture("home"), float), np.zeros(model.nv))


def _standing(name: str, feet: str = "*_foot", height: float = 0.02) -> Start:
    """A robot whose feet, frames of a pattern, are at a height above the ground."""
    scene = robot(name)
    model, q = scene.model, np.array(scene.model.posture("home"), float)
    heights = [dl.frame_placement.python(model, q, frame=frame)[1][2] for frame in model.frames(feet)]
    q[2] += height - min(heights)
    return Start(model, q, np.zeros(model.nv), scene)


def _body(scene: Scene, height: float, turn: Any = (0.0, 0.0, 0.0), v: Any = (0.0,) * 6) -> Start:
    """A free body at a height, turned by the vector part of a quaternion."""
    w = np.sqrt(1.0 - np.dot(turn, turn))
    return Start(scene.model, np.array([0.0, 0.0, height, *turn, w]), np.array(v, float), scene)


def _tumbling() -> Start:
    return _body(free_box((0.3, 0.2, 0.1), 1.0), 1.0, v=(0.5, 0.0, 1.0, 3.0, -4.0, 2.0))


def _dropped_ball() -> Start:
    return _body(free_ball(0.1, 1.0), 0.105, v=(1.0, 0.0, -2.0, 0.0, 3.0, 0.0))


def _dropped_box() -> Start:
    return _body(free_box((0.3, 0.2, 0.1), 1.0), 0.14, turn=(0.1, 0.2, 0.05), v=(1.0, 0.3, -1.0, 0.0, 0.0, 1.0))


def _striking_stick() -> Start:
    return _body(stick(), 0.5 * np.sin(0.6) + 0.011, turn=(0.0, np.sin(0.3), 0.0), v=(0.5, 0.0, -2.0, 0.0, 0.5, 0.0))


def _sliding_slab() -> Start:
    return _body(SLAB, 0.03, v=(1.0, 0.5, 0.0, 0.0, 0.0, 0.0))


def _stack() -> Start:
    scene = box_on_box(1.0, 2.0)
    q = np.array([0, 0, 0.1, 0, 0, 0, 1, 0.02, 0, 0.3, 0, 0, 0, 1.0])
    return Start(scene.model, q, np.array([0.0] * 6 + [0.3, 0.1, 0.0, 0.0, 0.0, 0.0]), scene)


def _cradle() -> Start:
    scene = balls_on_a_rail((1.0, 2.0, 1.0))
    return Start(scene.model, np.array([0.0, 0.21, 0.42]), np.array([2.0, 0.0, 0.0]), scene)


def _mass(v: float, **of_joint: float) -> Start:
    return Start(slider(**of_joint), np.array([0.0]), np.array([v]))


def _tied() -> Start:
    return Start(tied(40.0, 2.0), np.array([0.1, -0.05]), np.array([0.0, 0.4]))


# --- motions ----------------------------------------------------------------------------------------------------------

SLOPE = (0.0, np.sin(0.2), np.cos(0.2))
SPRUNG, STOPPED, RUBBED = {"stiffness": 200.0, "damping": 8.0}, {"lower": -1.0, "upper": 0.0105}, {"friction": 40.0}


def _motions() -> dict[str, Motion]:
    tight, bouncing = {"options": {"tolerance": TIGHT}}, {"friction": 0.5, "restitution": 0.8}
    thrown = {"friction": 1.0, "restitution": 0.9} | tight
    motions = {}

    def add(what: str, rooms: str, start: Callable[[], Start], h: float, steps: int, **physics: Any) -> None:
        for room in rooms.split(", "):
            motions[f"{room}: {what}"] = Motion(room, start, h, steps, physics)

    touching = "Simulation, compliant_step, contact_dynamics"
    add("a box tumbles", "Simulation, compliant_step, compliant_step midpoint", _tumbling, 1e-2, 20, contacts=())
    add("a ball bounces", touching, _dropped_ball, 1e-3, 30, **bouncing, **tight)
    add("a stick strikes the ground", touching, _striking_stick, 1e-3, 12, **thrown)
    add("a box drops on an edge", "Simulation, contact_dynamics", _dropped_box, 2e-3, 30, friction=0.5, **tight)
    add("a slab slides", "particles", _sliding_slab, 2e-3, 10, friction=0.3, options={"contact_tolerance": TIGHT})
    add(
        "a slab slides on a slope",
        "Simulation, compliant_step",
        _sliding_slab,
        2e-3,
        20,
        friction=0.3,
        normal=SLOPE,
        **tight,
    )
    add("boxes lie on each other", "Simulation, compliant_step", _stack, 2e-3, 15, friction=0.4, **tight)
    add("balls on a rail meet", "Simulation", _cradle, 2e-3, 20, restitution=0.7, **tight)
    reflecting = {"options": {"tolerance": TIGHT, "impacts": "reflections"}}
    add("balls on a rail reflect", "compliant_step", _cradle, 2e-3, 20, restitution=0.7, **reflecting)
    add("a mass meets its limit", touching, partial(_mass, 3.0, **STOPPED), 1e-3, 10, limits=True)
    add(
        "a mass rubs in its joint",
        "Simulation, compliant_step",
        partial(_mass, 0.2, **RUBBED),
        1e-3,
        15,
        joint_friction=True,
    )
    add("a tendon pulls masses", "Simulation, compliant_step, simulate_motion", _tied, 5e-3, 20)
    add("a damped spring swings", "particles, particles midpoint", partial(_mass, 1.0, **SPRUNG), 5e-3, 20)

    home = dl.load("quadruped").posture("home")
    add("a quadruped flies", "Simulation", partial(_bundled, "quadruped"), 2e-3, 10)
    servo = (100.0, 2.0, np.asarray(home[7:]))
    options = {"tolerance": TIGHT, "max_limits": 0}
    add(
        "a quadruped stands",
        "Simulation",
        partial(_standing, "quadruped"),
        2e-3,
        20,
        friction=0.7,
        servo=servo,
        options=options,
    )
    add("a quadruped gives way", "contact_dynamics", partial(_standing, "quadruped"), 2e-3, 10, friction=0.7, **tight)
    add("an arm is driven", "Simulation", partial(_bundled, "arm7"), 2e-3, 15, servo=(200.0, 10.0, np.zeros(7)))
    for law in ("ccp", "lcp"):
        options = {"law": law, "tolerance": TIGHT}
        add(f"a ball lands, {law}", "contact_dynamics", _dropped_ball, 1e-3, 20, friction=0.5, options=options)
    servo = (20.0, 1.0, np.asarray(dl.load("delta").posture("home")))
    add("a delta robot is held", "compliant_step", partial(_linkage, "delta"), 2e-3, 10, servo=servo)
    options = {"tolerance": TIGHT, "max_limits": 0}
    add(
        "a biped stands",
        "Simulation",
        partial(_standing, "biped", "*_sole", 0.0),
        1e-3,
        10,
        friction=0.7,
        options=options,
    )
    add("a double pendulum swings", "Simulation, compliant_step", partial(_bundled, "double_pendulum"), 5e-3, 20)
    add("a four-bar linkage swings", "Simulation", partial(_linkage, "four_bar"), 5e-3, 20)
    for how in ("pre", "post", "project"):
        options = {"stabilization": how}
        add(
            f"a four-bar linkage swings, {how}",
            "compliant_step",
            partial(_linkage, "four_bar"),
            5e-3,
            10,
            options=options,
        )
    for method in ("rk4", "implicit_euler", "gauss", "taylor"):
        options = {"method": method, "step": 5e-3}
        add(
            f"a double pendulum swings, {method}",
            "simulate_motion",
            partial(_bundled, "double_pendulum"),
            1e-2,
            10,
            options=options,
        )
    add("a five-bar linkage swings", "simulate_motion", partial(_linkage, "five_bar"), 1e-2, 10)
    return motions


MOTIONS = _motions()


def error(motion: Motion, found: np.ndarray, known: np.ndarray) -> float:
    """The largest difference, as a share of the largest configuration or velocity."""
    parts = [(slice(None), slice(0, motion.nq)), (slice(None), slice(motion.nq, None))]
    return max(float(np.abs(found[at] - known[at]).max() / (np.abs(known[at]).max() or 1.0)) for at in parts)


def recorded() -> dict[str, np.ndarray]:
    """The record, by the names of motions."""
    with np.load(RECORD) as record:
        return dict(record)


def main(write: bool) -> None:
    before = recorded() if RECORD.exists() else {}
    now = {name: motion.states() for name, motion in MOTIONS.items()}
    for name in [*now, *(set(before) - set(now))]:
        if name not in before or name not in now:
            print(f"{name}: {'new' if name in now else 'gone'}")
        elif (off := error(MOTIONS[name], now[name], before[name])) > 0.0:
            print(f"{name}: off by {off:.1e}")
    if write:
        np.savez_compressed(RECORD, **now)


if __name__ == "__main__":
    main(write="--check" not in sys.argv[1:])
