"""Points by name as contacts of a simulation: the same as those of `contact_dynamics`, and as balls of the model."""

import numpy as np
import pytest

import delassus as dl
from delassus.simulation import position_servos
from refusals import refuses

ROBOT = dl.load("quadruped")
HOME = ROBOT.posture("home")
FEET = [frame.name for frame in ROBOT.frames("*_foot")]


def standing(ground=None, **contact):
    points = [dl.Contact(name, **contact) for name in FEET]
    return dl.Simulation(ROBOT, ground or dl.Ground(), touching=points, actuators=position_servos(ROBOT, 200.0, 10.0))


def test_points_that_touch_have_the_impulses_of_contact_dynamics():
    points = [dl.Contact(name, friction=0.5) for name in FEET]
    sim = dl.Simulation(ROBOT, dl.Ground(), touching=points, actuators=())
    state = sim.start(HOME - np.eye(19)[2] * sim.contacts(HOME).gap.min())
    rest = np.zeros(ROBOT.nv)
    tau = dl.passive_forces(ROBOT, state.q, rest)
    expected = dl.contact_dynamics(ROBOT, state.q, rest, tau, contacts=points, time_step=sim.time_step)
    after = sim.step(state)
    assert expected.impulse[2::3].max() > 1e-3
    np.testing.assert_allclose(after.impulse[:12], expected.impulse, atol=1e-6)


GROUNDS = {"plane": dl.Ground(), "field": dl.Ground(heights=np.zeros((20, 20)), spacing=0.3)}


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_a_robot_stands_on_its_points(ground):
    sim = standing(ground)
    log = sim.run(HOME, control=HOME[7:], steps=500)
    weight = -ROBOT.gravity[2] * ROBOT.mass
    assert sum(log.normal_force(name)[-1] for name in FEET) == pytest.approx(weight, rel=1e-2)
    assert np.abs(sim.contacts(log.q[-1]).gap).max() < 1e-6


def test_points_with_a_radius_are_balls_of_the_model():
    balls = dl.Simulation(ROBOT, dl.Ground(), touching="*_calf_1", actuators=())
    radius = balls.scene.shapes[0].geometry.size[0]
    names = [shape.geometry.name for shape in balls.scene.shapes]
    points = [dl.Contact(name, radius=radius) for name in FEET]
    again = dl.Simulation(ROBOT, dl.Ground(), touching=points, actuators=())
    one, other = (sim.run(HOME, steps=50).q for sim in (balls, again))
    assert len(names) == 4
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_names_and_points_stand_side_by_side():
    pad = dl.Contact.foot(FEET[0], 0.1, 0.05, name="pad")
    sim = dl.Simulation(ROBOT, touching=["trunk_0", pad])
    assert [shape.geometry.name for shape in sim.scene.shapes] == ["trunk_0", "pad_0", "pad_1", "pad_2", "pad_3"]


@pytest.mark.parametrize("given", [{"height": 0.1}, {"normal": (1, 0, 1)}, {"restitution": 0.5}, {"compliance": 1e-6}])
def test_a_point_with_a_plane_or_law_of_its_own_is_refused(given):
    with refuses("not-supported", repr(FEET[0]), next(iter(given))):
        standing(**given)


def test_a_point_of_the_world_is_refused():
    with refuses("immovable", "'world'"):
        dl.Simulation(ROBOT, touching=dl.Contact("world"))
