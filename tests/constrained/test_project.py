"""Projection: drift is taken off, energy is not put in, and long runs stay closed."""

from fnmatch import fnmatch
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import delassus as dl
import delassus.numpy as dnp
from constrained_cases import clear, mechanisms
from delassus.compiler import scan
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.delassus.scales import row_sizes
from delassus.model.generators import chain
from delassus.model.model import Model
from how_many import examples
from mechanisms import FOUR_BAR, dense, loop, short_four_bar, state, two_bodies
from native_bits import FULL
from refusals import refuses

LOOPS = ("four_bar", "delta", "stewart", "biped")

every_loop = pytest.mark.parametrize("name", LOOPS)
both = pytest.mark.parametrize("method", ["mass", "svd"])


def drifted(mechanism, seed=0, size=1e-4, count=16):
    """States that are near a closed one, with any velocity."""
    model, rng = mechanism.model, np.random.default_rng(seed)
    q = dl.integrate(model, model.posture("home"), size * rng.normal(size=(count, model.nv)))
    return q, rng.normal(size=(count, model.nv))


def off(mechanism, q, v, **given):
    """The largest velocity of a row."""
    return np.max(np.abs(np.matvec(dl.constraint_jacobian(mechanism, q, **given), v)))


def error(mechanism, q, **given):
    """The largest error of position."""
    return np.max(np.abs(dl.constraint_error(mechanism, q, **given)))


# --- what is met ------------------------------------------------------------------------------------------------------


@every_loop
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10_000), size=st.sampled_from([1e-8, 1e-4, 1e-2]))
def test_drifted_loops_are_closed_and_their_rows_rest(name, seed, size):
    mechanism = loop(name)
    q, v = dl.project(mechanism, *drifted(mechanism, seed, size))
    assert error(mechanism, q) <= 1e-12
    assert off(mechanism, q, v) <= 1e-10


