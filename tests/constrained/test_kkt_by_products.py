"""Factors and inverse of the constrained system, public: against dense algebra and Pinocchio's contact Cholesky.

K = [-E - C, J; Jᵀ, M]. Its exact inverse (E = 0) is the pseudo-inverse where rows depend on each other.
"""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from contacts_in_pinocchio import mechanism_of, pinocchio
from delassus.constraints.mechanism.rows import compliance_of
from delassus.model.generators import chain
from in_pinocchio import Loop, rigid_constraints, rigid_contacts, to_pinocchio
from mechanisms import relative, state
from refusals import refuses

TREE = chain(9, seed=1)
TIP = "tip"
EPSILON = 1e-3


@cache
def mechanism(name: str) -> dl.Mechanism:
    return {
        "independent": lambda: dl.Mechanism(TREE, [dl.Point(TIP), dl.JointLock("joint0")]),
        "redundant": lambda: dl.Mechanism(TREE, [dl.Weld(TIP), dl.Point(TIP), dl.JointLock("joint0")]),
        "more rows than joints": lambda: dl.Mechanism(TREE, [dl.Weld(TIP), dl.Weld(TIP)]),
        "soft": lambda: dl.Mechanism(TREE, [dl.Point(TIP, compliance=(0.1, 0.2, 0.3)), dl.Point("link4")]),
        "four-bar": lambda: dl.Mechanism(dl.load("four_bar")),
        "delta": lambda: dl.Mechanism(dl.load("delta")),
        "biped": lambda: dl.Mechanism(dl.load("biped")),
    }[name]()


NAMES = ("independent", "redundant", "more rows than joints", "soft", "four-bar", "delta", "biped")
every_mechanism = pytest.mark.parametrize("name", NAMES)


@cache
def states(name: str):
    """Three configurations, those of loops closed."""
    held, rng = mechanism(name), np.random.default_rng(3)
    if name in ("four-bar", "delta", "biped"):
        return dl.integrate(held.model, held.model.posture("home"), 0.01 * rng.normal(size=(3, held.nv)))
    return held.random_configuration(rng, 3)


def system(held, q, epsilon=0.0):
    """K of one state, in dense NumPy."""
    J, M = dl.constraint_jacobian.python(held, q), dl.crba.python(held.model, q)
    return np.block([[-np.diag(compliance_of(held) + epsilon), J], [J.T, M]])


def whole(blocks):
    """The inverse of K from its blocks."""
    corner, coupling, free = blocks
    return np.block([[corner, coupling], [coupling.T, free]])


def product(factors):
    """U D Uᵀ."""
    U_rows, D_rows, Y, U_tree, D_tree = factors
    U = np.block([[U_rows, Y], [np.zeros(Y.T.shape), U_tree]])
    np.testing.assert_array_equal(U, np.triu(U))
    return U @ np.diag([*-D_rows, *D_tree]) @ U.T


def of_each(results):
    """The states of a batch, one by one."""
    return zip(*results, strict=True)


# --- exact ------------------------------------------------------------------------------------------------------------


@every_mechanism
def test_exact_blocks_are_the_pseudo_inverse_of_the_system(name):
    held, q = mechanism(name), states(name)
    for one, blocks in zip(q, of_each(dl.kkt_inverse_blocks(held, q, exact=True, proximal=1.0)), strict=True):
        assert relative(whole(blocks), np.linalg.pinv(system(held, one), rcond=1e-9, hermitian=True)) < 1e-9


@every_mechanism
def test_exact_blocks_give_the_accelerations_and_forces_of_the_dense_answer(name):
    held, q = mechanism(name), states(name)
    rng = np.random.default_rng(4)
    v, tau = rng.normal(size=(2, 3, held.nv))
    corner, coupling, free = dl.kkt_inverse_blocks(held, q, exact=True)
    h, gamma = tau - dl.bias_torques(held.model, q, v), dl.constraint_bias(held, q, v)
    a, force = dl.kkt(held, q, v, tau)
    assert relative(np.matvec(free, h) - np.vecmat(gamma, coupling), a) < 1e-9
    assert relative(np.matvec(corner, gamma) - np.matvec(coupling, h), force) < 1e-9


