"""Drops quadrupeds from various heights onto the ground, held by servos: their speed, their physics, and a film."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import delassus as dl
from delassus.simulation import position_servos

ROBOTS = 1024
SECONDS = 1.0
OUTPUT = Path(__file__).parent.parent / "output"
FEET = [f"{end}_{side}_calf_1" for end in ("front", "hind") for side in ("left", "right")]


def main() -> dl.Trajectory:
    """Simulate, print, and write a film of the first robots."""
    robot = dl.load("quadruped")
    home = robot.posture("home")
    servos = position_servos(robot, stiffness=200.0, damping=10.0)
    sim = dl.Simulation(robot, dl.Ground(friction=0.7), time_step=1e-3, actuators=servos, touching=FEET, max_limits=0)

    rng = np.random.default_rng(0)
    q0 = np.tile(home, (ROBOTS, 1))
    q0[:, :2] = 1.2 * np.stack(np.divmod(np.arange(ROBOTS), 4), 1)
    q0[:, 2] += rng.uniform(0.02, 0.25, ROBOTS)
    start = sim.start(q0)
    begin = time.perf_counter()
    sim.step(start, home[7:])
    compiled = time.perf_counter() - begin

    steps = max(1, round(SECONDS / sim.period))
    begin = time.perf_counter()
    log = sim.run(start, control=home[7:], steps=steps, every=20)
    took = time.perf_counter() - begin
    weight = robot.mass * 9.81
    print(f"{ROBOTS} robots, {steps} steps: {ROBOTS * steps / took:,.0f} steps a second; first step {compiled:.2f} s")
    print(
        f"largest residual {log.residual.max():.1e} m/s, energy {np.mean(log.energy[0]):.2f} to "
        f"{np.mean(log.energy[-1]):.2f} J, feet carry {np.mean(log.contact_force[-1, ..., 2].sum(-1)) / weight:.4f} of "
        f"the weight. {log.describe()}"
    )
    OUTPUT.mkdir(exist_ok=True)
    log.save_html(OUTPUT / "drop.html")
    print(f"{OUTPUT / 'drop.html'} plays it.")
    return log


if __name__ == "__main__":
    main()
