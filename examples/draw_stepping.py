"""Draws the pictures of docs/compliant.md from steps of the compliant scheme; `make pictures` runs it."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl
from delassus.model.bundled.build import Assembly, Prismatic, ball
from delassus.model.joints import Translation

OUTPUT = Path(__file__).parent.parent / "docs" / "images"
INK, COLORS = "#2c3e50", ("#c0392b", "#e67e22", "#27ae60", "#2980b9")

matplotlib.rcParams.update({"font.size": 10, "svg.hashsalt": "delassus", "axes.edgecolor": INK})


def pendulum() -> dl.Mechanism:
    """A mass of 1 kg on a rod of 1 m, that hangs at q = 0."""
    a = Assembly("pendulum")
    a.body("mass", Translation(), None, (0, 0, 0), [ball(0.05, 1.0)])
    above = dl.Placement.of(p=(0.0, 0.0, 1.0))
    return dl.Mechanism(a.model(), [dl.Distance("mass", placement2=above, length=1.0, name="rod")])


def oscillator() -> dl.Mechanism:
    """A mass of 1 kg on a rail, held at zero by a row; gravity is across."""
    a = Assembly("oscillator")
    a.body("mass", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.05, 1.0)])
    return dl.Mechanism(a.model(), [dl.JointLock("mass_joint", position=0.0, name="spring")])


def run(mechanism: dl.Mechanism, q, v, steps: int, **options):
    """Configurations and velocities (steps + 1, …)."""
    states = [(np.asarray(q, float), np.asarray(v, float))]
    for _ in range(steps):
        found = dl.stepping.compliant_step(mechanism, *states[-1], np.zeros(len(v)), **options)
        states.append((found.q, found.v))
    return tuple(np.stack(x) for x in zip(*states, strict=True))


def error(q):
    """How much longer the rod is than it should be."""
    return np.linalg.norm(q - [0.0, 0.0, 1.0], axis=-1) - 1.0


def elastic_to_rigid() -> None:
    """Paths of a pendulum for several compliances, and what is left of an error as the rod becomes stiff."""
    figure, (left, right, alternating) = plt.subplots(1, 3, figsize=(12.5, 4.0))
    start = [np.sin(1.2), 0.0, 1.0 - np.cos(1.2)]
    for C, color in zip((3e-2, 1e-2, 1e-3, None), COLORS, strict=True):
        rod = {} if C is None else {"compliance": C}
        q, _ = run(pendulum(), start, np.zeros(3), 260, time_step=5e-3, alpha=1.0, **rod)
        left.plot(q[:, 0], q[:, 2] - 1.0, color=color, label="rigid" if C is None else f"C = {C:g} m/N")
    left.plot(0.0, 0.0, "o", color=INK)
    left.set(
        aspect="equal", xlabel="x [m]", ylabel="z [m]", ylim=(-1.8, 0.6), title="one step for all of them, h = 5 ms"
    )
    left.legend(frameon=False, fontsize=8, loc="upper left")
    compliances, h = np.logspace(-12, -2, 21), 1e-2
    for alpha, color in zip((0.5, 0.55, 0.7, 1.0), COLORS, strict=True):
        x = np.full((21, 1), 1e-2)
        states = x, np.zeros((21, 1))
        for _ in range(20):
            found = dl.stepping.compliant_step(
                oscillator(), *states, np.zeros((21, 1)), time_step=h, alpha=alpha, compliance=compliances[:, None]
            )
            states = found.q, found.v
        right.loglog(
            h**2 / compliances, np.maximum(np.abs(states[0][:, 0]), 1e-18), color=color, label=f"α = {alpha:g}"
        )
    right.set(xlabel="k h²/m", ylabel="error after 20 steps, from 1e-2 [m]", title="stiff becomes rigid if α > ½")
    right.legend(frameon=False, fontsize=8)
    rows = {f"α = {alpha:g}": {"alpha": alpha, "compliance": 1e-12} for alpha in (0.5, 0.7, 1.0)}
    for (label, row), color in zip((rows | {"kinematic, α = ½": {"alpha": 0.5}}).items(), COLORS, strict=True):
        q, _ = run(oscillator(), [1e-2], [0.0], 12, time_step=h, **row)
        style = "--" if "kinematic" in label else "-"
        alternating.plot(1e3 * q[:, 0], style, marker="o", markersize=3, color=color, label=label)
    alternating.set(xlabel="steps", ylabel="error [mm]", ylim=(-12, 24), title="k h²/m = 10⁸: at α = ½ it alternates")
    alternating.legend(frameon=False, fontsize=8, loc="upper right")
    save(figure, "elastic_to_rigid")


def alpha_and_beta() -> None:
    """An oscillator with several blends, and their damping ratios."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6))
    blends = ((1.0, 1.0), (0.6, 0.6), (0.5, 0.5), (1.0, 0.0))
    h, phases = 0.2, np.logspace(-2, 0.25, 40)
    t = h * np.arange(101)
    left.plot(t, np.cos(t), color="0.8", linewidth=4.0)
    for (alpha, beta), color in zip(blends, COLORS, strict=True):
        label = f"α = {alpha:g}, β = {beta:g}"
        q, _ = run(oscillator(), [1.0], [0.0], 100, time_step=h, alpha=alpha, beta=beta, compliance=1.0)
        left.plot(t, q[:, 0], color=color, linewidth=1.2)
        ratios = []
        for phase in phases:
            found = dl.stepping.compliant_step(
                oscillator(),
                [[1.0], [0.0]],
                [[0.0], [1.0]],
                np.zeros((2, 1)),
                time_step=phase,
                alpha=alpha,
                beta=beta,
                compliance=1.0,
            )
            root = np.linalg.eigvals(np.concatenate([found.q, found.v], 1).T)[0]
            ratios.append(-np.log(abs(root)) / abs(np.angle(root)))
        style = "--" if beta == 0.0 else "-"
        right.semilogx(phases, ratios, style, color=color, label=label)
        right.semilogx(phases, 0.5 * (alpha + beta - 1.0) * phases, ":", color=color, linewidth=1.0)
    left.set(xlabel="t ω", ylabel="q", title="h ω = 0.2; grey: exact")
    right.set(xlabel="h ω", ylabel="damping ratio", title="dotted: (α + β - 1) h ω / 2", ylim=(-0.05, 0.6))
    right.legend(frameon=False, fontsize=8)
    save(figure, "alpha_and_beta")


