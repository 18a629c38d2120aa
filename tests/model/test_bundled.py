"""The robots of the package: what they weigh, how they move, and that their loops are closed where they say so."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.bundled import BUNDLED
from delassus.model.equality import Connect
from refusals import refuses

SIZES = {
    "pendulum": (1, 0),
    "double_pendulum": (2, 0),
    "cart_pole": (2, 0),
    "slider_crank": (3, 1),
    "four_bar": (3, 1),
    "five_bar": (4, 1),
    "delta": (21, 6),
    "stewart": (24, 6),
    "arm7": (7, 0),
    "gripper": (1, 0),
    "quadruped": (18, 0),
    "biped": (22, 2),
    "humanoid": (36, 0),
}
every_robot = pytest.mark.parametrize("name", BUNDLED)
LOOPS = [name for name, (_, ties) in SIZES.items() if ties]


def home(model):
    return model.posture("home") if model.postures else model.neutral()


def gap(model, q, tie):
    """The way between the two frames of a tie [m]."""
    ends = [dl.frame_placement.python(model, q, frame=frame)[1] for frame in (tie.frame1, tie.frame2)]
    return np.linalg.norm(ends[0] - ends[1])


@every_robot
def test_a_robot_has_its_velocities_and_loops(name):
    model = dl.load(name)
    assert (model.nv, len(model.constraints)) == SIZES[name]


@every_robot
def test_a_robot_can_be_built_and_its_masses_are_plausible(name):
    model = dl.load(name)
    assert 0.05 < sum(joint.inertia.mass for joint in model.joints) < 100.0
    assert not dl.mass_report(model).warnings


@every_robot
def test_forward_and_inverse_dynamics_are_inverse_to_each_other(name):
    model = dl.load(name)
    v, tau = np.random.default_rng(0).normal(size=(2, model.nv))
    a = dl.aba.python(model, home(model), v, tau)
    np.testing.assert_allclose(dl.rnea.python(model, home(model), v, a), tau, atol=1e-8)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_closed_at_home(name):
    model = dl.load(name)
    assert all(isinstance(tie, Connect) for tie in model.constraints)
    assert max(gap(model, home(model), tie) for tie in model.constraints) < 1e-12


@pytest.mark.parametrize("name", LOOPS)
def test_loops_leave_the_degrees_of_freedom_that_the_robot_has(name):
    freedom = {"slider_crank": 1, "four_bar": 1, "five_bar": 2, "delta": 3, "stewart": 6, "biped": 18 + 6 - 6}
    model = dl.load(name)
    J = []
    for tie in model.constraints:
        one, other = (
            dl.frame_jacobian.python(model, home(model), frame=f, reference="LOCAL_WORLD_ALIGNED")[:3]
            for f in (tie.frame1, tie.frame2)
        )
        J.append(one - other)
    assert model.nv - np.linalg.matrix_rank(np.concatenate(J), tol=1e-9) == freedom[name]


@pytest.mark.parametrize(("name", "soles"), [("quadruped", "*_foot"), ("biped", "*_sole"), ("humanoid", "*_sole")])
def test_feet_stand_on_the_ground_at_home(name, soles):
    model = dl.load(name)
    radius = 0.02 if name == "quadruped" else 0.0
    heights = [dl.frame_placement.python(model, home(model), frame=f.name)[1][2] for f in model.frames(soles)]
    np.testing.assert_allclose(heights, radius, atol=1e-12)


def test_a_robot_of_the_package_cannot_be_freed():
    with refuses("conflicting-arguments"):
        dl.load("arm7", root="free")
