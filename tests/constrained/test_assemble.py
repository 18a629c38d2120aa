"""Assembly: closed where it can be, the least squares where not, and honest about which."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.rows.locked import locked_velocities
from delassus.constrained.solvers.status import Status
from delassus.model.generators import chain
from delassus.model.joints import Free, Spherical
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from how_many import examples
from mechanisms import FOUR_BAR, loop, short_four_bar, two_bodies
from native_bits import FULL
from refusals import refuses

LOOPS = ("four_bar", "five_bar", "delta", "stewart", "biped")
CRANK, COUPLER, ROCKER, GROUND = 0.15, 0.35, 0.3, 0.4  # m

every_loop = pytest.mark.parametrize("name", LOOPS)


def near(mechanism, seed, size, count=None):
    """Configurations at a distance from the closed one."""
    model = mechanism.model
    shape = (model.nv,) if count is None else (count, model.nv)
    away = size * np.random.default_rng(seed).normal(size=shape)
    return dl.integrate(model, model.posture("home"), away)


def size(error):
    return np.sqrt(np.sum(error**2, axis=-1))


def shares(mechanism, error):
    return error / row_sizes(mechanism)


def scipys(mechanism, q0, locked=()):
    """The |e| of scipy's least squares over tangent vectors at q0, as shares of what errors are compared with."""
    model = mechanism.model
    free = np.setdiff1d(range(model.nv), locked_velocities(model, locked))

    def error(x):
        return shares(mechanism, dl.constraint_error(mechanism, dl.integrate(model, q0, np.eye(model.nv)[:, free] @ x)))

    found = least_squares(error, np.zeros(len(free)), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)
    return size(found.fun)


# --- errors -----------------------------------------------------------------------------------------------------------


@every_loop
def test_a_closed_posture_has_no_error(name):
    mechanism = loop(name)
    assert np.max(np.abs(dl.constraint_error(mechanism, mechanism.model.posture("home")))) < 1e-12


def test_rows_without_a_reference_have_no_error():
    arm = dl.Mechanism(chain(4), [dl.Point("tip"), dl.Point("tip", position=(0.1, 0.2, 0.3), rows="z")])
    q = chain(4).random_configuration(np.random.default_rng(0))
    error = dl.constraint_error(arm, q)
    assert (error[:3] == 0.0).all()
    assert error[3] != 0.0


@every_loop
def test_near_closure_errors_grow_with_the_rows_velocities(name):
    mechanism = loop(name)
    model, v = mechanism.model, np.random.default_rng(1).normal(size=mechanism.nv)
    home = model.posture("home")
    ahead, behind = (dl.constraint_error(mechanism, dl.integrate(model, home, h * v)) for h in (1e-6, -1e-6))
    np.testing.assert_allclose((ahead - behind) / 2e-6, dl.constraint_jacobian(mechanism, home) @ v, atol=1e-8)


HALF = dl.Placement.from_xyz_rpy((0.1, -0.2, 0.05), (0.3, -0.4, 0.5))
KINDS = {
    "point": dl.Point("a", "b", placement=HALF),
    "two rows of a point": dl.Point("a", "b", placement=HALF, rows="xz"),
    "point in the world": dl.Point("a", position=(1.0, 2.0, 3.0)),
    "height": dl.Point("a", position=(0.0, 0.0, 1.0), rows="z"),
    "hinge": dl.Hinge("a", "b", placement2=HALF),
    "four rows of a hinge": dl.Hinge("a", "b", placement2=HALF, rows=("x", "y", "z", "rx")),
    "weld": dl.Weld("a", "b", placement=HALF),
    "turns of a weld": dl.Weld("a", "b", placement=HALF, rows=("rx", "ry", "rz")),
    "three rows of a weld": dl.Weld("a", "b", placement=HALF, rows=("x", "y", "rz")),
    "rod": dl.Distance("a", "b", placement=HALF, length=0.7),
    "function": dl.Implicit(lambda k, q: k.position("a") - 2.0 * k.position("b"), rows=3, name="function"),
}
TWO = two_bodies(3.0, 1.0)

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_every_kind_of_constraint_closes(kind):
    mechanism = dl.Mechanism(TWO, KINDS[kind])
    q0 = np.array([TWO.random_configuration(np.random.default_rng(seed)) for seed in range(8)])
    found = dl.assemble(mechanism, q0)
    assert (found.status == Status.CONVERGED).all()
    assert found.iterations.max() < 30