def test_exact_blocks_are_those_of_the_lectures():
    """[H -Fᵀ; -F 0]⁻¹ and [H -Fᵀ; F 0]⁻¹, as the page of errata has them."""
    held, q = mechanism("independent"), states("independent")[0]
    corner, coupling, free = dl.kkt_inverse_blocks(held, q, exact=True)
    F, H = dl.constraint_jacobian(held, q), dl.crba(held.model, q)
    zero = np.zeros((held.m, held.m))
    lecture_12 = np.linalg.inv(np.block([[H, -F.T], [-F, zero]]))
    lecture_5 = np.linalg.inv(np.block([[H, -F.T], [F, zero]]))
    assert relative(np.block([[free, -coupling.T], [-coupling, corner]]), lecture_12) < 1e-10
    assert relative(np.block([[free, coupling.T], [-coupling, -corner]]), lecture_5) < 1e-10


def test_exact_blocks_keep_their_digits_next_to_a_singular_pose():
    """An arm of two links that is stretched but for 1e-4 rad: its inverse is of size 1e8."""
    arm = dl.load("double_pendulum")
    held = dl.Mechanism(arm, dl.Point(arm.frame_list[-1].name, rows=(0, 2)))
    q = np.array([0.3, 1e-4])
    K = system(held, q)
    inverse = whole(dl.kkt_inverse_blocks(held, q, exact=True))
    assert np.max(np.abs(inverse)) > 1e6
    assert relative(inverse, np.linalg.inv(K)) < 1e-9


@every_mechanism
def test_exact_factors_multiply_to_the_system_whatever_its_rank(name):
    held, q = mechanism(name), states(name)
    for one, factors in zip(q, of_each(dl.kkt_factor(held, q, exact=True)), strict=True):
        assert relative(product(factors), system(held, one)) < 1e-9


def test_exact_factors_have_a_zero_pivot_for_each_row_that_depends_on_others():
    held = mechanism("redundant")
    pivots = dl.kkt_factor(held, states("redundant"), exact=True)[1]
    np.testing.assert_array_equal(np.sum(pivots == 0.0, -1), [3, 3, 3])
    assert np.all(pivots >= 0.0)


def test_exact_factors_have_no_proximal_parameter():
    with refuses("conflicting-arguments"):
        dl.kkt_factor(mechanism("independent"), states("independent"), exact=True, proximal=1e-6)


