"""The steps of the articulated-body recursion, put together as an algorithm does that adds something of its own."""

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.dynamics.tree.articulated import free_joint
from delassus.dynamics.tree.poses import fixed_pose, poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities
from delassus.dynamics.tree.sweep import Inward, propagate_acceleration, world_acceleration
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from robots import file, pinocchio_model

ROBOTS = {"solo12.urdf": "free", "ur5_robot.urdf": "fixed"}
ZERO_INERTIA = (np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)))


def accelerations(model, q, v, tau, gains=None, forces=None):
    """Of the joints (nv,), with `gains` (nv,) added to their D, and forces (njoints, 6) on the bodies in their axes."""
    tree = links_of(model)
    poses = poses_of(tree, q)
    velocity, b = link_velocities(tree, poses, joint_motions(tree, v))
    inward = Inward.of(tree, poses, velocity, b)
    for k, (i, body) in enumerate(() if forces is None else tree.bodies):
        f, n = fixed_pose(body).force_to_parent(forces[k, :3], forces[k, 3:])
        inward.add(i, ZERO_INERTIA, (-f, -n))
    joints, push = {}, np.zeros(model.nv)
    for i, link in reversed(list(enumerate(tree.links))):
        joint = joints[i] = free_joint(link, inward.A[i], None if gains is None else gains[list(link.dofs)])
        u = joint.force(tau, inward.p[i])
        push[joint.at] = joint.push(u)
        inward.hand_on(i, joint, u)
    motion, a = {WORLD: world_acceleration(tree)}, np.zeros(model.nv)
    for i, link in enumerate(tree.links):
        here = propagate_acceleration(poses[i], motion[link.parent], b[i])
        a[joints[i].at] = joints[i].answer(push[joints[i].at], here)
        motion[i] = joints[i].accelerate(here, a[joints[i].at])
    return a


@pytest.fixture(params=ROBOTS)
def case(request):
    """A robot, Pinocchio's model of it, and a state."""
    root, rng = ROBOTS[request.param], np.random.default_rng(5)
    model = dl.load(file(request.param), root=root)
    q = model.random_configuration(rng)
    return model, pinocchio_model(file(request.param), root), q, *rng.normal(size=(2, model.nv))


def error(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def test_what_is_added_to_d_is_added_to_the_diagonal_of_the_mass_matrix(case):
    model, theirs, q, v, tau = case
    h, k_p, k_d = 2e-3, 300.0, 10.0
    gains = np.full(model.nv, h * k_d + h**2 * k_p)
    data = theirs.createData()
    M, c = pin.crba(theirs, data, dl.q_to_pinocchio(model, q)), pin.nle(theirs, data, dl.q_to_pinocchio(model, q), v)
    M = np.triu(M) + np.triu(M, 1).T
    assert error(accelerations(model, q, v, tau, gains), np.linalg.solve(M + np.diag(gains), tau - c)) < 1e-10


def test_a_force_on_a_link_is_taken_off_its_bias_force(case):
    model, theirs, q, v, tau = case
    forces = np.random.default_rng(6).normal(size=(model.njoints, 6))
    on_theirs = [pin.Force.Zero(), *(pin.Force(f) for f in forces)]
    expected = pin.aba(theirs, theirs.createData(), dl.q_to_pinocchio(model, q), v, tau, on_theirs)
    assert error(accelerations(model, q, v, tau, forces=forces), expected) < 1e-10
