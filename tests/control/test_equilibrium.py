"""Poses at rest: gravity compensated through constraints, and equilibria whose contacts obey friction."""

import numpy as np

import delassus as dl
from delassus.model.bundled.build import Assembly, box
from delassus.model.joints import Free
from refusals import refuses

Status = dl.control.ControlStatus
QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")
WEIGHT = 9.81 * QUADRUPED.mass


def feet(friction):
    return [dl.Contact(foot, friction=friction, radius=0.02) for foot in QUADRUPED.frames("*_foot")]


def test_a_four_bar_is_held_by_its_crank():
    loop = dl.Mechanism(dl.load("four_bar"))
    found = dl.control.gravity_compensation(loop, loop.posture("home"), actuation="crank_joint")
    rest = dl.kkt(loop, loop.posture("home"), np.zeros(3), np.array([found.torque[0], 0.0, 0.0]))[0]
    np.testing.assert_allclose(rest, 0.0, atol=1e-10)


def test_a_quadruped_stands_within_friction():
    found = dl.control.equilibrium(QUADRUPED, HOME, contacts=feet(0.7))
    force = found.force.reshape(4, 3)
    assert found.statuses is Status.REALISED and "hold" in found.describe()
    assert np.all(np.hypot(force[:, 0], force[:, 1]) <= 0.7 * force[:, 2] + 1e-8)
    assert abs(force[:, 2].sum() - WEIGHT) < 1e-5 * WEIGHT
    held = dl.contact_dynamics(
        QUADRUPED, HOME, np.zeros(18), np.concatenate([np.zeros(6), found.torque]), contacts=feet(0.7), time_step=1e-3
    )
    np.testing.assert_allclose(held.velocity, 0.0, atol=1e-5)


def test_ice_on_a_slope_holds_nothing_and_a_rough_slope_does():
    a = Assembly("brick")
    a.body("box", Free(), None, (0, 0, 0), [box((0.4, 0.3, 0.2), 2.0)])
    brick, slope = a.model(), 0.3
    q = brick.neutral()
    q[2], q[4:7] = 0.0, (np.sin(slope / 2), 0.0, np.cos(slope / 2))
    normal = np.array([np.sin(slope), 0.0, np.cos(slope)])
    q[:3] = 0.1 * normal
    corners = dl.Contact.foot("box", 0.4, 0.3, center=(0, 0, -0.1), normal=normal)
    found = [dl.control.equilibrium(brick, q, contacts=corners, friction=mu) for mu in (0.2, 0.4)]
    assert [x.statuses for x in found] == [Status.NEAREST, Status.REALISED]
    missing = 2.0 * 9.81 * (np.sin(slope) - 0.2 * np.cos(slope))
    assert np.linalg.norm(found[0].residual[:3]) > 0.5 * missing


def test_a_pose_that_is_no_number_gets_no_torque_and_spoils_no_other():
    poses = np.stack([HOME, HOME, HOME])
    poses[1, 3] = np.nan
    found = dl.control.equilibrium(QUADRUPED, poses, contacts=feet(0.7))
    assert found.status.tolist() == [Status.REALISED, Status.NOT_FINITE, Status.REALISED]
    assert not np.any(found.torque[1]) and np.array_equal(found.torque[0], found.torque[2])


def test_two_motors_on_one_joint_are_refused():
    with refuses("not-supported"):
        dl.control.equilibrium(QUADRUPED, HOME, contacts=feet(0.7), actuation=np.ones((18, 1)))


def test_no_poses_are_told_to_be_none():
    found = dl.control.equilibrium(dl.Mechanism(dl.load("four_bar")), np.zeros((0, 3)))
    assert found.describe() == "There is no pose."


def test_poses_of_other_robots_are_refused():
    with refuses("wrong-shape", "3"):
        dl.control.equilibrium(dl.Mechanism(dl.load("four_bar")), np.zeros(5))