@settings(max_examples=examples(60))
@given(mechanisms(), st.integers(0, 1000))
def test_rows_of_random_mechanisms_of_any_rank_rest(mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    _, after = dl.project.python(mechanism, q, v)
    assert np.max(np.abs(system.J @ after)) <= 1e-10


@settings(max_examples=examples(60))
@given(mechanisms(), st.integers(0, 1000))
def test_kinetic_energy_is_never_put_in(mechanism, seed):
    q, v, _ = state(mechanism.model, seed)
    assume(clear(dense(mechanism, q, v, np.zeros(mechanism.nv))))
    _, after = dl.project.python(mechanism, q, v)
    before = dl.kinetic_energy.python(mechanism.model, q, v)
    assert dl.kinetic_energy.python(mechanism.model, q, after) <= before * (1.0 + 1e-12)


@settings(max_examples=examples(40))
@given(mechanisms(), st.integers(0, 1000))
def test_velocities_are_the_nearest_in_the_metric_of_the_mass_matrix(mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    L = np.linalg.cholesky(system.M)
    A = np.linalg.solve(L, system.J.T).T
    whitened = L.T @ v
    expected = np.linalg.solve(L.T, whitened - np.linalg.pinv(A, rcond=1e-6) @ (A @ whitened))
    _, after = dl.project.python(mechanism, q, v)
    np.testing.assert_allclose(after, expected, atol=1e-9 * max(1.0, np.max(np.abs(v))))


@every_loop
def test_what_is_met_already_stays(name):
    mechanism = loop(name)
    once = dl.project(mechanism, *drifted(mechanism))
    twice = dl.project(mechanism, *once)
    np.testing.assert_array_equal(twice.q, once.q)
    np.testing.assert_allclose(twice.v, once.v, atol=1e-9)


def test_of_two_bodies_the_heavy_one_moves_less():
    two = two_bodies(99.0, 1.0)
    q = two.neutral()
    q[7] = 1e-3
    v = np.zeros(12)
    v[6] = 1.0
    found = dl.project(dl.Mechanism(two, dl.Weld("a", "b")), q, v)
    np.testing.assert_allclose(found.q[[0, 7]], 1e-5, atol=1e-12)  # the common center of mass
    np.testing.assert_allclose(found.v[[0, 6]], 0.01, atol=1e-12)  # the momentum is kept


def test_rows_follow_references_that_move():
    model = chain(6)
    q, v, _ = state(model)
    _, p = dl.frame_placement(model, q, frame="tip")
    speed = np.array([0.1, -0.2, 0.05])
    led = dl.Mechanism(model, dl.Point("tip", position=lambda t: np.asarray(p) + speed * t))
    found = dl.project(led, q, v, time=1e-2)
    R, tip = dl.frame_placement(model, found.q, frame="tip")
    np.testing.assert_allclose(tip, p + 1e-2 * speed, atol=1e-11)
    velocity = R @ dl.frame_velocity(model, found.q, found.v, frame="tip")[:3]
    np.testing.assert_allclose(velocity, speed, atol=1e-10)


@pytest.mark.parametrize(
    "constraint",
    [
        dl.Point("a", "b", rows="xz"),
        dl.Point("a", position=(0.0, 0.0, 1.0), rows="z"),
        dl.Weld("a", "b", rows=("x", "y", "rz")),
    ],
    ids=["slot", "plane", "cylinder"],
)
def test_errors_of_rows_whose_neighbours_are_left_out_are_taken_off(constraint):
    model, rng = two_bodies(3.0, 1.0), np.random.default_rng(0)
    mechanism = dl.Mechanism(model, constraint)
    closed = dl.assemble(mechanism, np.array([model.random_configuration(rng) for _ in range(8)])).q
    found = dl.project(
        mechanism, dl.integrate(model, closed, 1e-3 * rng.normal(size=(8, 12))), rng.normal(size=(8, 12))
    )
    assert error(mechanism, found.q) <= 1e-12 * max(row_sizes(mechanism))
    assert off(mechanism, found.q, found.v) <= 1e-10


# --- joints that stay as they are -------------------------------------------------------------------------------------


def driven(mechanism, pattern):
    """The velocities of joints that match, by their numbers."""
    model = mechanism.model
    return [
        v
        for k, joint in enumerate(model.joints)
        for v in range(model.v_starts[k], model.v_starts[k] + joint.kind.nv)
        if fnmatch(joint.name, pattern)
    ]


DRIVES = {"four_bar": "crank_joint", "five_bar": "*_proximal*", "delta": "*arm*", "stewart": "*piston*"}


@both
@pytest.mark.parametrize("name", DRIVES)
def test_driven_joints_keep_their_coordinates_and_velocities_to_the_bit(name, method):
    mechanism, pattern = loop(name), DRIVES[name]
    q, v = drifted(mechanism)
    found = dl.project(mechanism, q, v, locked=[pattern], method=method)
    held = driven(mechanism, pattern)
    assert held
    np.testing.assert_array_equal(found.v[:, held], v[:, held])
    np.testing.assert_array_equal(dl.difference(mechanism.model, q, found.q)[:, held], 0.0)


@pytest.mark.parametrize("name", DRIVES)
def test_the_others_follow_driven_joints(name):
    mechanism = loop(name)
    q, v = dl.project(mechanism, *drifted(mechanism), locked=DRIVES[name])
    assert error(mechanism, q) <= 1e-12
    assert off(mechanism, q, v) <= 1e-10


def test_the_others_change_as_little_as_they_can_by_mass():
    """The optimum of a quadratic program with equalities, solved by SciPy."""
    mechanism = dl.Mechanism(chain(6), dl.Point("tip"))
    q, v, _ = state(mechanism.model)
    held = [0, 3]
    names = [mechanism.model.joints[k].name for k in held]
    found = dl.project(mechanism, q, v, locked=names).v
    M, J = dl.crba(mechanism.model, q), dl.constraint_jacobian(mechanism, q)
    rows = np.concatenate([J, np.eye(6)[held]])
    meant = np.concatenate([np.zeros(3), v[held]])
    best = minimize(
        lambda x: (x - v) @ M @ (x - v) / 2,
        found + 0.01,
        jac=lambda x: M @ (x - v),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda x: rows @ x - meant, "jac": lambda x: rows},
        options={"ftol": 1e-16, "maxiter": 200},
    )
    np.testing.assert_allclose(found, best.x, rtol=0, atol=1e-6 * np.abs(v).max())
    np.testing.assert_array_equal(found[held], v[held])


def test_a_loop_all_of_whose_joints_are_locked_stays_open():
    q, v = drifted(FOUR_BAR)
    found = dl.project(FOUR_BAR, q, v, locked="*")
    np.testing.assert_array_equal(found.q, q)
    np.testing.assert_array_equal(found.v, v)


def test_a_locked_body_keeps_its_quaternion_to_the_bit():
    model = two_bodies(3.0, 1.0)
    mechanism = dl.Mechanism(model, dl.Weld("a", "b"))
    q, v, _ = state(model)
    closed = dl.integrate(model, dl.assemble(mechanism, q).q, 1e-3 * np.ones(12))
    found = dl.project(mechanism, closed, v, locked=[model.joints[0].name])
    np.testing.assert_array_equal(found.q[:7], closed[:7])
    assert error(mechanism, found.q) <= 1e-12


def test_a_joint_that_is_not_there_cannot_be_locked():
    q, v = drifted(FOUR_BAR)
    with refuses("unknown-joint", "crank_joint"):
        dl.project(FOUR_BAR, q, v, locked=["crank"])


# --- by one singular value decomposition ------------------------------------------------------------------------------


@every_loop
def test_svd_takes_off_errors_of_first_order(name):
    mechanism = loop(name)
    q, v = drifted(mechanism, size=1e-5)
    found = dl.project(mechanism, q, v, method="svd")
    assert error(mechanism, found.q) < 1e-4 * error(mechanism, q)
    assert off(mechanism, found.q, found.v) < 1e-3


def test_svd_is_the_pseudo_inverse_of_the_textbook():
    q, v = (x[0] for x in drifted(FOUR_BAR))
    J, e = dl.constraint_jacobian(FOUR_BAR, q), dl.constraint_error(FOUR_BAR, q)
    found = dl.project(FOUR_BAR, q, v, method="svd")
    pinv = np.linalg.pinv(J, rcond=1e-6)
    np.testing.assert_allclose(found.q, q - pinv @ e, atol=1e-14)
    np.testing.assert_allclose(found.v, v - pinv @ (J @ v), atol=1e-13)


def test_svd_moves_rows_with_their_references():
    model = chain(6)
    q, v, _ = state(model)
    led = dl.Mechanism(model, dl.Point("tip", position=lambda t: np.array([0.3, -0.2, 0.1]) * t))
    found = dl.project(led, q, v, method="svd", time=0.0)
    R, _ = dl.frame_placement(model, q, frame="tip")
    np.testing.assert_allclose(dl.constraint_jacobian(led, q) @ found.v, R.T @ np.array([0.3, -0.2, 0.1]), atol=1e-13)


# --- calls ------------------------------------------------------------------------------------------------------------


@both
def test_a_batch_is_projected_state_by_state(method):
    q, v = drifted(FOUR_BAR, count=11)
    together = dl.project(FOUR_BAR, q, v, method=method)
    for k in range(11):
        alone = dl.project(FOUR_BAR, q[k], v[k], method=method)
        np.testing.assert_allclose(together.q[k], alone.q, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(together.v[k], alone.v, rtol=0.0, atol=1e-14)


def test_compiled_code_has_the_bits_of_the_interpreter():
    arrays = drifted(FOUR_BAR, size=1e-2, count=11)
    found = dl.project.compiled(FOUR_BAR, target=FULL).ufunc(*arrays)
    for ours, expected in zip(found, evaluate(dl.project.program(FOUR_BAR), *arrays), strict=True):
        np.testing.assert_array_equal(ours, expected)


@both
@pytest.mark.parametrize("spoiled", ["q", "v"])
def test_a_state_that_is_no_number_is_marked_and_spoils_nothing_else(method, spoiled):
    q, v = drifted(FOUR_BAR, count=11)
    expected = dl.project(FOUR_BAR, q, v, method=method)
    (q if spoiled == "q" else v)[4, 1] = np.nan
    found = dl.project(FOUR_BAR, q, v, method=method)
    others = np.arange(11) != 4
    np.testing.assert_array_equal(found.q[others], expected.q[others])
    np.testing.assert_array_equal(found.v[others], expected.v[others])
    assert np.isnan(found.v[4]).all()


def test_what_cannot_be_closed_ends_with_the_best_that_was_found():
    short = short_four_bar()
    q, v = drifted(FOUR_BAR, size=1e-2)
    found = dl.project(short, q, v)
    assert np.isfinite(found.q).all()
    before, after = (np.max(np.abs(dl.constraint_error(short, x)), axis=-1) for x in (q, found.q))
    assert (after <= before).all()


def test_without_constraints_nothing_changes():
    model = chain(3)
    q, v, _ = state(model)
    found = dl.project(dl.Mechanism(model), q, v)
    np.testing.assert_array_equal(found.q, q)
    np.testing.assert_array_equal(found.v, v)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"method": "qr"}, ("unknown-method", "'qr'")),
        ({"tolerance": 2.0}, ("tolerance-out-of-range", "2.0", "tolerance")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, refusal):
    with refuses(*refusal):
        dl.project(FOUR_BAR, *drifted(FOUR_BAR), **options)


