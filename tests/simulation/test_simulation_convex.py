"""Bodies on each other at rest, by pairs of convex shapes: forces, drift, energy."""

import math

import numpy as np
import pytest

import delassus as dl
from bodies import G, body

BLOCK = body("box", (0.4, 0.3, 0.2), 5.0, (0.054, 0.083, 0.104))
TABLE = body("cylinder", (0.3, 0.2), 5.0, (0.129, 0.129, 0.225))
INERTIA = (0.01, 0.01, 0.01)
UPRIGHT, LYING = (0.0, 0.0, 0.0, 1.0), (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))

RESTING = {
    "a cylinder stands on a box": (BLOCK, "box", "cylinder", (0.05, 0.1), 0.15, UPRIGHT),
    "a cylinder lies on a box": (BLOCK, "box", "cylinder", (0.05, 0.2), 0.15, LYING),
    "a box stands on a cylinder": (TABLE, "cylinder", "box", (0.1, 0.1, 0.1), 0.15, UPRIGHT),
    "a cylinder stands on a cylinder": (TABLE, "cylinder", "cylinder", (0.1, 0.1), 0.15, UPRIGHT),
    "a capsule lies on a cylinder": (TABLE, "cylinder", "capsule", (0.05, 0.2), 0.15, LYING),
    "an ellipsoid lies on a box": (BLOCK, "box", "ellipsoid", (0.08, 0.06, 0.05), 0.15, UPRIGHT),
}


@pytest.mark.parametrize("case", RESTING)
def test_bodies_rest_on_each_other(case):
    below, name, shape, size, height, turn = RESTING[case]
    model = below.attach(body(shape, size, 2.0, INERTIA), "world", prefix="a_")
    sim = dl.Simulation(model, touching=name, colliding=[(f"a_{shape}", name)])
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0.01, 0.02, 0.1 + height, *turn])
    log = sim.run(q0, steps=500, every=10)
    assert np.abs(log.v).max() < 1e-7 and np.abs(log.q - q0).max() < 1e-7
    np.testing.assert_allclose(log.normal_force(name)[-1], 7.0 * G, rtol=1e-6)
    assert not log.status.any()
