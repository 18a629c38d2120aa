"""The Delassus matrix, its damped inverse and both as operators, against dense algebra and Pinocchio."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import loop_oracles
from constrained_cases import mechanisms
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.delassus.delassus_methods import TREE_METHODS
from delassus.model.generators import balanced_tree, chain
from how_many import examples
from in_pinocchio import rigid_contacts
from linkages import bennett, bundled, ladder, standing_biped, two_arms
from linkages import mechanism_of as with_loops
from mechanisms import CORNERS, dense, held, robot, state
from native_bits import FULL
from refusals import refuses
from robots import file, pinocchio_model

METHODS = ("ltl", *TREE_METHODS)
PLACES = {
    "solo12.urdf": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "talos_full_v2.urdf": ("left_sole_link", "right_sole_link", "gripper_left_base_link", "gripper_right_base_link"),
    "icub.urdf": ("l_sole", "r_sole", "l_hand", "r_hand"),
}
CASES = [("solo12.urdf", "points"), *((name, "welds") for name in PLACES), ("talos_full_v2.urdf", "corners")]
each_method = pytest.mark.parametrize("method", METHODS)
each_case = pytest.mark.parametrize("case", CASES, ids="-".join)


@cache
def mechanism_of(name: str, kind: str) -> dl.Mechanism:
    make = {
        "points": lambda place: [dl.Point(place)],
        "welds": lambda place: [dl.Weld(place, placement=CORNERS[0])],
        "corners": lambda place: [dl.Point(place, placement=corner) for corner in CORNERS],
    }
    return dl.Mechanism(robot(name), [c for place in PLACES[name] for c in make[kind](place)])


@cache
def in_theirs(name: str, kind: str):
    """A state, and J and M by Pinocchio."""
    mechanism = mechanism_of(name, kind)
    theirs = pinocchio_model(file(name), "free")
    data = theirs.createData()
    q, _, _ = state(mechanism.model, 1)
    pq = dl.q_to_pinocchio(mechanism.model, q)
    pin.computeJointJacobians(theirs, data, pq)
    rows = []
    for c in mechanism.constraints:
        frame = theirs.frames[theirs.getFrameId(c.frame)]
        placement = frame.placement * pin.SE3(c.placement.R, c.placement.p)
        J = pin.getJointJacobian(theirs, data, frame.parentJoint, pin.LOCAL)
        rows.append((placement.inverse().toActionMatrix() @ J)[: c.most])
    M = np.triu(pin.crba(theirs, theirs.createData(), pq))
    return mechanism, q, np.concatenate(rows), M + np.triu(M, 1).T


def square(J, M):
    """J M⁻¹ Jᵀ."""
    half = np.linalg.solve(np.linalg.cholesky(M), J.T)
    return half.T @ half


def error(found, expected) -> float:
    """The largest error as a share of the largest number."""
    return float(np.max(np.abs(found - expected)) / max(np.max(np.abs(expected)), 1e-300))


# --- the matrix -------------------------------------------------------------------------------------------------------


@each_method
@each_case
def test_robots_have_the_matrix_of_pinocchios_jacobian_and_mass_matrix(case, method):
    mechanism, q, J, M = in_theirs(*case)
    assert error(dl.delassus_matrix.python(mechanism, q, method=method), square(J, M)) < 1e-10


def test_the_matrix_is_that_of_pinocchio():
    mechanism, q, _, _ = in_theirs("talos_full_v2.urdf", "welds")
    theirs = pinocchio_model(file("talos_full_v2.urdf"), "free")
    pq = dl.q_to_pinocchio(mechanism.model, q)
    expected = np.triu(pin.computeDelassusMatrix(theirs, theirs.createData(), pq, *rigid_contacts(mechanism, theirs)))
    assert error(np.triu(dl.delassus_matrix(mechanism, q)), expected) < 1e-10


def check(found, system):
    """To 1e-10 of the largest number. Where nothing moves the rows, that is what rounding leaves of levers of 1 m."""
    G = square(system.J, system.M)
    rounding = np.finfo(float).eps ** 2 * np.max(np.abs(np.linalg.inv(system.M)))
    assert np.max(np.abs(found - G)) <= max(1e-10 * np.max(np.abs(G)), rounding)


@each_method
@settings(max_examples=examples(100))
@given(mechanisms(), st.integers(0, 1000))
def test_random_trees_have_the_dense_matrix(method, mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    check(dl.delassus_matrix.python(mechanism, q, method=method), dense(mechanism, q, v, tau))


@each_method
@settings(max_examples=examples(100))
@given(held())
def test_joints_of_all_kinds_have_the_dense_matrix(method, case):
    mechanism, q, v, tau = case
    check(dl.delassus_matrix.python(mechanism, q, method=method), dense(mechanism, q, v, tau))


@each_method
def test_forces_that_meet_again_and_again_have_the_dense_matrix(method):
    """Sixteen points on the leaves of five generations: more than six forces come together time and again."""
    tree = balanced_tree(31)
    mechanism = dl.Mechanism(
        tree, [dl.Point(f"link{k}") for k in range(15, 31)] + [dl.Weld("link7"), dl.Point("link1")]
    )
    q, v, tau = state(tree)
    system = dense(mechanism, q, v, tau)
    assert error(dl.delassus_matrix.python(mechanism, q, method=method), square(system.J, system.M)) < 1e-10


def test_the_matrix_of_a_batch_is_symmetric_to_the_bit():
    mechanism = mechanism_of("solo12.urdf", "points")
    G = dl.delassus_matrix(mechanism, np.array([state(mechanism.model, seed)[0] for seed in range(11)]))
    np.testing.assert_array_equal(G, np.swapaxes(G, 1, 2))


@each_method
def test_compiled_code_has_the_bits_of_the_interpreter(method):
    mechanism = mechanism_of("solo12.urdf", "points")
    q = np.array([state(mechanism.model, seed)[0] for seed in range(11)])
    (expected,) = evaluate(dl.delassus_matrix.program(mechanism, method=method), q)
    compiled = dl.delassus_matrix.compiled(mechanism, target=FULL, method=method)
    np.testing.assert_array_equal(compiled.ufunc(q), expected)


# --- closed loops -----------------------------------------------------------------------------------------------------

LOOPS = {linkage.name: linkage for linkage in (standing_biped(), two_arms(), bundled("delta"), ladder(5), bennett())}
each_loop = pytest.mark.parametrize("name", LOOPS)


def loop_system(name: str):
    """A mechanism with loops, a configuration, and J M⁻¹ Jᵀ by Pinocchio's kinematics."""
    linkage = LOOPS[name]
    rest = np.zeros(linkage.model.nv)
    system = loop_oracles.dense(linkage.model, linkage.loops, linkage.q, rest, rest)
    return with_loops(linkage), linkage.q, square(system.J, system.M)