@pytest.mark.parametrize("kernel", [dl.kkt_factor, dl.kkt_inverse_blocks], ids=["factor", "inverse"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_state_that_is_not_finite_spoils_itself_alone(kernel, exact):
    held, q = dl.Mechanism(TREE, dl.JointLock("joint3")), states("independent").copy()
    expected = kernel(held, q[[0, 2]], exact=exact)
    q[1, 3:] = np.nan
    found = kernel(held, q, exact=exact)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x[[0, 2]], y)
    assert np.isnan(np.concatenate([x[1].ravel() for x in found])).any()


@pytest.mark.parametrize("exact", [False, True])
def test_a_robot_without_rows_has_its_own_mass_matrix(exact):
    held, q = dl.Mechanism(TREE), states("independent")
    corner, coupling, free = dl.kkt_inverse_blocks(held, q, exact=exact)
    assert corner.shape == (3, 0, 0) and coupling.shape == (3, 0, TREE.nv)
    np.testing.assert_allclose(free, dl.inverse_mass_matrix(TREE, q), atol=1e-10)


# --- damped, next to Pinocchio ----------------------------------------------------------------------------------------


def contact_cholesky(held, theirs, models, datas, q, mu):
    """Their factors of the same matrix."""
    data = theirs.createData()
    pin.crba(theirs, data, dl.q_to_pinocchio(held.model, q), pin.Convention.WORLD)
    pin.computeJointJacobians(theirs, data)
    for model, own in zip(models, datas, strict=True):
        model.calc(theirs, data, own)
    cholesky = pin.ContactCholeskyDecomposition(theirs, data, models, datas)
    cholesky.compute(theirs, data, models, datas, mu)
    return cholesky


@pytest.mark.parametrize("case", [("solo12.urdf", "points"), ("talos_full_v2.urdf", "corners")], ids="-".join)
def test_factors_and_inverse_are_those_of_pinocchios_contact_cholesky(case):
    held, theirs = mechanism_of(*case), pinocchio(case[0])
    q = state(held.model, 5)[0]
    cholesky = contact_cholesky(held, theirs, *rigid_contacts(held, theirs), q, EPSILON)
    assert relative(product(dl.kkt_factor.python(held, q, proximal=EPSILON)), cholesky.matrix()) < 1e-11
    blocks = dl.kkt_inverse_blocks.python(held, q, proximal=EPSILON)
    assert relative(whole(blocks), cholesky.inverse()) < 1e-9
    assert relative(-blocks[0], cholesky.getOperationalSpaceInertiaMatrix()) < 1e-9


def test_factors_of_closed_loops_are_those_of_pinocchios_contact_cholesky():
    held = mechanism("four-bar")
    (closure,) = held.constraints
    theirs = to_pinocchio(held.model)
    q = states("four-bar")[0]
    loop = Loop("point", closure.frame, closure.frame2)
    cholesky = contact_cholesky(held, theirs, *rigid_constraints(theirs, (loop,)), q, EPSILON)
    rows = [*closure.rows, *range(3, 3 + held.nv)]
    assert relative(product(dl.kkt_factor(held, q, proximal=EPSILON)), cholesky.matrix()[np.ix_(rows, rows)]) < 1e-11


# --- residuals and the proximal parameter -----------------------------------------------------------------------------


def test_residuals_are_those_of_the_solution_whatever_was_asked_for():
    held = mechanism("redundant")
    q, rng = states("redundant"), np.random.default_rng(6)
    v, tau = rng.normal(size=(2, 3, held.nv))
    asked = {
        "mask": np.array([1.0] * 6 + [0.0] * 3 + [1.0]),
        "acceleration": rng.normal(size=held.m),
        "position_gain": 3.0,
        "velocity_gain": 2.0,
    }
    found = dl.constrained_dynamics(held, q, v, tau, **asked)
    residual, pull = dl.constraint_residual(held, q, v, found.acceleration, found.force, **asked)
    np.testing.assert_allclose(residual, found.residual, atol=1e-9)
    np.testing.assert_allclose(pull, np.vecmat(residual, dl.constraint_jacobian(held, q)), atol=1e-9)


def test_residuals_are_zero_where_rows_are_met_and_not_where_they_are_not():
    held = mechanism("soft")
    q, rng = states("soft"), np.random.default_rng(7)
    v, tau = rng.normal(size=(2, 3, held.nv))
    a, force = dl.kkt(held, q, v, tau)
    assert np.max(np.abs(dl.constraint_residual(held, q, v, a, force)[0])) < 1e-9
    assert np.max(np.abs(dl.constraint_residual(held, q, v, a + 1.0, force)[0])) > 1e-2


@every_mechanism
def test_the_natural_proximal_parameter_is_a_share_of_what_rows_yield(name):
    held = mechanism(name)
    epsilon = dl.natural_proximal(held)
    yields = np.max([np.diagonal(dl.delassus_matrix(held, q)) for q in states(name)], axis=0)
    assert epsilon.shape == (held.m,)
    assert np.all(epsilon > 1e-8 * np.max(yields) * (yields / np.max(yields))) and np.all(
        epsilon < 1e-3 * np.max(yields)
    )
    np.testing.assert_allclose(dl.natural_proximal(held, share=1e-3), 1e3 * epsilon)


def test_the_natural_proximal_parameter_is_the_default():
    held, q = mechanism("redundant"), states("redundant")
    default = dl.kkt_inverse_blocks(held, q)
    for found, expected in zip(
        default, dl.kkt_inverse_blocks(held, q, proximal=dl.natural_proximal(held)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))


def test_a_share_that_is_not_positive_is_refused():
    with refuses("out-of-range", "0", "share"):
        dl.natural_proximal(mechanism("independent"), share=0.0)
