"""External forces on bodies, in inverse and forward dynamics and in the derivatives of both, against Pinocchio's."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.model.generators import random_tree
from differences import jacobian
from joint_cases import EACH, Case, mass_matrix, mechanism


@cache
def chained() -> Case:
    """Joints of all kinds in a row, as Pinocchio's derivatives need them, and a branch at the end."""
    kinds = np.random.default_rng(3).permutation(EACH).tolist()
    return mechanism(kinds, [*range(len(kinds) - 1), 4], 4, armature=True)


@cache
def wrenches() -> tuple[np.ndarray, pin.StdVec_Force]:
    forces = 10.0 * np.random.default_rng(1).normal(size=(len(EACH) + 1, 6))
    theirs = pin.StdVec_Force()
    for f in forces:
        theirs.append(pin.Force(f))
    return forces[1:], theirs


def assert_close(ours, theirs, bound=1e-10):
    assert np.max(np.abs(ours - theirs)) <= bound * max(np.max(np.abs(theirs)), 1.0)


def plainly(kernel, *arrays, **options):
    return kernel.python(chained().model, *arrays, **options)


def compiled(kernel, *arrays, **options):
    return kernel(chained().model, *arrays, **options)


every_way = pytest.mark.parametrize("run", [plainly, compiled])


def torques(c: Case) -> np.ndarray:
    return pin.rnea(c.theirs, c.data, c.pq, c.v, c.a, wrenches()[1])


@every_way
def test_forward_dynamics_gives_the_accelerations_that_torques_and_forces_belong_to(run):
    c = chained()
    bound = 1e3 * np.finfo(float).eps * np.linalg.cond(mass_matrix(c))
    assert_close(run(dl.aba, c.q, c.v, torques(c), forces=wrenches()[0]), c.a, bound)


@every_way
def test_derivatives_of_torques_are_those_of_differences(run):
    c, (forces, theirs) = chained(), wrenches()
    m, d = c.theirs, c.data
    by_q = jacobian(lambda x: pin.rnea(m, d, pin.integrate(m, c.pq, x), c.v, c.a, theirs), m.nv)
    by_v = jacobian(lambda x: pin.rnea(m, d, c.pq, c.v + x, c.a, theirs), m.nv)
    ours = run(dl.rnea_derivatives, c.q, c.v, c.a, forces=forces)
    for here, there in zip(ours, (by_q, by_v, mass_matrix(c)), strict=True):
        assert_close(here, there, 1e-9)


def test_forces_change_the_derivatives_of_torques():
    c = chained()
    pushed, _, _ = plainly(dl.rnea_derivatives, c.q, c.v, c.a, forces=wrenches()[0])
    assert np.max(np.abs(pushed - plainly(dl.rnea_derivatives, c.q, c.v, c.a)[0])) > 1.0


@every_way
def test_derivatives_of_accelerations_belong_to_those_of_torques(run):
    c, (forces, _) = chained(), wrenches()
    by_q, by_v, M = run(dl.rnea_derivatives, c.q, c.v, c.a, forces=forces)
    ours = run(dl.aba_derivatives, c.q, c.v, torques(c), forces=forces)
    for here, there in zip(ours, (-by_q, -by_v, np.eye(c.model.nv)), strict=True):
        assert_close(M @ here, there, 1e-13 * np.linalg.cond(M))


def test_derivatives_are_pinocchios_on_a_robot():
    theirs = pin.buildSampleModelHumanoidRandom()
    model, d, rng = dl.from_pinocchio(theirs), theirs.createData(), np.random.default_rng(0)
    q, (v, tau) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    forces, list_of = rng.normal(size=(theirs.njoints, 6)), pin.StdVec_Force()
    for f in forces:
        list_of.append(pin.Force(f))
    by_q, by_v, inverse = pin.computeABADerivatives(theirs, d, q, v, tau, list_of)
    ours = dl.aba_derivatives.python(model, q, v, tau, forces=forces[1:])
    for here, there in zip(ours, (by_q, by_v, np.triu(inverse) + np.triu(inverse, 1).T), strict=True):
        assert_close(here, there, 1e-9)


def test_forces_act_where_joints_mimic_others():
    model = dl.load("gripper")
    forces, q = np.random.default_rng(0).normal(size=(2, 6)), [0.02]
    a = dl.aba.python(model, q, [0.3], [0.1], forces=forces)
    np.testing.assert_allclose(dl.rnea.python(model, q, [0.3], a, forces=forces), [0.1], rtol=1e-12)
    free = replace(model, joints=tuple(replace(joint, mimic=None) for joint in model.joints))
    follower = next(joint for joint in model.joints if joint.mimic)
    q_full = np.array([0.02, follower.mimic.ratio * 0.02 + follower.mimic.offset])
    G = np.array([1.0, follower.mimic.ratio])
    tau = dl.rnea.python(free, q_full, 0.3 * G, a[0] * G, forces=forces)
    assert G @ tau == pytest.approx(0.1, rel=1e-12)


def test_no_forces_are_forces_of_zero():
    model = random_tree(5, seed=0)
    rng = np.random.default_rng(1)
    q, (v, tau) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    still = np.zeros((model.njoints, 6))
    np.testing.assert_array_equal(dl.aba.python(model, q, v, tau, forces=still), dl.aba.python(model, q, v, tau))


def test_forces_come_last_in_a_specialised_kernel():
    c, (forces, _) = chained(), wrenches()
    f = dl.rnea.specialize(c.model, inputs=("forces",))
    assert_close(f(c.q, c.v, c.a, forces), torques(c))
