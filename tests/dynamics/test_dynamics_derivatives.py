"""Derivatives of dynamics against Pinocchio's on every robot of example-robot-data, and against those of the graph.

A relative error in the infinity norm of 1e-9 is allowed, and 1e3·eps·cond M if that is more for what solves with the
mass matrix. Joints of every kind, and frames, are in test_joints, joints that mimic in test_mimic.
"""

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.compiler import jacobian
from delassus.compiler.backends.interpreter import evaluate
from delassus.dynamics.tree.check import SingularMassMatrix
from delassus.model.generators import random_tree
from delassus.model.parts import WORLD, Frame
from native_bits import FULL
from robot_cases import REFERENCES, Case, case, every_other_robot, mass_matrix
from robots import file

COMPILED = ["ur5_robot.urdf", "solo12.urdf", "panda.urdf"]
LARGE = ["icub.urdf", "talos_full_v2.urdf"]


def error(ours, theirs):
    """The largest error of each derivative, relative to its largest element."""
    return max(
        np.max(np.abs(here - there)) / max(np.max(np.abs(there)), 1e-3)
        for here, there in zip(ours, theirs, strict=True)
    )


def plainly(c: Case):
    return lambda kernel, *arrays, **options: kernel.python(c.model, *arrays, **options)


def compiled(c: Case):
    return lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options)


def check_torques(c: Case, run):
    by_q, by_v, M = pin.computeRNEADerivatives(c.theirs, c.data, c.pq, c.v, c.a)
    assert error(run(dl.rnea_derivatives, c.q, c.v, c.a), (by_q, by_v, np.triu(M) + np.triu(M, 1).T)) <= 1e-9


def check_accelerations(c: Case, run):
    tau = pin.rnea(c.theirs, c.data, c.pq, c.v, c.a)
    by_q, by_v, inverse = pin.computeABADerivatives(c.theirs, c.data, c.pq, c.v, tau)
    theirs = (by_q, by_v, np.triu(inverse) + np.triu(inverse, 1).T)
    try:
        ours = run(dl.aba_derivatives, c.q, c.v, tau)
    except SingularMassMatrix:
        assert np.linalg.matrix_rank(mass_matrix(c)) < c.model.nv, "refused, though its mass matrix has full rank"
        return
    assert error(ours, theirs) <= max(1e-9, 1e3 * np.finfo(float).eps * np.linalg.cond(mass_matrix(c)))


def check_regressor(c: Case, run):
    there = pin.computeJointTorqueRegressor(c.theirs, c.data, c.pq, c.v, c.a)
    assert error([run(dl.torque_regressor, c.q, c.v, c.a)], [np.reshape(there, (c.model.nv, -1))]) <= 1e-9


def check_frames(c: Case, run):
    m, d, (name, k) = c.theirs, c.data, c.frame
    pin.computeForwardKinematicsDerivatives(m, d, c.pq, c.v, c.a)
    pin.updateFramePlacements(m, d)
    for reference, r in REFERENCES.items():
        options = {"frame": name, "reference": reference}
        _, *of_acceleration = (np.array(x) for x in pin.getFrameAccelerationDerivatives(m, d, k, r))
        of_velocity = [np.array(x) for x in pin.getFrameVelocityDerivatives(m, d, k, r)]
        if reference == "LOCAL_WORLD_ALIGNED":  # there, the point at which the motion is taken stands still
            for by_q, motion in (
                (of_velocity[0], pin.getFrameVelocity(m, d, k, r)),
                (of_acceleration[0], pin.getFrameAcceleration(m, d, k, r)),
            ):
                by_q[:3] += np.cross(motion.angular, of_velocity[1][:3], axisb=0, axisc=0)
        assert error(run(dl.frame_velocity_derivatives, c.q, c.v, **options), of_velocity) <= 1e-9
        assert error(run(dl.frame_acceleration_derivatives, c.q, c.v, c.a, **options), of_acceleration) <= 1e-9


CHECKS = [check_torques, check_accelerations, check_regressor, check_frames]
NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


@every_other_robot
def test_plain_numpy_agrees_with_pinocchio(path, root):
    c = case(path, root)
    for check in CHECKS:
        check(c, plainly(c))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees_with_pinocchio(name, check):
    c = case(file(name), "free")
    check(c, compiled(c))


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@pytest.mark.parametrize("name", LARGE)
def test_compiled_code_of_large_robots_agrees_with_pinocchio(name, check):
    c = case(file(name), "free")
    check(c, compiled(c))


def small_tree():
    tree = random_tree(5, seed=2)
    return tree, np.random.default_rng(3).normal(size=(3, tree.nv))


def test_torque_derivatives_are_those_of_the_graph():
    tree, x = small_tree()
    expected = jacobian(lambda *x: dl.rnea.function(tree, *x), (0, 1, 2))(*x)
    assert error(dl.rnea_derivatives.python(tree, *x), expected) <= 1e-12


def test_acceleration_derivatives_are_those_of_the_graph():
    tree, x = small_tree()
    expected = jacobian(lambda *x: dl.aba.function(tree, *x), (0, 1, 2))(*x)
    assert error(dl.aba_derivatives.python(tree, *x), expected) <= 1e-11


@pytest.mark.parametrize("kernel", [dl.rnea_derivatives, dl.aba_derivatives], ids=["torques", "accelerations"])
def test_compiled_derivatives_have_the_bits_of_the_interpreter(kernel):
    tree, _ = small_tree()
    x = np.random.default_rng(4).normal(size=(3, 37, tree.nv))
    found = kernel.compiled(tree, target=FULL).ufunc(*x)
    for ours, expected in zip(found, evaluate(kernel.program(tree), *x), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_the_regressor_times_the_parameters_is_the_torque():
    c = case(file("solo12.urdf"), "free")
    parameters = np.concatenate([inertia.toDynamicParameters() for inertia in c.theirs.inertias[1:]])
    torques = dl.torque_regressor.python(c.model, c.q, c.v, c.a) @ parameters
    np.testing.assert_allclose(torques, pin.rnea(c.theirs, c.data, c.pq, c.v, c.a), rtol=1e-12, atol=1e-12)


def test_an_inverse_mass_matrix_is_symmetric_to_the_bit():
    tree, x = small_tree()
    inverse = dl.aba_derivatives(tree, *x)[2]
    np.testing.assert_array_equal(inverse, inverse.T)


def test_frames_of_the_world_have_no_derivatives():
    tree, (q, v, a) = small_tree()
    model = dl.Model("on the ground", tree.joints, (Frame("ground", WORLD),))
    for derivative in dl.frame_acceleration_derivatives.python(model, q, v, a, frame="ground"):
        np.testing.assert_array_equal(derivative, np.zeros((6, tree.nv)))


def test_a_model_without_inertia_is_refused():
    tree, x = small_tree()
    model = tree.with_inertia(tree.joints[-1].name, dl.Inertia.of(0.0))
    with pytest.raises(SingularMassMatrix, match=tree.joints[-1].name):
        dl.aba_derivatives(model, *x)
