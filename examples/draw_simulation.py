"""Draws what the guide to simulation shows: a quadruped that is dropped, at six times, into docs/images."""

from pathlib import Path

import drop
import matplotlib
import numpy as np

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def main() -> None:
    """Simulate one robot, and draw it."""
    fall = drop.quadrupeds()
    q0 = fall.q0[np.argmax(fall.q0[:, 2])]
    log = fall.sim.run(q0, control=fall.hold, steps=600)
    matplotlib.rcParams["svg.hashsalt"] = "delassus"  # the same file each time
    figure = log.draw([0.0, 0.12, 0.225, 0.25, 0.35, 0.6])[0].figure
    figure.savefig(IMAGES / "drop.svg", metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    main()
