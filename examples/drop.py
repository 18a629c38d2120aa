"""Drops a thousand quadrupeds and a thousand bipeds with closed loops onto the ground, held by their servos.

Prints a table of how fast and how well that went, and writes drawings and films, which play in any browser. Run it with
`make drop`; everything goes to output/.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

import delassus as dl
from delassus.simulation import position_servos

ROBOTS, SECONDS, KEPT_EVERY = 1024, 1.5, 10
OUTPUT = Path(__file__).parent.parent / "output"
rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Drop:
    """Robots above the ground, and what their servos hold them in."""

    sim: dl.Simulation
    q0: np.ndarray
    hold: np.ndarray


def quadrupeds() -> Drop:
    """Ball feet, twelve servos."""
    robot = dl.load("quadruped")
    home = robot.posture("home")
    servos = position_servos(robot, stiffness=200.0, damping=10.0)
    sim = dl.Simulation(robot, dl.Ground(friction=0.7), actuators=servos, touching="*_calf_1", max_limits=0)
    return Drop(sim, above(home, 0.02, 0.25, apart=1.1), home[7:])


def bipeds() -> Drop:
    """Flat feet, knees that are driven through closed loops: cranks have servos, shins and rods have none."""
    robot = dl.load("biped")
    home = robot.posture("home")
    driven = [joint.name for joint in robot.joints[1:] if "shin" not in joint.name and "rod" not in joint.name]
    servos = position_servos(robot, stiffness=600.0, damping=30.0, joints=driven)
    sim = dl.Simulation(robot, dl.Ground(friction=0.7), actuators=servos, touching="*_foot_0", max_limits=0)
    return Drop(sim, above(home, 0.01, 0.05, apart=1.0), np.array([home[robot.q_slice(name)][0] for name in driven]))


def above(home: np.ndarray, least: float, most: float, apart: float) -> np.ndarray:
    """Configurations (ROBOTS, nq) on a grid [m], four abreast, at various heights above that of "home" [m]."""
    q = np.tile(home, (ROBOTS, 1))
    q[:, :2] = apart * np.stack(np.divmod(np.arange(ROBOTS), 4), 1)
    q[:, 2] += rng.uniform(least, most, ROBOTS)
    return q


def dropped(drop: Drop) -> tuple[dl.Trajectory, float, float]:
    """What happened, the time of the first step, which compiles, and steps a second after it."""
    begin = time.perf_counter()
    start = drop.sim.start(drop.q0)
    drop.sim.step(start, drop.hold)
    first = time.perf_counter() - begin
    steps = max(1, round(SECONDS / drop.sim.period))
    begin = time.perf_counter()
    log = drop.sim.run(start, control=drop.hold, steps=steps, every=KEPT_EVERY)
    return log, first, ROBOTS * steps / (time.perf_counter() - begin)


def main() -> None:
    """Simulate, print, draw."""
    OUTPUT.mkdir(exist_ok=True)
    print(f"{ROBOTS} robots of each kind, {SECONDS:g} s in steps of 1 ms, {dl.threads()} threads")
    print(f"{'':12}{'first step':>11}{'steps/s':>12}{'residual':>12}{'loops open':>12}{'energy':>18}{'carried':>10}")
    for make in (quadrupeds, bipeds):
        drop = make()
        log, first, rate = dropped(drop)
        robot = drop.sim.model
        carried = log.contact_force[-1, ..., 2].sum(-1).mean() / (robot.mass * 9.81)
        energy = f"{log.energy[0].mean():.1f} to {log.energy[-1].mean():.1f} J"
        print(
            f"{robot.name:12}{first:9.1f} s{rate:12,.0f}{log.residual.max():8.0e} m/s{log.drift.max():10.0e} m"
            f"{energy:>18}{100 * carried:8.2f} %"
        )
        print(f"{'':12}{log.describe()}")
        for path in pictures(log, robot.name):
            print(f"{'':12}{path}")


def pictures(log: dl.Trajectory, name: str) -> list[Path]:
    """Write a strip of drawings, the forces of one robot, and a film of sixteen."""
    strip, forces, film = (OUTPUT / f"{name}.{kind}" for kind in ("strip.png", "forces.png", "html"))
    log.draw(log.time[-1] * np.array([0.0, 0.06, 0.12, 0.18, 0.4, 1.0]))[0].figure.savefig(strip, dpi=150)
    log.plot("contact_force").figure.savefig(forces, dpi=150)
    log.save_html(film)
    return [strip, forces, film]


if __name__ == "__main__":
    main()