def test_axes_of_a_hinge_that_point_against_each_other_are_turned():
    """Exactly, or nearly: there the least turn changes the direction of the error."""
    halves = np.array([0.0, *(0.5 * 10.0 ** np.arange(-17.0, 1.0))])
    q0 = np.tile(TWO.neutral(), (len(halves), 1))
    q0[:, 10], q0[:, 11], q0[:, 13] = 0.6 * np.cos(halves), 0.8 * np.cos(halves), np.sin(halves)
    found = dl.assemble(dl.Mechanism(TWO, dl.Hinge("a", "b")), q0)
    assert (found.status == Status.CONVERGED).all()
    assert found.iterations.max() < 10
    axes = [dl.frame_placement(TWO, found.q, frame=name)[0][..., 2] for name in "ab"]
    np.testing.assert_allclose(*axes, atol=1e-9)


@every_kind
def test_holonomic_constraints_are_those_whose_velocity_is_the_rate_of_their_error(kind):
    mechanism = dl.Mechanism(TWO, KINDS[kind])
    q = dl.assemble(mechanism, TWO.random_configuration(np.random.default_rng(1))).q
    v = np.random.default_rng(2).normal(size=12)
    ahead, behind = (dl.constraint_error.python(mechanism, dl.integrate(TWO, q, h * v)) for h in (1e-6, -1e-6))
    same = np.allclose((ahead - behind) / 2e-6, dl.constraint_jacobian.python(mechanism, q) @ v, atol=1e-7)
    assert same == mechanism.constraints[0].holonomic


def test_errors_follow_references_that_move():
    model = chain(3)
    q = model.random_configuration(np.random.default_rng(2))
    _, p = dl.frame_placement(model, q, frame="tip")
    moving = dl.Mechanism(model, dl.Point("tip", position=lambda t: np.array([1.0, 2.0, 3.0]) * t))
    R, _ = dl.frame_placement(model, q, frame="tip")
    np.testing.assert_allclose(
        dl.constraint_error(moving, q, time=2.0), R.T @ (p - np.array([2.0, 4.0, 6.0])), atol=1e-14
    )


# --- what can be closed -----------------------------------------------------------------------------------------------


@every_loop
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10_000))
def test_loops_close_from_a_third_of_a_radian_away(name, seed):
    found = dl.assemble(loop(name), near(loop(name), seed, 0.3, 8))
    assert (found.status == Status.CONVERGED).all()
    assert np.max(np.abs(found.error)) <= 1e-10
    np.testing.assert_array_equal(found.error, dl.constraint_error(found.mechanism, found.q))


@every_loop
def test_assembly_closes_where_scipy_does(name):
    mechanism = loop(name)
    for seed in range(3):
        q0 = near(mechanism, seed, 0.5)
        found = dl.assemble(mechanism, q0)
        assert size(shares(mechanism, found.error)) <= max(1e-9, scipys(mechanism, q0))


@every_loop
def test_a_neutral_start_closes_though_links_are_in_line(name):
    mechanism = loop(name)
    assert dl.assemble(mechanism, mechanism.neutral()).statuses is Status.CONVERGED


@settings(max_examples=examples(50))
@given(angle=st.floats(-math.pi, math.pi, allow_subnormal=False))
def test_a_four_bar_with_a_locked_crank_has_the_geometry_of_circles(angle):
    q0 = FOUR_BAR.model.posture("home")
    q0[0] = angle
    found = dl.assemble(FOUR_BAR, q0, locked=["crank_joint"])
    assert found.q[0] == angle
    _, end = dl.frame_placement(FOUR_BAR.model, found.q, frame="rocker_end")
    elbow = CRANK * np.array([math.cos(angle), 0.0, -math.sin(angle)])  # about y, x turns towards -z
    assert np.linalg.norm(end - elbow) == pytest.approx(COUPLER, abs=1e-9)
    assert np.linalg.norm(end - [GROUND, 0.0, 0.0]) == pytest.approx(ROCKER, abs=1e-9)


def test_a_closed_start_stays_where_it_is():
    home = FOUR_BAR.model.posture("home")
    found = dl.assemble(FOUR_BAR, home)
    np.testing.assert_array_equal(found.q, home)
    assert found.iterations == 0