# --- simulations ------------------------------------------------------------------------------------------------------

STEP = 1e-3  # s
SPRINGS = {"delta": ("arm*_joint", 5.0), "stewart": ("piston*_joint", 500.0)}
"""Joints with springs to their place at home [N·m/rad, N/m]: without them, the platforms fall for ever."""


@dl.kernel("(nq),(nv),()->(nq),(nv),()")
def runge_kutta(mechanism, q, v, worst, *, stiffness):
    """A step of the classical method and a projection; the largest error of position so far."""
    model, nothing = mechanism.model, dnp.zeros(mechanism.nv)
    home = np.array(model.posture("home"))

    def stage(carry, item):
        v_k, a_k, dq, dv = carry
        ahead, weight = item
        q_k, v_k = dl.integrate(model, q, ahead * v_k), v + ahead * a_k
        a_k, _ = dl.prox_ltl(mechanism, q_k, v_k, -np.array(stiffness) * dl.difference(model, home, q_k))
        return (v_k, a_k, dq + weight * v_k, dv + weight * a_k), None

    stages = STEP * np.array([0.0, 0.5, 0.5, 1.0]), STEP * np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
    (_, _, dq, dv), _ = scan(stage, (v, nothing, nothing, nothing), stages)
    q, v = dl.project(mechanism, dl.integrate(model, q, dq), v + dv)
    return q, v, dnp.maximum(worst, dnp.max(dnp.abs(dl.constraint_error(mechanism, q))))