def stabilization() -> None:
    """The error of a rigid rod over time, by how it is taken off, and the energy of the pendulum."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6))
    h, steps = 1e-2, 300
    start, t = [np.sin(1.2) * 1.02, 0.0, 1.0 - np.cos(1.2) * 1.02], 1e-2 * np.arange(301)
    for how, color in zip(("none", "pre", "post", "project"), COLORS, strict=True):
        q, v = run(pendulum(), start, np.zeros(3), steps, time_step=h, stabilization=how)
        style = "--" if how in ("pre", "project") else "-"
        energy = 0.5 * (v**2).sum(1) + 9.81 * q[:, 2]
        left.semilogy(t, np.maximum(np.abs(error(q)), 1e-17), style, color=color, label=how, linewidth=1.2)
        right.plot(t[1:], energy[1:], style, color=color, label=how, linewidth=1.2)
    left.set(xlabel="t [s]", ylabel="error of the rod [m]", title="h = 10 ms, begun 2 cm off", ylim=(1e-17, 1e-1))
    right.set(xlabel="t [s]", ylabel="energy [J]", title="velocities that take errors off are energy")
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8)
    save(figure, "stabilization")


def save(figure, name: str) -> None:
    """Into docs/images."""
    figure.tight_layout()
    figure.savefig(OUTPUT / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    elastic_to_rigid()
    alpha_and_beta()
    stabilization()