def test_redundant_rows_do_no_harm():
    twice = dl.Mechanism(FOUR_BAR.model, FOUR_BAR.constraints * 2)
    found = dl.assemble(twice, near(FOUR_BAR, 0, 0.3, 20))
    assert (found.status == Status.CONVERGED).all()
    assert found.iterations.max() < 15


def test_quaternions_keep_their_length():
    found = dl.assemble(loop("delta"), near(loop("delta"), 3, 0.5, 20))
    np.testing.assert_allclose(np.linalg.norm(found.q[:, -4:], axis=-1), 1.0, atol=1e-15)


def test_quaternions_of_the_start_are_normalised():
    mechanism = loop("stewart")
    q0 = near(mechanism, 4, 0.2)
    longer = np.concatenate([q0[:-4], 3.0 * q0[-4:]])
    np.testing.assert_allclose(dl.assemble(mechanism, longer).q, dl.assemble(mechanism, q0).q, atol=1e-9)


def test_a_free_body_is_welded_to_its_target_from_the_other_side():
    free = Joint("free", Free(), inertia=dl.Inertia.of(2.0, (0.1, 0.0, 0.0), np.diag([1.0, 2.0, 2.5])))
    flange = Frame("flange", 0, dl.Placement.from_xyz_rpy((0.2, 0.1, 0.0), (0.3, 0.2, 0.1)))
    body = Model("body", (free,), (flange,))
    target = dl.Placement.from_xyz_rpy((1.0, -2.0, 0.5), (2.0, 0.5, -1.0))
    found = dl.assemble(dl.Mechanism(body, dl.Weld("flange", target=target)), body.neutral())
    R, p = dl.frame_placement(body, found.q, frame="flange")
    np.testing.assert_allclose(R, target.R, atol=1e-9)
    np.testing.assert_allclose(p, target.p, atol=1e-9)


def test_heavy_parts_move_less_than_light_ones():
    two = two_bodies(99.0, 1.0)
    q0 = two.neutral()
    q0[7] = 1.0  # a meter apart along x
    found = dl.assemble(dl.Mechanism(two, dl.Point("a", "b")), q0)
    np.testing.assert_allclose(found.q[[0, 7]], 0.01, atol=1e-9)  # their common center of mass


def test_rows_without_a_reference_are_held():
    model = dl.load("biped")
    free = dl.Mechanism(model)
    held = dl.Mechanism(model, dl.Weld("pelvis"))
    q0 = near(free, 5, 0.05)
    found = dl.assemble(held, q0)
    assert found.statuses is Status.CONVERGED
    before, after = (dl.frame_placement(model, q, frame="pelvis")[1] for q in (q0, found.q))
    np.testing.assert_allclose(after, before, atol=1e-12)


# --- what cannot be closed --------------------------------------------------------------------------------------------


def test_a_rod_that_is_too_short_leaves_the_gap_of_its_geometry():
    found = dl.assemble(short_four_bar(), near(FOUR_BAR, 0, 0.5, 20))
    assert (found.status == Status.LEAST_SQUARES).all()
    np.testing.assert_allclose(size(found.error), 0.15, rtol=1e-10)


def test_it_says_by_how_much_and_where():
    found = dl.assemble(short_four_bar(), near(FOUR_BAR, 0, 0.5))
    assert found.describe() == (
        "The rows cannot all be met; they are met in the least-squares sense. "
        "The largest error is 0.15 (m or rad), of 'closure'."
    )


FAR = dl.Mechanism(chain(3), dl.Weld("tip", target=dl.Placement.from_xyz_rpy((1.0, -1.5, 0.5), (0.5, 1.0, -2.0))))


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1000))
def test_scipy_finds_no_way_down_from_the_least_squares(seed):
    found = dl.assemble(FAR, FAR.random_configuration(np.random.default_rng(seed)), iterations=500)
    assert found.statuses is Status.LEAST_SQUARES
    assert size(shares(FAR, found.error)) <= scipys(FAR, found.q) * (1.0 + 1e-9)


def test_legs_that_are_held_at_impossible_lengths_have_scipys_error():
    mechanism = loop("stewart")
    q0 = near(mechanism, 1, 0.2, 5)
    found = dl.assemble(mechanism, q0, locked="piston*")
    expected = [scipys(mechanism, q, "piston*") for q in q0]
    np.testing.assert_allclose(size(shares(mechanism, found.error)), expected, rtol=1e-9, atol=1e-9)
    assert found.status.tolist() == [Status.LEAST_SQUARES if e > 1e-9 else Status.CONVERGED for e in expected]
    assert max(expected) > 0.1