@each_method
@each_loop
def test_loops_have_the_dense_matrix(name, method):
    mechanism, q, G = loop_system(name)
    assert error(dl.delassus_matrix.python(mechanism, q, method=method), G) < 1e-10


@each_loop
def test_the_operator_of_loops_is_the_dense_one(name):
    mechanism, q, G = loop_system(name)
    x = np.random.default_rng(0).normal(size=len(G))
    assert error(dl.delassus_apply.python(mechanism, q, x), G @ x) < 1e-10


@each_loop
def test_the_operator_of_loops_is_inverted(name):
    mechanism, q, G = loop_system(name)
    b = np.random.default_rng(0).normal(size=len(G))
    x = dl.delassus_solve.python(mechanism, q, b, proximal=1e-3)
    assert error((G + 1e-3 * np.eye(len(G))) @ x, b) < 1e-9


@each_loop
def test_loops_have_the_damped_inverse(name):
    mechanism, q, G = loop_system(name)
    epsilon = 1e-3 * np.max(G)
    found = dl.operational_inertia.python(mechanism, q, proximal=epsilon, method="caba_osim")
    assert error(found, np.linalg.inv(G + epsilon * np.eye(len(G)))) < 1e-9


# --- the damped inverse -----------------------------------------------------------------------------------------------


