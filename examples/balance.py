"""Balance by the best linear feedback: a cart with a pole, and a biped whose knees are closed loops.

Both are linear about a pose at rest in their own freedoms, whatever holds them (`dl.control.linearize`), and
`dl.control.lqr` finds the feedback. A batch of each is pushed in all directions, and simulated with the full dynamics,
the feedback compiled into it. Run it with `python examples/balance.py`; the picture goes to docs/images.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl

SECONDS, ROBOTS = 4.0, 24
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
INK = "#2c3e50"

matplotlib.rcParams.update({"font.size": 10, "svg.hashsalt": "delassus", "axes.edgecolor": INK})


def cart_pole() -> dl.control.Regulator:
    """A motor at the cart alone; the pole stands at zero."""
    robot = dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    return dl.control.lqr(dl.control.linearize(robot, np.zeros(2)), state_cost=[10.0, 10.0, 1.0, 1.0], torque_cost=0.03)


def biped() -> dl.control.Regulator:
    """Two soles on the ground, six motors a leg; the knees are driven from the hip through closed loops."""
    loop = dl.Mechanism(dl.load("biped"), [dl.Weld("left_sole"), dl.Weld("right_sole")])
    motors = [f"*_{joint}_joint" for joint in ("hip_yaw", "hip_roll", "thigh", "crank", "ankle", "foot")]
    robot, home = dl.control.ActuatedMechanism(loop, motors), loop.posture("home")
    rest = dl.control.gravity_compensation(robot, home)
    linear = dl.control.linearize(robot, home, torque=rest.torque)
    return dl.control.lqr(linear, state_cost=np.repeat([50.0, 1.0], linear.freedoms), torque_cost=0.02)


CASES = (("cart-pole", cart_pole, 0.4), ("biped", biped, 0.3))
"""Names, robots, and how fast they are pushed."""


def pushed(regulator: dl.control.Regulator, speed: float):
    """Starts at the pose of rest, with random velocities that the constraints allow (ROBOTS, nv)."""
    p = regulator.linear.freedoms
    x = np.zeros((ROBOTS, 2 * p))
    x[:, p:] = speed * np.random.default_rng(0).normal(size=(ROBOTS, p))
    return regulator.linear.state(x)


def simulate(regulator: dl.control.Regulator, q, v) -> dl.Trajectory:
    """The motion under the feedback, of all robots."""
    robot = regulator.linear.robot

    def torques(time, q, v):  # of one state, compiled into the simulation
        return robot.B @ regulator.torque(q, v)

    times = np.linspace(0.0, SECONDS, round(50 * SECONDS) + 1)
    return dl.simulate_motion(robot.mechanism, q, v, torques, times=times, tolerance=1e-7)


def distance(regulator: dl.control.Regulator, log: dl.Trajectory):
    """How far each robot is from rest (times, ROBOTS), in its freedoms."""
    x = regulator.linear.coordinates(log.q, log.v)
    return np.linalg.norm(x, axis=-1)


def main() -> None:
    """Simulate, print, draw."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for axis, (name, make, speed) in zip(axes, CASES, strict=True):
        regulator = make()
        log = simulate(regulator, *pushed(regulator, speed))
        off = distance(regulator, log)
        print(
            f"{name}: {regulator.linear.freedoms} freedoms, {regulator.linear.robot.nu} motors; {ROBOTS} pushed, "
            f"{np.sum(off[-1] < 1e-2 * off[0])} at rest again after {SECONDS:g} s"
        )
        axis.semilogy(log.time, off, color=INK, alpha=0.4, linewidth=0.8)
        axis.set(title=f"{name}: distance from rest", xlabel="time [s]")
        axis.grid(alpha=0.3)
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / "balance.svg", metadata={"Date": None})
    plt.close(figure)
    print(f"picture: {OUTPUT / 'balance.svg'}")


if __name__ == "__main__":
    main()
