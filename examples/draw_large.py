"""Draw the pictures of docs/large.md: what each builder makes, and what the scheme does; `make pictures` runs it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import delassus.particles as P
from delassus.particles.motion.drawing import draw_state

mpl.use("agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def builders() -> None:
    """Rope, chain, net, cloth, ribbon and tower in one picture."""
    rope = P.rope((0, 0, 0), (1, 0, 0), 60, length=1.05, stiffness=30.0, density=0.3)
    chain = P.chain((-0.5, 0, 0), (0.5, 0, 0.2), 60, length=1.6)
    net = P.net((1, 1), (14, 14), pinned="corners", stiffness=60.0)
    ribbon = P.ribbon((0, 0, 0), (1, 0, 0), 40, width=0.12, bending=2e-2, density=0.2)
    ball = P.Sphere((0, 0, 0), 0.3)
    cloth = P.cloth(
        (1.1, 1.1), (44, 44), center=(0, 0, 0.302), obstacles=[ball], stretching=120, shearing=30, drag=1e-3
    )
    tower = P.tower(96, 12)
    shown = {
        "rope": (rope, P.at_rest(rope).state),
        "chain": (chain, P.at_rest(chain).state),
        "net": (net, P.at_rest(net).state),
        "ribbon": (ribbon, P.at_rest(ribbon).state),
        "cloth on a sphere": (cloth, P.simulate_particles(cloth, time_step=1e-2, steps=90, every=90,
                                                          contact_tolerance=1e-3, contact_iterations=40).end),
        "tower": (tower, P.simulate_particles(tower, time_step=5e-3, steps=10).end),
    }  # fmt: skip
    figure = plt.figure(figsize=(11, 7), layout="constrained")
    for k, (name, (system, state)) in enumerate(shown.items()):
        ax = figure.add_subplot(2, 3, k + 1, projection="3d")
        draw_state(system, state, ax)
        ax.set_title(name, y=1.0)
    figure.savefig(IMAGES / "large_builders.png", dpi=110)
    plt.close(figure)


def fall() -> None:
    """A cloth that falls onto a sphere and a box, at four times."""
    things = [P.Sphere((-0.2, 0, 0), 0.2), P.Box((0.35, 0.1, 0.0), (0.12, 0.12, 0.12)), P.Plane(height=-0.25)]
    cloth = P.cloth((1.2, 0.9), (40, 30), center=(0, 0, 0.25), obstacles=things, stretching=120, shearing=30, drag=5e-4)
    log = P.simulate_particles(cloth, time_step=1e-2, steps=90, every=30, contact_tolerance=1e-3, contact_iterations=40)
    figure = plt.figure(figsize=(13, 3.6), layout="constrained")
    for k in range(len(log)):
        ax = figure.add_subplot(1, len(log), k + 1, projection="3d")
        log.draw(k, ax, view=(22.0, -70.0))
        ax.set_title(f"{log.time[k]:.1f} s", y=0.95)
    figure.savefig(IMAGES / "large_fall.png", dpi=110)
    plt.close(figure)


def reached() -> None:
    """The catenary, from soft to rigid, and energy by α and β."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for links in (10, 30, 100, 300, 1000):
        chain = P.chain((-0.5, 0, 0), (0.5, 0, 0), links, length=1.3)
        rest = P.at_rest(chain).state.x
        axes[0].loglog(links, np.abs(rest - chain.positions).max(), "o", color="#4570a0")
    axes[0].set(xlabel="links", ylabel="distance from the catenary [m]", title="a chain at rest")
    h, m = 1e-2, 2.0
    numbers = 10.0 ** np.arange(-6, 13)
    left = []
    for number in numbers:
        spring = P.Elements(P.stretch, [[0, 1]], [[1.0]], h**2 / (number * m))
        system = P.Particles([[0.0, 0, 0], [0, 0, -1.0]], m, spring, pins=[0])
        left.append(-P.particle_step(system, P.initial_state(system), time_step=h, tolerance=1e-14).state.v[1, 2])
    axes[1].loglog(numbers, left, "o", color="#4570a0", label="a step")
    axes[1].loglog(numbers, 9.81 * h / (1.0 + numbers), color="#d97b45", label="g h/(1 + kh²/m)")
    axes[1].set(xlabel="kh²/m", ylabel="speed after a step [m/s]", title="from soft to rigid")
    axes[1].legend()
    rope = P.rope((0, 0, 0), (1, 0, 0), 20, stiffness=50.0, density=1.0)
    for alpha, beta in ((1.0, 1.0), (0.6, 0.6), (0.5, 0.5)):
        log = P.simulate_particles(rope, time_step=2e-3, steps=600, alpha=alpha, beta=beta, geometric_stiffness=True)
        axes[2].plot(log.time, log.energy, label=f"α = β = {alpha:g}")
    axes[2].set(xlabel="time [s]", ylabel="energy [J]", title="a rope that is let go")
    axes[2].legend()
    figure.savefig(IMAGES / "large_reached.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    reached()
    builders()
    fall()