@each_method
@each_case
def test_the_operational_inertia_is_the_damped_inverse(case, method):
    mechanism, q, J, M = in_theirs(*case)
    damped = square(J, M) + 1e-3 * np.eye(len(J))
    assert (
        error(dl.operational_inertia.python(mechanism, q, proximal=1e-3, method=method), np.linalg.inv(damped)) < 1e-9
    )


@pytest.mark.parametrize(("epsilon", "tolerance"), [(1e-1, 1e-12), (1e-2, 1e-11), (1e-4, 1e-9), (1e-6, 1e-7)])
@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids="-".join)
def test_the_error_of_caba_osim_grows_no_faster_than_one_over_epsilon(case, epsilon, tolerance):
    mechanism, q, J, M = in_theirs(*case)
    expected = np.linalg.inv(square(J, M) + epsilon * np.eye(len(J)))
    found = dl.operational_inertia.python(mechanism, q, proximal=epsilon, method="caba_osim")
    assert error(found, expected) < tolerance


def test_the_damped_inverse_follows_from_pinocchios_matrix_with_penalties():
    mechanism, q, _, _ = in_theirs("solo12.urdf", "points")
    theirs = pinocchio_model(file("solo12.urdf"), "free")
    pq, contacts = dl.q_to_pinocchio(mechanism.model, q), rigid_contacts(mechanism, theirs)
    rho = 1e2
    G = np.triu(pin.computeDelassusMatrix(theirs, theirs.createData(), pq, *contacts, rho))
    expected = rho * np.eye(12) - rho**2 * G
    for method in ("auto", "caba_osim"):
        assert error(np.triu(dl.operational_inertia(mechanism, q, proximal=1 / rho, method=method)), expected) < 1e-10


@settings(max_examples=examples(100))
@given(held(), st.sampled_from([1e-4, 1e-2, 1.0]))
def test_joints_of_all_kinds_have_the_damped_inverse(case, share):
    mechanism, q, v, tau = case
    system = dense(mechanism, q, v, tau)
    G = square(system.J, system.M)
    epsilon = share * max(np.max(np.abs(G)), 1e-6)
    found = dl.operational_inertia.python(mechanism, q, proximal=epsilon, method="caba_osim")
    assert error(found, np.linalg.inv(G + epsilon * np.eye(len(G)))) < 1e-9


@pytest.mark.parametrize("method", ["auto", "caba_osim"])
def test_the_damped_inverse_knows_compliance_and_a_proximal_parameter_by_row(method):
    plain, q, J, M = in_theirs("solo12.urdf", "points")
    mechanism = dl.Mechanism(plain.model, [dl.Point(c.frame, compliance=(0.1, 0.0, 2.0)) for c in plain.constraints])
    epsilon = 10.0 ** np.linspace(-3, -1, 12)
    expected = np.linalg.inv(square(J, M) + np.diag(epsilon + np.tile([0.1, 0.0, 2.0], 4)))
    assert error(dl.operational_inertia(mechanism, q, proximal=tuple(epsilon), method=method), expected) < 1e-10


# --- operators --------------------------------------------------------------------------------------------------------


@each_case
def test_applying_the_operator_is_the_product_with_the_matrix(case):
    mechanism, q, J, M = in_theirs(*case)
    x = np.random.default_rng(0).normal(size=len(J))
    assert error(dl.delassus_apply.python(mechanism, q, x), square(J, M) @ x) < 1e-10


