"""Robots of example-robot-data, as URDF with their SRDF: they load, stand with servos, and fall without."""

from pathlib import Path

import numpy as np
import pytest

import delassus as dl

pin = pytest.importorskip("pinocchio")
ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
CASES = {
    "solo": ("solo_description/robots/solo12.urdf", "solo_description/srdf/solo.srdf"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "anymal_b_simple_description/srdf/anymal.srdf"),
    "go2": ("go2_description/urdf/go2.urdf", "go2_description/srdf/go2.srdf"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf"),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", None),
}
pytestmark = pytest.mark.skipif(not ROBOTS.is_dir(), reason="example-robot-data is not installed")


def robot(name):
    urdf, srdf = CASES[name]
    beside = {} if srdf is None else {"srdf": ROBOTS / srdf}
    return dl.load(ROBOTS / urdf, root="free", packages=[ROBOTS.parents[1], ROBOTS], **beside)


def upright(model):
    """A posture of the SRDF; without one, legs stretched, the lowest shape on the ground."""
    return (
        model.posture(model.postures[0].name)
        if model.postures
        else model.configuration(root_joint=(0, 0, 1, 0, 0, 0, 1))
    )


@pytest.mark.parametrize("name", CASES)
def test_robots_load_with_limits_shapes_and_disabled_pairs(name):
    model = robot(name)
    assert model.nu == model.nv - 6 and len(model.shapes) > 10
    assert np.isfinite(model.effort_limit[6:]).all()
    assert (len(model.contact_rules.excluded) > 10) == (CASES[name][1] is not None)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_robots_stand_with_servos_and_fall_without(name):
    model = robot(name)
    q, weight = upright(model), 9.81 * model.mass
    servos = dl.position_servos(model, 10.0 * weight / 9.81, 0.3 * weight / 9.81)
    sim = dl.Simulation(model, time_step=2e-3, actuators=servos, self_collision=False)
    start = sim.start(q)
    log = sim.run(start, control=q[7:], steps=500)
    assert abs(log.q[-1, 2] - start.q[2]) < 0.1 * start.q[2]
    fallen = dl.Simulation(model, time_step=2e-3, self_collision=False).run(start.q, steps=500)
    assert fallen.q[-1, 2] < 0.8 * start.q[2] and np.all(fallen.energy <= fallen.energy[0] + 1e-6 * weight)
