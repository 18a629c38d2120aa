"""Draws the pictures of docs/reactive.md from simulations of controlled robots; `make pictures` runs it."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import reactive_humanoid as humanoid
import reactive_quadruped as quadruped

import delassus as dl

OUTPUT = Path(__file__).parent.parent / "docs" / "images"
INK, COLORS = "#2c3e50", ("#c0392b", "#e67e22", "#27ae60", "#2980b9")

matplotlib.rcParams.update({"font.size": 9, "svg.hashsalt": "delassus", "axes.edgecolor": INK})


def skeleton(
    ax, robot: dl.Model, q: np.ndarray, chains: list[list[str]], color: str, alpha: float, shift: float
) -> None:
    """A robot from the side: lines from frame to frame."""
    for chain in chains:
        points = np.array([dl.frame_placement(robot, q, frame=name)[1] for name in chain])
        ax.plot(points[:, 0] + shift, points[:, 2], "-", color=color, alpha=alpha, lw=2.0, solid_capstyle="round")
        ax.plot(points[-1:, 0] + shift, points[-1:, 2], "o", color=color, alpha=alpha, ms=3)


def chains_of(legs) -> list[list[str]]:
    """Of a quadruped: legs, and a line along the trunk."""
    ends = [[f"{leg}_hip", f"{leg}_thigh", f"{leg}_calf", f"{leg}_foot"] for leg in legs]
    return [["hind_left_hip", "front_left_hip"], ["hind_right_hip", "front_right_hip"], *ends]


def moments(ax, run, times, apart: float, chains) -> None:
    """A robot at some times, side by side."""
    robot = dl.load("quadruped")
    for k, at in enumerate(times):
        q = run.q[int(np.searchsorted(run.time, at))]
        skeleton(ax, robot, q, chains, INK, 0.9, apart * k)
        ax.text(apart * k + q[0], 0.42, f"{at:g} s", ha="center", color=INK)
    ax.axhline(0.0, color=INK, lw=1.0)
    ax.set(aspect="equal", ylim=(-0.03, 0.48))
    ax.axis("off")


def lifted() -> None:
    """The quadruped at five moments, and what its feet carry."""
    run = quadruped.lift_foot()
    figure, (above, below) = plt.subplots(2, 1, figsize=(9.0, 4.8), height_ratios=(1.0, 1.2))
    moments(above, run, (0.1, 0.7, 1.1, 1.5, 2.5), 0.75, chains_of(quadruped.LEGS))
    force, time = np.array(run.force), np.array(run.time)
    for k, (leg, color) in enumerate(zip(quadruped.LEGS, COLORS, strict=True)):
        below.plot(time, force[:, k, 2], color=color, label=leg.replace("_", " "))
    below.set(xlabel="time [s]", ylabel="normal force [N]", xlim=(0.0, time[-1]))
    below.legend(frameon=False, ncols=4, fontsize=8)
    save(figure, "reactive_lift.svg")


def trotting() -> None:
    """The quadruped while it trots, which feet stand, and how fast it goes."""
    run = quadruped.trot()
    figure, (above, below) = plt.subplots(2, 1, figsize=(9.0, 4.8), height_ratios=(1.0, 1.2))
    moments(above, run, (0.3, 1.08, 1.26, 1.8, 1.98), 0.62, chains_of(quadruped.LEGS))
    active, time = np.array(run.active)[::3], np.array(run.time)[::3]
    for k, (leg, color) in enumerate(zip(quadruped.LEGS, COLORS, strict=True)):
        below.fill_between(time, k, k + 0.8, where=active[:, k] > 0.5, color=color, alpha=0.5, lw=0.0)
        below.text(time[0], k + 0.4, leg.replace("_", " "), va="center", fontsize=8, color=INK)
    speed = below.twinx()
    speed.plot(time, np.array(run.v)[::3, 0], color=INK)
    speed.set_ylabel("speed of the trunk [m/s]")
    below.set(xlabel="time [s]", ylabel="feet that stand", yticks=[], xlim=(0.0, time[-1]))
    save(figure, "reactive_trot.svg")


def balancing() -> None:
    """Pushes on the humanoid, its centre of mass, its pressure, and how much of the friction it uses."""
    run = humanoid.balance()
    time, com, force = np.array(run.time), np.array(run.com), np.array(run.force)
    figure, axes = plt.subplots(3, 1, figsize=(9.0, 6.0), sharex=True)
    for ax in axes:
        for at, _ in humanoid.PUSHES:
            ax.axvspan(at, at + 0.1, color="#bdc3c7", alpha=0.6, lw=0.0)
    for k, name in enumerate(("forward", "to the left")):
        axes[0].plot(time, 1e3 * (com[:, k] - com[0, k]), color=COLORS[k * 3], label=name)
        total = force[:, :, 2].sum(1)
        pressure = -force[:, :, 4].sum(1) if k == 0 else force[:, :, 3].sum(1)
        axes[1].plot(time, 1e3 * pressure / total, color=COLORS[k * 3], label=name)
    axes[1].axhspan(-42.5, 42.5, color=COLORS[3], alpha=0.07, lw=0.0)
    used = np.linalg.norm(force[..., :2], axis=-1) / force[..., 2]
    for k, sole in enumerate(humanoid.SOLES):
        axes[2].plot(time, used[:, k], color=COLORS[k + 1], label=sole.replace("_", " "))
    axes[2].axhline(humanoid.FRICTION, color=INK, ls="--", lw=1.0)
    axes[0].set_ylabel("centre of mass [mm]")
    axes[1].set_ylabel("pressure in the soles [mm]")
    axes[2].set(ylabel="tangential / normal force", xlabel="time [s]", xlim=(0.0, time[-1]))
    for ax in axes:
        ax.legend(frameon=False, fontsize=8, loc="upper right")
    save(figure, "reactive_balance.svg")


def save(figure, name: str) -> None:
    """Write a picture."""
    OUTPUT.mkdir(exist_ok=True, parents=True)
    figure.tight_layout()
    figure.savefig(OUTPUT / name, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """All pictures."""
    lifted()
    trotting()
    balancing()


if __name__ == "__main__":
    main()