@settings(max_examples=examples(100))
@given(held(), st.integers(0, 1000), st.sampled_from([1e-6, 1e-4, 1e-2, 1.0]))
def test_solving_undoes_applying(case, seed, share):
    mechanism, q, _, _ = case
    b = np.random.default_rng(seed).normal(size=mechanism.m)
    epsilon = share * max(float(np.max(dl.delassus_matrix.python(mechanism, q))), 1e-6)
    x = dl.delassus_solve.python(mechanism, q, b, proximal=epsilon)
    back = dl.delassus_apply.python(mechanism, q, x, proximal=epsilon)
    assert np.max(np.abs(back - b)) <= 1e-11 * (np.max(np.abs(b)) + epsilon / share * np.max(np.abs(x)))


@pytest.mark.parametrize("case", [CASES[k] for k in (0, 2, 3)], ids="-".join)  # those whose rows are independent
def test_a_refined_solution_is_the_dense_one(case):
    mechanism, q, J, M = in_theirs(*case)
    b = np.random.default_rng(0).normal(size=len(J))
    expected = np.linalg.solve(square(J, M) + 1e-6 * np.eye(len(J)), b)
    assert error(dl.delassus_solve.python(mechanism, q, b, proximal=1e-6), expected) < 1e-9


def test_refinement_gives_back_the_digits_that_penalties_cost():
    mechanism, q, J, M = in_theirs("solo12.urdf", "points")
    G = square(J, M) + 1e-8 * np.eye(12)
    x = np.random.default_rng(0).normal(size=12)
    errors = [error(dl.delassus_solve.python(mechanism, q, G @ x, proximal=1e-8, refinements=k), x) for k in (0, 1, 2)]
    assert errors[0] > 1e-9
    assert errors[2] < 1e-13


def test_operators_of_a_batch_have_the_bits_of_the_interpreter():
    mechanism = mechanism_of("solo12.urdf", "points")
    q = np.array([state(mechanism.model, seed)[0] for seed in range(11)])
    x = np.random.default_rng(0).normal(size=(11, mechanism.m))
    for kernel in (dl.delassus_apply, dl.delassus_solve):
        np.testing.assert_array_equal(kernel(mechanism, q, x), evaluate(kernel.program(mechanism), q, x)[0])


# --- joints that share coordinates, and bad input ---------------------------------------------------------------------


@cache
def sharing():
    model = dl.load(file("talos_full_v2.urdf"), root="free")
    mechanism = dl.Mechanism(model, [dl.Weld("left_sole_link"), dl.Point("gripper_left_fingertip_1_link")])
    q, v, tau = state(model, 1)
    system = dense(mechanism, q, v, tau)
    return mechanism, q, square(system.J, system.M)


def test_joints_that_share_coordinates_have_the_dense_matrix_and_operators():
    mechanism, q, G = sharing()
    x = np.random.default_rng(0).normal(size=mechanism.m)
    assert error(dl.delassus_matrix.python(mechanism, q), G) < 1e-10
    assert error(dl.delassus_apply.python(mechanism, q, x), G @ x) < 1e-10
    expected = np.linalg.solve(G + 1e-3 * np.eye(len(G)), x)
    assert error(dl.delassus_solve.python(mechanism, q, x, proximal=1e-3), expected) < 1e-9


@pytest.mark.parametrize("method", TREE_METHODS)
def test_recursions_over_the_tree_refuse_joints_that_share_coordinates(method):
    mechanism, q, _ = sharing()
    with refuses("not-supported", "'ltl'", "method"):
        dl.delassus_matrix.python(mechanism, q, method=method)


ARM = dl.Mechanism(chain(3), dl.Point("tip"))


def test_a_method_that_does_not_exist_is_named():
    with refuses("unknown-method", "'kjr'", "pv_osimr"):
        dl.delassus_matrix(ARM, np.zeros(3), method="kjr")


@pytest.mark.parametrize("refinements", [-1, 1.5, True])
def test_refinements_are_counted_from_zero(refinements):
    with refuses("out-of-range" if refinements == -1 else "not-a-whole-number", "1000"):
        dl.delassus_solve(ARM, np.zeros(3), np.zeros(3), refinements=refinements)
