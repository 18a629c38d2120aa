"""Swing-up by predictive sampling: a cart with a pole, and an acrobot, which has a motor at its elbow alone.

Hundreds of controls are tried in simulation before each control period (`dl.control.Sampling`), one kernel call for
all of them, and the first part of the best plan is done. Nothing tells the robots how to swing: the cost says what is
good, and that is to be upright. Run it with `python examples/sampling.py`; the pictures go to docs/images.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl
from delassus.simulation import motors

CART_PERIODS, ACROBOT_PERIODS = 200, 200
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
INK, RED = "#2c3e50", "#c0392b"

matplotlib.rcParams.update({"font.size": 9, "svg.hashsalt": "delassus", "axes.edgecolor": INK})


@dataclass
class Run:
    """What happened: states (times, nq) and (times, nv), controls (periods, nu), and what plans cost (periods,)."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    control: np.ndarray
    cost: np.ndarray


def closed_loop(planner: dl.control.Sampling, q0, periods: int, seed: int = 0, control=None) -> Run:
    """A plan is improved before each period, and its first control is done."""
    sim, plan = planner.sim, planner.start(seed, control)
    states, plans = [sim.start(q0)], []
    for _ in range(periods):
        plan = planner.improve(plan, states[-1])
        plans.append(plan)
        states.append(sim.step(states[-1], plan.control))
    return Run(
        np.array([state.time for state in states]),
        np.array([state.q for state in states]),
        np.array([state.v for state in states]),
        np.array([plan.control for plan in plans]),
        np.array([plan.cost for plan in plans]),
    )


def cart_pole(samples: int = 512) -> dl.control.Sampling:
    """A motor of 15 N at the cart, whose rail ends at ±2 m; the pole stands at zero."""
    robot = dl.load("cart_pole")
    sim = dl.Simulation(robot, time_step=0.02, max_contacts=0, actuators=motors(robot, "cart*"))

    @dl.kernel("(),(nq),(nv),(1)->()")
    def upright(model, time, q, v, u):
        return 2.0 * (1.0 - dl.numpy.cos(q[1])) + 0.5 * q[0] ** 2 + 0.02 * (v @ v) + 1e-3 * u[0] ** 2

    return dl.control.Sampling(sim, upright, horizon=50, samples=samples, noise=5.0, narrowest=0.1, limits=15.0)


def acrobot(samples: int = 512) -> dl.control.Sampling:
    """A motor of 10 N·m at the elbow; it hangs at zero. What is left to pay at the end is that of linear feedback."""
    robot, top = dl.load("double_pendulum"), np.array([np.pi, 0.0])
    sim = dl.Simulation(robot, time_step=0.01, substeps=2, max_contacts=0, actuators=motors(robot, "lower*"))
    linear = dl.control.linearize(dl.control.ActuatedMechanism(robot, "lower*"), top)
    regulator = dl.control.lqr(linear, state_cost=[1.0, 1.0, 0.05, 0.05], torque_cost=0.01)
    cos, sin, arctan2 = dl.numpy.cos, dl.numpy.sin, dl.numpy.arctan2

    @dl.kernel("(),(nq),(nv),(1)->()")
    def upright(model, time, q, v, u):
        return 2.0 + cos(q[0]) + cos(q[0] + q[1]) + 0.01 * (v @ v) + 1e-3 * u[0] ** 2

    @dl.kernel("(),(nq),(nv)->()")
    def left(model, time, q, v):
        turned = q - top
        x = linear.coordinates(top + arctan2(sin(turned), cos(turned)), v)
        cost = x @ (regulator.cost @ x)
        return cost / (1.0 + cost / 20.0)  # far away, linear feedback knows nothing

    return dl.control.Sampling(
        sim,
        upright,
        horizon=40,
        final=left,
        samples=samples,
        method="best",
        knots=10,
        spline="cubic",
        noise=6.0,
        narrowest=0.01,
        limits=10.0,
    )


def draw(run: Run, joints, name: str, title: str, unit: str) -> None:
    """Sticks at some times, from blue to red, above heights and controls."""
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 2.8), width_ratios=(1.2, 1.0, 1.0), layout="constrained")
    points = joints(run.q)
    shown = np.unique(np.linspace(0.0, len(points) - 1, 28).astype(int))
    for k in shown:
        color = plt.cm.coolwarm(k / len(points))
        axes[0].plot(points[k, :, 0], points[k, :, 1], "-", color=color, alpha=0.8, linewidth=1.5)
        axes[0].plot(points[k, -1:, 0], points[k, -1:, 1], "o", color=color, markersize=3)
    axes[0].set(aspect="equal", title=f"{title}: blue first, red last", xlabel="x [m]", ylabel="z [m]")
    axes[1].plot(run.time, points[:, -1, 1], color=INK)
    axes[1].set(title="height of the tip [m]", xlabel="time [s]")
    axes[2].step(run.time[:-1], run.control[:, 0], color=RED, linewidth=0.9)
    axes[2].set(title=f"control [{unit}]", xlabel="time [s]")
    for axis in axes[1:]:
        axis.grid(alpha=0.3)
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / name, metadata={"Date": None})
    plt.close(figure)
    print(f"picture: {OUTPUT / name}")


def cart_points(q):
    """Cart and tip of the pole (times, 2, 2)."""
    cart = np.stack([q[:, 0], np.zeros(len(q))], -1)
    return np.stack([cart, cart + 0.6 * np.stack([np.sin(q[:, 1]), np.cos(q[:, 1])], -1)], 1)


def acrobot_points(q):
    """Shoulder, elbow and tip (times, 3, 2)."""
    upper, lower = (-0.5 * np.stack([np.sin(a), np.cos(a)], -1) for a in (q[:, 0], q[:, 0] + q[:, 1]))
    return np.stack([np.zeros_like(upper), upper, upper + lower], 1)


def main() -> None:
    """Swing up, print, draw."""
    run = closed_loop(cart_pole(), [0.0, np.pi], CART_PERIODS)
    print(f"cart-pole: after {run.time[-1]:g} s the pole is {abs(np.sin(run.q[-1, 1])):.3f} rad from upright")
    draw(run, cart_points, "sampling_cart_pole.svg", "cart-pole", "N")
    run = closed_loop(acrobot(), [0.0, 0.0], ACROBOT_PERIODS)
    print(f"acrobot: after {run.time[-1]:g} s the tip is at {acrobot_points(run.q)[-1, -1, 1]:.3f} m, of 1 m")
    draw(run, acrobot_points, "sampling_acrobot.svg", "acrobot", "N·m")


if __name__ == "__main__":
    main()