def hung(name: str) -> dl.Mechanism:
    """A loop under gravity; the biped hangs by its pelvis."""
    model = dl.load(name)
    pelvis = dl.Weld("pelvis", target=dl.Placement.of(p=model.posture("home")[:3]))
    return dl.Mechanism(model, pelvis if name == "biped" else ())


def springs(name: str, model: Model) -> tuple[float, ...]:
    """The stiffness of each velocity's spring."""
    pattern, stiffness = SPRINGS.get(name, ("", 0.0))
    joints = zip(model.joints, model.v_starts, strict=True)
    stiff = {v for joint, v in joints if fnmatch(joint.name, pattern)}
    return tuple(stiffness if v in stiff else 0.0 for v in range(model.nv))


def energy(name: str, model: Model, q, v) -> float:
    """Of motion, gravity and springs [J]."""
    away = dl.difference(model, model.posture("home"), q)
    stored = 0.5 * np.array(springs(name, model)) @ away**2
    return float(dl.kinetic_energy(model, q, v) + dl.potential_energy(model, q) + stored)


@cache
def simulated(name: str, seconds: int):
    """The largest error of position, and the energy that a loop had gained or lost after each second, as a share."""
    mechanism = hung(name)
    model = mechanism.model
    q = model.posture("home")
    v = dl.project(mechanism, q, np.random.default_rng(0).normal(size=model.nv)).v
    worst = np.zeros(())
    step = runge_kutta.bind(mechanism, q, v, worst, q, v, worst, stiffness=springs(name, model))
    begin, drifts, most = energy(name, model, q, v), [], 0.0
    for _ in range(seconds):
        for _ in range(1000):
            step()
        drifts.append(energy(name, model, q, v) - begin)
        most = max(most, float(dl.kinetic_energy(model, q, v)))
    return float(worst), np.array(drifts) / most


for_a_while = pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.slow)])


@for_a_while
@every_loop
def test_simulations_stay_closed(name, seconds):
    assert simulated(name, seconds)[0] <= 1e-10


@for_a_while
def test_simulations_keep_the_energy_of_a_four_bar(seconds):
    assert np.max(np.abs(simulated("four_bar", seconds)[1])) <= 1e-6


def test_states_near_poses_where_joints_lock_are_closed():
    """The proximal parameter outweighs what rows yield there, and usual corrections hardly shorten the error."""
    model = dl.load("delta")
    mechanism, rng = dl.Mechanism(model), np.random.default_rng(0)
    log = dl.simulate_motion(model, model.posture("home"), times=np.linspace(0, 3, 3001), method="rk4", step=1e-3)
    smallest = np.linalg.svd(dl.constraint_jacobian(mechanism, log.q), compute_uv=False)[:, -1]
    locked = log.q[np.argsort(smallest)[:20]]
    for size in (1e-9, 1e-7, 1e-6, 1e-5, 1e-4):
        q = dl.integrate(model, np.repeat(locked, 20, 0), size * rng.normal(size=(400, mechanism.nv)))
        closed = dl.project(mechanism, q, np.zeros((400, mechanism.nv)), iterations=40).q
        assert np.abs(dl.constraint_error(mechanism, closed)).max() < 1e-11
        assert np.linalg.norm(dl.difference(model, q, closed), axis=-1).max() < 100 * size
