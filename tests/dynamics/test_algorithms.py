"""Every algorithm against Pinocchio, on every robot of example-robot-data, fixed and free.

A relative error in the infinity norm of at most max(1e-10, 1e3·eps·cond M) is allowed for what solves with the mass
matrix, 1e-10 for the rest.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.dynamics.tree.check import SingularMassMatrix
from refusals import refuses
from robot_cases import IMMOBILE, REFERENCES, Case, case, every_robot, mass_matrix
from robots import file

COMPILED = ["ur5_robot.urdf", "solo12.urdf", "talos_full_v2.urdf", "panda.urdf"]  # `make test-all` takes all of them


Run = Callable[..., Any]


def kinematics_of(c: Case):
    pin.forwardKinematics(c.theirs, c.data, c.pq)
    rotations = [M.rotation for M in c.data.oMi[1:]]
    return np.array(rotations), np.array([M.translation for M in c.data.oMi[1:]])


def check_kinematics(c: Case, run: Run):
    yield "rotations", run(dl.forward_kinematics, c.q)[0], kinematics_of(c)[0], 0
    yield "positions", run(dl.forward_kinematics, c.q)[1], kinematics_of(c)[1], 0


def check_frames(c: Case, run: Run):
    m, d = c.theirs, c.data
    pin.computeJointJacobians(m, d, c.pq)
    pin.computeJointJacobiansTimeVariation(m, d, c.pq, c.v)
    pin.forwardKinematics(m, d, c.pq, c.v, c.a)
    pin.updateFramePlacements(m, d)
    name, k = c.frame
    yield "placement", run(dl.frame_placement, c.q, frame=name)[1], d.oMf[k].translation, 0
    for reference, r in REFERENCES.items():
        options = {"frame": name, "reference": reference}
        yield "velocity", run(dl.frame_velocity, c.q, c.v, **options), pin.getFrameVelocity(m, d, k, r).vector, 0
        there = pin.getFrameAcceleration(m, d, k, r).vector
        yield "acceleration", run(dl.frame_acceleration, c.q, c.v, c.a, **options), there, 0
        there = pin.getFrameClassicalAcceleration(m, d, k, r).vector
        yield "classical", run(dl.frame_acceleration, c.q, c.v, c.a, classical=True, **options), there, 0
        yield "jacobian", run(dl.frame_jacobian, c.q, **options), pin.getFrameJacobian(m, d, k, r), 0
        there = pin.getFrameJacobianTimeVariation(m, d, k, r) @ c.v
        yield "bias", run(dl.frame_bias, c.q, c.v, **options), there, np.linalg.norm(c.v) ** 2


def check_inverse_dynamics(c: Case, run: Run):
    m, d = c.theirs, c.data
    yield "rnea", run(dl.rnea, c.q, c.v, c.a), pin.rnea(m, d, c.pq, c.v, c.a), 0
    forces = np.random.default_rng(1).normal(size=(m.njoints, 6))
    wrenches = pin.StdVec_Force()
    for f in forces:
        wrenches.append(pin.Force(f))
    yield "forces", run(dl.rnea, c.q, c.v, c.a, forces=forces[1:]), pin.rnea(m, d, c.pq, c.v, c.a, wrenches), 0
    yield "bias", run(dl.bias_torques, c.q, c.v), pin.nonLinearEffects(m, d, c.pq, c.v), 0
    yield "gravity", run(dl.gravity_torques, c.q), pin.computeGeneralizedGravity(m, d, c.pq), 0
    yield "crba", run(dl.crba, c.q), mass_matrix(c), 0


def check_energies(c: Case, run: Run):
    m, d = c.theirs, c.data
    yield "kinetic", run(dl.kinetic_energy, c.q, c.v), pin.computeKineticEnergy(m, d, c.pq, c.v), 0
    weight = 9.81 * sum(i.mass for i in m.inertias[1:])
    yield "potential", run(dl.potential_energy, c.q), pin.computePotentialEnergy(m, d, c.pq), weight
    yield "center", run(dl.center_of_mass, c.q), pin.centerOfMass(m, d, c.pq), 0
    yield "its jacobian", run(dl.center_of_mass_jacobian, c.q), pin.jacobianCenterOfMass(m, d, c.pq), 0
    yield "momentum", run(dl.centroidal_momentum, c.q, c.v), pin.computeCentroidalMomentum(m, d, c.pq, c.v).vector, 0


def check_solutions(c: Case, run: Run):
    M = mass_matrix(c)
    tau = pin.rnea(c.theirs, c.data, c.pq, c.v, c.a)
    yield "aba", run(dl.aba, c.q, c.v, tau), c.a, 0
    inverse = np.linalg.inv(M)
    yield "inverse", run(dl.inverse_mass_matrix, c.q), inverse, 0
    U, D = run(dl.udu, c.q)
    yield "udu", U * D @ U.T, M, 0
    yield "solve", run(dl.udu_solve, c.q, M @ c.a), c.a, 0


def check_manifold(c: Case, run: Run):
    m = c.theirs
    moved = run(dl.integrate, c.q, 0.5 * c.v)
    yield "integrate", dl.q_to_pinocchio(c.model, moved), pin.integrate(m, c.pq, 0.5 * c.v), 0
    yield "difference", run(dl.difference, c.q, moved), 0.5 * c.v, 0


GROUPS = [check_kinematics, check_frames, check_inverse_dynamics, check_energies, check_solutions, check_manifold]


def verify(c: Case, group: Callable, run: Run) -> None:
    """Compare every output of a group; `scale` is what an error is measured against where the value may vanish."""
    bound = 1e-10
    if group is check_solutions:
        bound = max(bound, 1e3 * np.finfo(float).eps * np.linalg.cond(mass_matrix(c)))
    for what, ours, theirs, scale in group(c, run):
        error = np.max(np.abs(np.asarray(ours) - theirs)) / max(np.max(np.abs(theirs)), scale, 1e-300)
        assert error <= bound, f"{what}: {error:.1e} > {bound:.1e}"


@every_robot
def test_plain_numpy_agrees_with_pinocchio(path, root):
    c = case(path, root)
    for group in GROUPS:
        try:
            verify(c, group, lambda kernel, *arrays, **options: kernel.python(c.model, *arrays, **options))
        except SingularMassMatrix:
            assert np.linalg.matrix_rank(mass_matrix(c)) < c.model.nv, "refused, though its mass matrix has full rank"


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.__name__.removeprefix("check_"))
def test_compiled_code_agrees_with_pinocchio(name, group):
    c = case(file(name), "free")
    verify(c, group, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


@pytest.mark.slow
@every_robot
def test_compiled_code_agrees_with_pinocchio_on_every_robot(path, root):
    c = case(path, root)
    for group in GROUPS:
        try:
            verify(c, group, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))
        except SingularMassMatrix:
            assert np.linalg.matrix_rank(mass_matrix(c)) < c.model.nv, "refused, though its mass matrix has full rank"


@pytest.mark.parametrize("name", sorted(IMMOBILE))
def test_a_model_without_joints_has_no_accelerations_and_no_ufunc(name):
    model = dl.load(file(name))
    assert dl.aba(model, [], [], []).shape == (0,)
    with refuses("wrong-shape"):
        dl.aba.specialize(model)