def test_too_few_iterations_are_reported():
    found = dl.assemble(loop("delta"), near(loop("delta"), 0, 0.3), iterations=1)
    assert found.statuses is Status.ITERATIONS
    assert found.iterations == 1


# --- joints that are locked -------------------------------------------------------------------------------------------


def test_locked_joints_do_not_move_at_all():
    mechanism = loop("stewart")
    q0 = near(mechanism, 1, 0.05, 5)
    found = dl.assemble(mechanism, q0, locked="piston*")
    pistons = [mechanism.model.q_starts[k] for k, j in enumerate(mechanism.model.joints) if "piston" in j.name]
    np.testing.assert_array_equal(found.q[:, pistons], q0[:, pistons])
    assert (found.status == Status.CONVERGED).all()


def test_one_name_is_as_good_as_a_list():
    q0 = near(FOUR_BAR, 2, 0.3)
    found = dl.assemble(FOUR_BAR, q0, locked="crank_joint")
    np.testing.assert_array_equal(found.q, dl.assemble(FOUR_BAR, q0, locked=("crank_joint",)).q)


def test_unknown_locked_joints_are_named_with_the_nearest():
    with refuses("unknown-joint", "'crank_jiont'", "crank_joint"):
        dl.assemble(FOUR_BAR, FOUR_BAR.neutral(), locked=["crank_jiont"])


def test_locked_joints_are_named_not_numbered():
    with refuses("wrong-type", kind=TypeError):
        dl.assemble(FOUR_BAR, FOUR_BAR.neutral(), locked=[0])


def test_with_all_joints_locked_the_start_is_the_answer():
    q0 = near(FOUR_BAR, 2, 0.3)
    found = dl.assemble(FOUR_BAR, q0, locked="*")
    np.testing.assert_array_equal(found.q, q0)
    assert found.statuses is Status.LEAST_SQUARES


# --- batches and bad numbers ------------------------------------------------------------------------------------------


def test_a_batch_is_assembled_one_by_one():
    q0 = near(FOUR_BAR, 0, 0.7, 11)
    together = dl.assemble(FOUR_BAR, q0)
    for k in range(len(q0)):
        alone = dl.assemble(FOUR_BAR, q0[k])
        for name in ("q", "error", "iterations", "status"):
            np.testing.assert_array_equal(getattr(together, name)[k], getattr(alone, name))


def test_compiled_code_has_the_bits_of_the_interpreter():
    q0 = near(FOUR_BAR, 0, 0.7, 11)
    found = dl.assemble.compiled(FOUR_BAR, target=FULL).ufunc(q0)
    for ours, expected in zip(found, evaluate(dl.assemble.program(FOUR_BAR), q0), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_start_that_is_no_number_is_marked_and_spoils_nothing_else():
    q0 = near(FOUR_BAR, 0, 0.7, 11)
    expected = dl.assemble(FOUR_BAR, q0)
    q0[4, 1] = np.nan
    found = dl.assemble(FOUR_BAR, q0)
    others = np.arange(11) != 4
    np.testing.assert_array_equal(found.q[others], expected.q[others])
    assert found.statuses[4] is Status.NOT_FINITE
    assert found.describe() == "An input or a result is not a finite number in configuration 4."


def test_a_quaternion_of_length_zero_is_marked():
    joint = Joint("ball", Spherical(), inertia=dl.Inertia.of(1.0, (0, 0, 0.1), np.eye(3)))
    ball = Model("ball", (joint,), (Frame("tip", 0),))
    held = dl.Mechanism(ball, dl.Weld("tip", target=dl.Placement.of(), rows=("rx", "ry", "rz")))
    assert dl.assemble(held, np.zeros(4)).statuses is Status.NOT_FINITE


def test_without_constraints_the_start_is_the_answer():
    model = chain(3)
    q0 = model.random_configuration(np.random.default_rng(0))
    found = dl.assemble(dl.Mechanism(model), q0)
    np.testing.assert_array_equal(found.q, q0)
    assert found.statuses is Status.CONVERGED
    assert found.describe() == "All rows are met to the tolerance."


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"tolerance": 0.0}, ("tolerance-out-of-range", "0.0", "tolerance")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, refusal):
    with refuses(*refusal):
        dl.assemble(FOUR_BAR, FOUR_BAR.neutral(), **options)
