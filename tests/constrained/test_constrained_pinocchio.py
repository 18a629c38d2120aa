"""Constrained dynamics against Pinocchio: the same equations, signs, frames and proximal parameter.

`pin.constraintDynamics` is the sparse factorization of `prox_ltl`, its `data.lambda_c` is our force: on the robot, in
the contact's LOCAL axes, linear part first. `settings.mu` is our `proximal`, the small number on the diagonal (in
`lcaba` too, which inverts it): never a penalty.
"""

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from contacts_in_pinocchio import CASES, constraint_dynamics, lcaba, mechanism_of, pinocchio
from in_pinocchio import rigid_contacts
from mechanisms import PROXIMAL, relative, robot, state


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_accelerations_and_forces_are_those_of_constraint_dynamics(case, method):
    mechanism = mechanism_of(*case)
    q, v, tau = state(mechanism.model, 1)
    a, force = method.python(mechanism, q, v, tau, iterations=8, proximal=1e-4)
    expected = constraint_dynamics(mechanism, pinocchio(case[0]), q, v, tau, 1e-4, 8)
    assert relative(a, expected[0]) < 1e-8
    assert relative(force, expected[1]) < 1e-8


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_accelerations_are_those_of_lcaba(case, method):
    mechanism = mechanism_of(*case)
    q, v, tau = state(mechanism.model, 1)
    a, _ = method.python(mechanism, q, v, tau, iterations=8, proximal=1e-4)
    assert relative(a, lcaba(mechanism, pinocchio(case[0]), q, v, tau, 1e-4, 8)) < 1e-8


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_the_proximal_parameter_is_pinocchios_mu_iterate_by_iterate(iterations):
    mechanism = mechanism_of("solo12.urdf", "points")
    q, v, tau = state(mechanism.model, 2)
    mu = 0.5  # large, so that iterates differ by far more than rounding
    a, force = dl.prox_ltl(mechanism, q, v, tau, iterations=iterations, proximal=mu)
    expected = constraint_dynamics(mechanism, pinocchio("solo12.urdf"), q, v, tau, mu, iterations)
    assert relative(a, expected[0]) < 1e-9
    assert relative(force, expected[1]) < 1e-9


def test_a_force_that_holds_the_robot_up_is_positive():
    """The base held, all joints locked: the weld carries the weight, along its z axis, which points upwards."""
    model = robot("solo12.urdf")
    locks = [dl.JointLock(joint.name) for joint in model.joints[1:]]
    mechanism = dl.Mechanism(model, [dl.Weld("base_link"), *locks])
    _, force = dl.prox_pv(mechanism, model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    weight = 9.81 * sum(joint.inertia.mass for joint in model.joints)
    np.testing.assert_allclose(force[:3], [0.0, 0.0, weight], atol=1e-7)


def test_forces_meet_newtons_law():
    mechanism = mechanism_of("talos_full_v2.urdf", "welds")
    q, v, tau = state(mechanism.model, 4)
    a, force = dl.prox_pv(mechanism, q, v, tau)
    J = dl.constraint_jacobian(mechanism, q)
    np.testing.assert_allclose(dl.rnea(mechanism.model, q, v, a), tau + J.T @ force, rtol=1e-8, atol=1e-7)


def test_baumgarte_terms_are_those_of_constraint_dynamics():
    model, theirs = robot("solo12.urdf"), pinocchio("solo12.urdf")
    q, v, tau = state(model, 6)
    target = dl.Placement.from_xyz_rpy((0.1, 0.2, -0.1), (0.2, -0.1, 0.3))
    Kp, Kd = 9.0, 6.0
    mechanism = dl.Mechanism(model, dl.Weld("FL_FOOT", target=target, position_gain=Kp, velocity_gain=Kd))
    models, datas = rigid_contacts(mechanism, theirs)
    models[0].joint2_placement = pin.SE3(target.R, target.p)
    gains = models[0].m_baumgarte_parameters
    gains.Kp, gains.Kd = Kp, Kd
    models[0].m_baumgarte_parameters = gains
    data = theirs.createData()
    pin.initConstraintDynamics(theirs, data, models, datas)
    prox = pin.ProximalSettings(0.0, 0.0, 1e-4, 8)
    expected = pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(model, q), v, tau, models, datas, prox)
    a, _ = dl.prox_ltl(mechanism, q, v, tau, iterations=8, proximal=1e-4)
    assert relative(a, expected) < 1e-8
