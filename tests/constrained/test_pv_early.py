"""Early elimination: the dense answer by singular values at once, whatever the rank, and a status that tells it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from constrained_cases import MARKED_CASES, clear, mechanism_of, mechanisms, problem
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.solvers.status import Status
from delassus.model.generators import chain
from how_many import examples
from mechanisms import dense, held, relative, state, weighted
from native_bits import FULL
from refusals import refuses
from robots import file


def check(mechanism, q, v, tau, system, tolerance=1e-8):
    """Accelerations and forces of the dense answer, and a status that knows its rank."""
    system = weighted(mechanism, system)
    a, force, status = dl.pv_early.python(mechanism, q, v, tau)
    assert relative(a, system.answer[0]) < tolerance
    assert relative(force, system.answer[1]) < tolerance
    full = np.sum(system.spectrum > 1e-13) == mechanism.m
    assert Status(int(status)) is (Status.CONVERGED if full else Status.RANK_LOSS)


@settings(max_examples=examples(150))
@given(mechanisms(), st.integers(0, 1000))
def test_random_mechanisms_of_any_rank_have_the_dense_answer(mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    check(mechanism, q, v, tau, system)


@settings(max_examples=examples(150))
@given(held())
def test_joints_of_all_kinds_have_the_dense_answer(case):
    mechanism, q, v, tau = case
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    check(mechanism, q, v, tau, system)


@pytest.mark.parametrize("case", MARKED_CASES, ids="-".join)
def test_robots_have_the_dense_answer(case):
    check(*problem(*case))


# --- joints that do not move the rows ---------------------------------------------------------------------------------


def beside_the_axis(distance: float) -> dl.Mechanism:
    """A chain of seven joints, a point at some distance from the last one's axis held."""
    model = chain(7)
    axis = np.array(model.joints[-1].kind.axis)
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return dl.Mechanism(model, dl.Point("link6", placement=dl.Placement.of(p=distance * across)))


def test_a_point_on_the_axis_of_a_joint_is_held_by_the_others():
    mechanism = beside_the_axis(0.0)
    q, v, tau = state(mechanism.model, 2)
    check(mechanism, q, v, tau, dense(mechanism, q, v, tau), 1e-10)


@pytest.mark.parametrize("distance", 10.0 ** -np.arange(1.0, 10.0, 0.5))
def test_seven_digits_are_kept_however_little_a_joint_moves_the_rows(distance):
    mechanism = beside_the_axis(distance)
    q, v, tau = state(mechanism.model, 2)
    check(mechanism, q, v, tau, dense(mechanism, q, v, tau), 1e-7)


def test_what_cannot_move_is_a_loss_of_rank():
    still = dl.Mechanism(chain(2), dl.Weld("tip"))
    assert dl.pv_early(still, *np.ones((3, 2)))[2] == Status.RANK_LOSS


# --- options and bad input --------------------------------------------------------------------------------------------


def test_compiled_code_has_the_bits_of_the_interpreter():
    mechanism = mechanism_of("solo12.urdf", "feet")
    arrays = [np.array(x) for x in zip(*(state(mechanism.model, seed) for seed in range(11)), strict=True)]
    expected = evaluate(dl.pv_early.program(mechanism), *arrays)
    found = dl.pv_early.compiled(mechanism, target=FULL).ufunc(*arrays)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_desired_accelerations_may_be_given_at_run_time():
    plain, q, v, tau, _ = problem("solo12.urdf", "feet", "random")
    wanted = np.arange(12.0)
    points = [dl.Point(c.frame, acceleration=tuple(wanted[3 * k : 3 * k + 3])) for k, c in enumerate(plain.constraints)]
    found = dl.pv_early.python(plain, q, v, tau, acceleration=wanted)
    expected = dl.pv_early.python(dl.Mechanism(plain.model, points), q, v, tau)
    np.testing.assert_array_equal(found[0], expected[0])


def test_a_mechanism_without_constraints_moves_freely():
    model = chain(3)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 5, 3))
    a, force, status = dl.pv_early(dl.Mechanism(model), q, v, tau)
    np.testing.assert_allclose(a, dl.aba(model, q, v, tau), rtol=1e-12)
    assert force.shape == (5, 0)
    assert np.all(status == Status.CONVERGED)


def test_what_is_not_finite_is_reported():
    q, v, tau = state(chain(3))
    status = dl.pv_early(dl.Mechanism(chain(3), dl.Point("tip")), q, v, np.full_like(tau, np.nan))[2]
    assert status == Status.NOT_FINITE


def test_compliance_is_refused():
    soft = dl.Mechanism(chain(3), dl.Point("tip", compliance=0.5))
    with refuses("not-supported", "pv_early", "0.5"):
        dl.pv_early(soft, *np.ones((3, 3)))


def test_joints_that_share_coordinates_are_refused():
    model = dl.load(file("talos_full_v2.urdf"), root="free")
    with refuses("not-supported", "prox_ltl"):
        dl.pv_early.python(dl.Mechanism(model, dl.Weld("left_sole_link")), *state(model))
