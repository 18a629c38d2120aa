"""Work and precision of the integrators: how far off a motion is against how often its dynamics was computed.

A double pendulum, a four-bar, and a double pendulum whose elbow is a stiff spring and damper swing for a second: by
every method with steps of several lengths, and by the adaptive pair with several tolerances. Run it with
`python examples/work_precision.py`; the picture goes to docs/images.
"""

from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl
from delassus.integrators.choice import INTEGRATORS

STEPS = tuple(0.02 / 2**k for k in range(7))  # s
TOLERANCES = tuple(10.0**-k for k in range(3, 13))
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
ITERATIONS = 3  # of an implicit step, about


def stiff_pendulum() -> dl.Model:
    """A double pendulum with a spring of 2e5 N·m/rad and a damper of 2e3 N·m·s/rad in its elbow."""
    model = dl.load("double_pendulum")
    upper, lower = model.joints
    return replace(model, joints=(upper, replace(lower, stiffness=(2e5,), damping=(2e3,))))


ROBOTS = {
    "double pendulum": (dl.load("double_pendulum"), [2.0, 1.0]),
    "four-bar": (dl.load("four_bar"), dl.load("four_bar").posture("home")),
    "stiff double pendulum": (stiff_pendulum(), [2.0, 0.0]),
}


def evaluations(method: str, nv: int) -> int:
    """How often a step computes the dynamics; a derivative along a direction counts twice."""
    table = INTEGRATORS[method]
    stages = len(getattr(table, "b", (1.0,))) - getattr(table, "first_is_last", False)
    return stages * ITERATIONS + 4 * nv if hasattr(table, "a") and any(table.a[0]) else stages


def curves(model: dl.Model, q) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Evaluations and errors [rad] of each method."""
    exact = dl.simulate_motion(model, q, times=[0.0, 1.0], tolerance=1e-13).q[-1]

    def follow(**how) -> tuple[int, float]:
        log = dl.simulate_motion(model, q, times=[0.0, 1.0], **how)
        error = abs(log.q[-1] - exact).max() if log.ended == 1.0 else np.inf
        return int(log.steps + log.rejected), float(error) if error < 10.0 else np.nan  # blown up

    found = {}
    for method, table in INTEGRATORS.items():
        runs = [follow(tolerance=e) for e in TOLERANCES] if table.adaptive else None
        steps, errors = np.array(runs or [follow(method=method, step=h) for h in STEPS]).T
        found[method] = (steps * evaluations(method, model.nv), errors)
    return found


def draw(robots: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]], path: Path) -> None:
    """A panel for each robot."""
    figure, axes = plt.subplots(1, len(robots), figsize=(5.6 * len(robots), 4.6), layout="constrained", squeeze=False)
    for axis, (name, found) in zip(axes[0], robots.items(), strict=True):
        for method, (work, errors) in found.items():
            axis.loglog(work, np.maximum(errors, 1e-14), "o-", markersize=3, linewidth=1.2, label=method)
        axis.set(title=f"{name}, 1 s", xlabel="evaluations of the dynamics", ylabel="error at the end [rad]")
        axis.set_ylim(1e-14, 10.0)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Measure and draw."""
    OUTPUT.mkdir(exist_ok=True)
    draw({label: curves(*robot) for label, robot in ROBOTS.items()}, OUTPUT / "work_precision.svg")
    print(f"picture: {OUTPUT / 'work_precision.svg'}")


if __name__ == "__main__":
    main()
