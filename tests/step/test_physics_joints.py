"""Springs, dampers, tendons, servos, limits and dry friction of joints, in every room that has them: closed forms."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import expm

from delassus.model.bundled.build import Assembly, Revolute, rod
from physics_measures import RISE, energy, largest_rise
from physics_rooms import rooms
from physics_scenes import slider, tied

Z = (0.0, 0.0, 1.0)


def linear_motion(K, D, M, x0, v0, t):
    """x, v (times, 2 n) of M a + D v + K x = 0 at even times, by the exponential of its matrix."""
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    step, states = expm(A * (t[1] - t[0])), [np.concatenate([x0, v0])]
    for _ in t[1:]:
        states.append(step @ states[-1])
    return np.stack(states)


def convergence(room, model, q0, v0, exact, rate: float, **physics):
    """Errors of q within 0.5 s at three steps; they vanish with the step, and are at most rate·t ones of `rate`·h."""
    errors, steps = [], (4e-3, 2e-3, 1e-3)
    for h in steps:
        t, q, _ = room.rollout(model, q0[None], v0[None], h, round(0.5 / h), **physics)
        known = exact(t)[:, : len(q0)]
        errors.append(float(np.abs(q[:, 0] - known).max() / np.abs(known).max()))
    return errors, [0.6 * rate * h * rate * 0.5 for h in steps]


def assert_converges(errors, bounds):
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True)), f"{errors} {bounds}"
    assert all(fine <= max(0.6 * coarse, 1e-7) for coarse, fine in pairwise(errors)), errors


# --- springs and dampers ----------------------------------------------------------------------------------------------


@rooms("spring")
def test_a_mass_on_a_spring_swings_as_its_closed_form(room):
    """x = cos ω t at ω = 10 rad/s: implicit steps damp by ω² h t/2 of it, and not more."""
    model, start = slider(stiffness=200.0), (np.array([0.1]), np.array([0.0]))
    exact = lambda t: linear_motion([[200.0]], [[0.0]], [[2.0]], *start, t)  # noqa: E731
    assert_converges(*convergence(room, model, *start, exact, 10.0))


@rooms("damper")
def test_a_mass_with_a_damper_slows_down_exponentially(room):
    model, start = slider(damping=8.0), (np.array([0.0]), np.array([1.0]))
    exact = lambda t: linear_motion([[0.0]], [[8.0]], [[2.0]], *start, t)  # noqa: E731
    assert_converges(*convergence(room, model, *start, exact, 4.0))


@rooms("spring", "damper")
def test_a_damped_spring_swings_as_its_closed_form(room):
    model, start = slider(stiffness=200.0, damping=8.0), (np.array([0.1]), np.array([-0.5]))
    exact = lambda t: linear_motion([[200.0]], [[8.0]], [[2.0]], *start, t)  # noqa: E731
    assert_converges(*convergence(room, model, *start, exact, 14.0))


@rooms("spring", "damper", "tree")
def test_a_mass_that_hangs_on_a_spring_rests_where_weight_and_spring_balance(room):
    model = slider(Z, gravity=9.81, stiffness=400.0, damping=60.0, rest=0.05)
    _, q, v = room.rollout(model, np.zeros((1, 1)), np.zeros((1, 1)), 5e-3, 400)
    np.testing.assert_allclose(q[-1, 0], 0.05 - 2.0 * 9.81 / 400.0, atol=1e-8)
    np.testing.assert_allclose(v[-1, 0], 0.0, atol=1e-7)


@pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")
@rooms("spring", "tree")
def test_a_chain_of_springs_gains_no_energy(room, h):
    """A pendulum of three links with springs in its joints."""
    a = Assembly("chain")
    for k in range(3):
        a.body(f"link{k}", Revolute((0, 1, 0)), f"link{k - 1}" if k else None, (0, 0, -0.3 if k else 0),
               [rod((0, 0, 0), (0, 0, -0.3), 0.5)])  # fmt: skip
    model = a.model()
    model = replace(model, joints=tuple(replace(joint, stiffness=(2.0,), rest=(0.3,)) for joint in model.joints))
    rng = np.random.default_rng(0)
    _, q, v = room.rollout(model, rng.normal(size=(8, 3)), 3 * rng.normal(size=(8, 3)), h, round(0.5 / h))
    rise = largest_rise(*energy(room, model, h, q, v))
    assert rise <= RISE[h]


# --- tendons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), [(40.0, 0.0), (0.0, 6.0), (40.0, 2.0)], ids=["spring", "damper", "both"])
@rooms("tendon")
def test_masses_that_a_tendon_ties_move_as_their_closed_form(room, k, d):
    pull, start = np.array([[1.0, -2.0]]), (np.array([0.1, -0.05]), np.array([0.0, 0.4]))
    exact = lambda t: linear_motion(k * pull.T @ pull, d * pull.T @ pull, np.diag([1.0, 3.0]), *start, t)  # noqa: E731
    assert_converges(*convergence(room, tied(k, d), *start, exact, 14.0))


# --- servos -----------------------------------------------------------------------------------------------------------


@rooms("servo")
def test_a_servo_pulls_a_mass_to_its_target_as_its_closed_form(room):
    """Critically damped: ω = 10 rad/s."""
    exact = lambda t: 0.2 + linear_motion([[200.0]], [[40.0]], [[2.0]], [-0.2], [0.0], t)  # noqa: E731
    servo = (200.0, 40.0, np.array([0.2]))
    assert_converges(*convergence(room, slider(), np.array([0.0]), np.array([0.0]), exact, 14.0, servo=servo))


@rooms("servo")
def test_a_servo_gives_way_by_weight_over_stiffness(room):
    servo = (400.0, 60.0, np.array([0.3]))
    _, q, _ = room.rollout(slider(Z, gravity=9.81), np.zeros((1, 1)), np.zeros((1, 1)), 5e-3, 400, servo=servo)
    np.testing.assert_allclose(q[-1, 0], 0.3 - 2.0 * 9.81 / 400.0, atol=1e-8)


# --- limits and dry friction ------------------------------------------------------------------------------------------


@rooms("limit")
def test_a_mass_that_runs_into_its_limit_stops_there(room):
    """At 3 m/s, and the limit is between two steps; it neither passes nor comes back."""
    model = slider(lower=-1.0, upper=0.1005)
    _, q, v = room.rollout(model, np.zeros((1, 1)), np.array([[3.0]]), 1e-3, 60, limits=True)
    np.testing.assert_allclose(q[-1, 0], 0.1005, atol=1e-9)
    np.testing.assert_allclose(v[-1, 0], 0.0, atol=1e-9)
    assert q.max() <= 0.1005 + 1e-9


@rooms("limit")
def test_a_pendulum_falls_onto_its_limit_and_rests(room):
    a = Assembly("pendulum")
    a.body("arm", Revolute((0, 1, 0)), None, (0, 0, 0), [rod((0, 0, 0), (0.5, 0, 0), 1.0)], limits=(-3.0, 0.5))
    _, q, v = room.rollout(a.model(), np.zeros((1, 1)), np.zeros((1, 1)), 1e-3, 500, limits=True)
    np.testing.assert_allclose(q[-1, 0], 0.5, atol=1e-6)
    np.testing.assert_allclose(v[-1, 0], 0.0, atol=1e-7)


@rooms("dry")
def test_dry_friction_slows_a_joint_evenly_and_holds_it(room):
    """v = v₀ - (f/m) t until it stops, at m v₀²/(2 f), within what it goes in half a step; then nothing moves."""
    f, v0, h = 4.0, 0.5, 1e-3
    t, q, v = room.rollout(slider(friction=f), np.zeros((1, 1)), np.array([[v0]]), h, 400, joint_friction=True)
    np.testing.assert_allclose(v[:, 0, 0], np.maximum(v0 - f / 2.0 * t, 0.0), atol=1e-7)
    assert abs(q[-1, 0, 0] - 2.0 * v0**2 / (2 * f)) <= 0.51 * v0 * h


@rooms("dry")
def test_dry_friction_holds_a_weight_that_is_smaller_and_lets_go_of_one_that_is_larger(room):
    for f, a in ((1.01 * 2.0 * 9.81, 0.0), (0.9 * 2.0 * 9.81, -0.1 * 9.81)):
        model = slider(Z, gravity=9.81, friction=f)
        _, _, v = room.rollout(model, np.zeros((1, 1)), np.zeros((1, 1)), 1e-3, 100, joint_friction=True)
        np.testing.assert_allclose(v[-1, 0], 0.1 * a, atol=1e-7)
