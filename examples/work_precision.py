"""Work and precision of the integrators: how far off a motion is against how often its dynamics was computed.

A double pendulum and a four-bar swing for a second, by every method with steps of several lengths, and by the adaptive
pair with several tolerances. Run it with `python examples/work_precision.py`; the picture goes to docs/images.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl
from delassus.stepping.integrators.choice import INTEGRATORS

STEPS = tuple(0.02 / 2**k for k in range(7))  # s
TOLERANCES = tuple(10.0**-k for k in range(3, 13))
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
ITERATIONS = 3  # of an implicit step, about
ROBOTS = {"double pendulum": ("double_pendulum", [2.0, 1.0]), "four-bar": ("four_bar", None)}


def evaluations(method: str, nv: int) -> int:
    """How often a step computes the dynamics; a derivative along a direction counts twice."""
    table = INTEGRATORS[method]
    stages = len(getattr(table, "b", (1.0,)))
    return stages * ITERATIONS + 4 * nv if hasattr(table, "a") and any(table.a[0]) else stages


def curves(name: str, q) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Evaluations and errors [rad] of each method."""
    model = dl.load(name)
    q = model.posture("home") if q is None else np.array(q)
    exact = dl.simulate_motion(model, q, times=[0.0, 1.0], tolerance=1e-14).q[-1]

    def follow(**how) -> tuple[int, float]:
        log = dl.simulate_motion(model, q, times=[0.0, 1.0], **how)
        return int(log.steps + log.rejected), float(abs(log.q[-1] - exact).max())

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
            axis.loglog(work, np.maximum(errors, 1e-16), "o-", markersize=3, linewidth=1.2, label=method)
        axis.set(title=f"{name}, 1 s", xlabel="evaluations of the dynamics", ylabel="error at the end [rad]")
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
