"""Draws the stages of a time step, with the types between them, into docs/images."""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

IMAGES = Path(__file__).parent.parent / "docs" / "images"
INK, PAPER, ACCENT = "#1f2933", "#eef2f6", "#b3541e"
HEIGHT, GAP, WIDTH = 0.62, 0.44, 2.1
LOOPS_AT = 8.9


class Stage(NamedTuple):
    """A stage of a step: its name, the type that it returns, and what it computes."""

    name: str
    result: str
    text: str


STAGES = (
    Stage("kinematics", "Kinematics", "poses and Jacobians of the links"),
    Stage("collide", "Contacts", "gap, point, axes and bodies of the nearest candidates"),
    Stage("forces", "Drive", "actuators, springs, dampers; their implicit part $\\hat M - M$"),
    Stage("assemble", "StepSystem", "rows $J$, factor of $\\hat M$, response $S = J \\hat M^{-1} J^T$, velocities $g$"),
    Stage("solve", "Impulses", "laws of contact, loops and limits on $\\sigma = G\\lambda + g$; restitution"),
    Stage("integrate", "Motion", "$q \\oplus h v$ on the manifold; penetrations are corrected"),
    Stage("close loops", "StepResult", "loops closed; energy and momentum restored"),
)
LOOPS = (
    (0.0, "servo limits\nguessed wrong"),
    (1.75, "substeps: turns\nof over 0.2 rad"),
)
"""Why a step is made again, and how far to the right that is drawn."""


def bottom(k: int) -> float:
    """The lower edge of stage number k."""
    return -k * (HEIGHT + GAP)


def draw_stage(ax: Any, k: int, stage: Stage) -> None:
    """A box with the name, what it computes, and an arrow with the type of the result."""
    y = bottom(k)
    box = FancyBboxPatch((0, y), WIDTH, HEIGHT, boxstyle="round,pad=0,rounding_size=0.1", fc=PAPER, ec=INK, lw=1.0)
    ax.add_patch(box)
    ax.text(0.5 * WIDTH, y + 0.5 * HEIGHT, f"{k + 1}  {stage.name}", ha="center", va="center", weight="bold", color=INK)
    ax.text(WIDTH + 0.25, y + 0.5 * HEIGHT, stage.text, va="center", color=INK)
    draw_arrow(ax, y, stage.result)


def draw_arrow(ax: Any, y: float, label: str) -> None:
    """Down from y to the next box, with the name of a type."""
    tip = (0.5 * WIDTH, y - GAP)
    ax.annotate("", tip, (0.5 * WIDTH, y), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.0})
    ax.text(0.5 * WIDTH + 0.14, y - 0.5 * GAP, label, va="center", family="monospace", size=9, color=ACCENT)


def draw_loop(ax: Any, out: float, text: str) -> None:
    """A way back from the last stage to the first."""
    x, start, end = LOOPS_AT + out, bottom(len(STAGES) - 1) + 0.5 * HEIGHT, 0.5 * HEIGHT
    ax.plot([x - 0.22, x, x], [start, start, end], color=ACCENT, lw=1.0, ls="--")
    arrow = {"arrowstyle": "-|>", "color": ACCENT, "lw": 1.0, "ls": "--"}
    ax.annotate("", (x - 0.3, end), (x + 0.01, end), arrowprops=arrow)
    ax.text(x + 0.1, 0.5 * (start + end), text, va="center", size=9, color=ACCENT)


def main() -> None:
    """Draw all stages, and what leads back."""
    matplotlib.rcParams |= {"svg.hashsalt": "delassus", "font.size": 10, "mathtext.fontset": "cm"}
    figure, ax = plt.subplots(figsize=(10.4, 7.2))
    draw_arrow(ax, HEIGHT + GAP, "StepState (q, v, impulse, …),  StepInputs (control, h, ground, contact)")
    for k, stage in enumerate(STAGES):
        draw_stage(ax, k, stage)
    for loop in LOOPS:
        draw_loop(ax, *loop)
    end = bottom(len(STAGES) - 1) - GAP
    text = (
        "next step of the control period; at its end the host solves flagged items again,\n"
        "with more iterations or with the full contact set"
    )
    ax.text(0.5 * WIDTH, end - 0.1, text, va="top", ha="left", color=INK)
    ax.set(xlim=(-0.2, 12.4), ylim=(end - 0.75, HEIGHT + GAP + 0.1), aspect="equal")
    ax.axis("off")
    figure.savefig(IMAGES / "stages.svg", metadata={"Date": None}, transparent=True, bbox_inches="tight")


if __name__ == "__main__":
    main()
