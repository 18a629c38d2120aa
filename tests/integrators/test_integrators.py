"""Integrators: orders of convergence, invariants, closed references."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj

import delassus as dl
import delassus.numpy as dnp
from delassus.integrators.choice import INTEGRATORS
from delassus.integrators.protocol import System
from delassus.model.bundled.build import Assembly, ball, box
from delassus.model.joints import Free, Prismatic, Spherical
from motion_cases import TOP, TOP_SPEED, TOP_START

FIXED = [name for name, method in INTEGRATORS.items() if not method.adaptive]


def driven(time, q, v):
    """Forces that depend on everything."""
    return 0.3 * dnp.sin(3.0 * time) - 0.1 * v


@pytest.fixture(scope="module")
def top_reference():
    return dl.simulate_motion(TOP, TOP_START, TOP_SPEED, driven, times=[0.0, 0.5], tolerance=1e-13)[-1]


def distance(state, reference) -> float:
    way = dl.difference(TOP, state.q, reference.q)
    return max(abs(way).max(), abs(state.v - reference.v).max())


@pytest.mark.parametrize("method", FIXED)
def test_errors_fall_with_the_power_of_the_step_that_the_order_says(method, top_reference):
    steps = np.array([0.01, 0.005, 0.0025])
    errors = [
        distance(
            dl.simulate_motion(TOP, TOP_START, TOP_SPEED, driven, times=[0.0, 0.5], method=method, step=h)[-1],
            top_reference,
        )
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(INTEGRATORS[method].order, abs=0.25)


@pytest.mark.parametrize("method", ["semi_implicit_euler", "midpoint", "rk4", "gauss"])
def test_projection_keeps_the_order_on_closed_loops(method):
    model = dl.load("four_bar")
    home, times = model.posture("home"), [0.0, 0.3]
    exact = dl.simulate_motion(model, home, times=times, tolerance=1e-13).q[-1]
    steps = np.array([0.01, 0.005, 0.0025])
    ends = [dl.simulate_motion(model, home, times=times, method=method, step=h).q[-1] for h in steps]
    slope = np.polyfit(np.log(steps), np.log([abs(end - exact).max() for end in ends]), 1)[0]
    assert slope == pytest.approx(INTEGRATORS[method].order, abs=0.3)


def test_a_smaller_tolerance_makes_smaller_errors_in_proportion(top_reference):
    tolerances = np.array([1e-6, 1e-8, 1e-10])
    found = dl.simulate_motion(
        TOP, np.tile(TOP_START, (3, 1)), TOP_SPEED, driven, times=[0.0, 0.5], tolerance=tolerances
    )
    errors = [distance(found[:, k][-1], top_reference) for k in range(3)]
    assert np.polyfit(np.log(tolerances), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.25)
    assert errors[-1] < 1e-8


def test_the_steps_of_the_pair_go_with_the_fifth_root_of_the_tolerance():
    tolerances = np.array([1e-6, 1e-11])
    found = dl.simulate_motion(TOP, np.tile(TOP_START, (2, 1)), TOP_SPEED, times=[0.0, 2.0], tolerance=tolerances)
    assert found.steps[1] / found.steps[0] == pytest.approx(10.0, rel=0.25)


class Counted(System):
    """A system that counts how often its accelerations are asked for."""

    def acceleration(self, time, q, v):
        asked.append(time)
        return super().acceleration(time, q, v)


asked: list[float] = []


def test_the_pair_has_its_first_stage_from_the_last_one_of_the_step_before():
    system, pair = Counted(dl.Mechanism(TOP), np.zeros(4)), INTEGRATORS["dopri5"]
    first = pair.step(system, 0.0, TOP_START, TOP_SPEED, 0.01)
    assert len(asked) == 7
    asked.clear()
    second = pair.step(system, 0.01, first.q, first.v, 0.01, first.last)
    assert len(asked) == 6
    afresh = pair.step(system, 0.01, first.q, first.v, 0.01)
    np.testing.assert_allclose(second.q, afresh.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(second.v, afresh.v, rtol=0, atol=1e-14)


# --- references -------------------------------------------------------------------------------------------------------


def double_pendulum_by_hand(_, x):
    """Lagrange's equations of the bundled double pendulum, θ2 relative to θ1: rods of 0.2 kg, balls of 0.8 kg."""
    L, rod_mass, ball_mass, r, R, g = 0.5, 0.2, 0.8, 0.01, 0.04, 9.81
    m, c = rod_mass + ball_mass, (rod_mass * L / 2 + ball_mass * L)  # mass, first moment
    about_end = rod_mass * (3 * r**2 + L**2) / 12 + rod_mass * L**2 / 4 + ball_mass * (0.4 * R**2 + L**2)
    a, b, p, s = x
    cb, sb = math.cos(b), math.sin(b)
    M12 = about_end + L * c * cb
    M = np.array([[2 * about_end + m * L**2 + 2 * L * c * cb, M12], [M12, about_end]])
    coriolis = L * c * sb * np.array([-(2 * p * s + s * s), p * p])
    gravity = g * np.array([(c + m * L) * math.sin(a) + c * math.sin(a + b), c * math.sin(a + b)])
    return [p, s, *np.linalg.solve(M, -coriolis - gravity)]


def test_a_double_pendulum_moves_as_equations_by_hand_do():
    times = np.linspace(0.0, 2.0, 5)
    start = [1.2, -0.7, 0.3, 1.0]
    theirs = solve_ivp(double_pendulum_by_hand, (0, 2), start, "DOP853", times, rtol=1e-13, atol=1e-14).y.T
    ours = dl.simulate_motion(dl.load("double_pendulum"), start[:2], start[2:], times=times, tolerance=1e-13)
    np.testing.assert_allclose(ours.q, theirs[:, :2], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.v, theirs[:, 2:], rtol=0, atol=1e-10)


def free_body() -> tuple[dl.Model, np.ndarray]:
    """A body on a ball joint at its center, and its moments."""
    sides = np.array([0.3, 0.2, 0.1])
    a = Assembly("free_body")
    a.body("body", Spherical(), None, parts=[box(sides, 3.0)])
    return a.model(), 3.0 / 12 * ((sides**2).sum() - sides**2)


def free_rotation(moments, omega1, omega3, times):
    """ω(t) (times, 3) of a free body that starts with ω2 = 0, in Jacobi's functions; Landau and Lifshitz, § 37."""
    I1, I2, I3 = moments  # I1 < I2 < I3
    energy, momentum2 = I1 * omega1**2 + I3 * omega3**2, (I1 * omega1) ** 2 + (I3 * omega3) ** 2
    assert momentum2 > energy * I2
    rate = math.sqrt((I3 - I2) * (momentum2 - energy * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (energy * I3 - momentum2) / ((I3 - I2) * (momentum2 - energy * I1))
    sn, cn, dn, _ = ellipj(rate * times, m)
    across = math.sqrt((energy * I3 - momentum2) / (I2 * (I3 - I2)))
    return np.stack([omega1 * cn, across * sn, omega3 * dn], -1)


def test_a_body_without_torque_turns_by_elliptic_functions():
    model, moments = free_body()
    times = np.linspace(0.0, 5.0, 11)
    log = dl.simulate_motion(model, [0, 0, 0, 1], [1.0, 0.0, 2.0], times=times, tolerance=1e-13)
    np.testing.assert_allclose(log.v, free_rotation(moments, 1.0, 2.0, times), rtol=0, atol=1e-10)
    turned = dl.forward_kinematics(model, log.q)[0][:, 0]
    momentum = (turned @ (moments * log.v)[..., None])[..., 0]  # in the world, where it rests
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (11, 1)), rtol=0, atol=1e-11)


# --- invariants -------------------------------------------------------------------------------------------------------


def springs() -> dl.Model:
    """Two masses one on the other, on springs, across gravity."""
    a = Assembly("springs")
    a.body("first", Prismatic((1, 0, 0)), None, parts=[ball(0.1, 1.0)])
    a.body("second", Prismatic((1, 0, 0)), "first", parts=[ball(0.1, 0.3)])
    model = a.model()
    joints = [replace(j, stiffness=(k,)) for j, k in zip(model.joints, (200.0, 50.0), strict=True)]
    return replace(model, joints=tuple(joints))


@pytest.mark.parametrize("method", ["midpoint", "gauss"])
def test_energies_of_linear_springs_stay_to_rounding(method):
    log = dl.simulate_motion(springs(), [0.1, -0.05], times=np.linspace(0, 10, 6), method=method, step=0.02)
    assert abs(log.energy / log.energy[0] - 1.0).max() < 1e-13
    assert abs(np.diff(log.q[:, 0])).min() > 1e-4


@pytest.mark.parametrize("method", INTEGRATORS)
def test_masses_that_pull_each_other_keep_their_momentum(method):
    model = springs()
    joints = (replace(model.joints[0], stiffness=(0.0,)), model.joints[1])
    step = None if INTEGRATORS[method].adaptive else 0.01
    free = replace(model, joints=joints)
    log = dl.simulate_motion(free, [0.1, -0.05], [0.3, 0.2], times=[0.0, 0.5, 1.0], method=method, step=step)
    momentum = 1.3 * log.v[:, 0] + 0.3 * log.v[:, 1]
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-13)
    assert abs(np.diff(log.v[:, 1])).min() > 1e-2


def test_implicit_euler_takes_energy_and_explicit_euler_gives_it():
    grows, falls = (
        dl.simulate_motion(springs(), [0.1, -0.05], times=np.linspace(0, 1, 6), method=method, step=0.01).energy
        for method in ("explicit_euler", "implicit_euler")
    )
    assert np.all(np.diff(grows) > 0) and np.all(np.diff(falls) < 0)


def test_the_midpoint_rule_keeps_energy_and_momentum_of_a_free_body():
    model, moments = free_body()
    log = dl.simulate_motion(model, [0, 0, 0, 1], [1.0, 0.3, 2.0], times=[0, 5, 10], method="midpoint", step=0.05)
    for invariant in ((moments * log.v**2).sum(-1), ((moments * log.v) ** 2).sum(-1)):
        assert abs(invariant / invariant[0] - 1.0).max() < 1e-13


def test_gauss_keeps_the_energy_of_a_pendulum_within_a_bound_for_long():
    log = dl.simulate_motion(dl.load("pendulum"), [2.0], times=np.linspace(0, 200, 201), method="gauss", step=0.02)
    off = abs(log.energy - log.energy[0])
    assert off[-50:].max() < 1.5 * off[:50].max() < 1e-4


@pytest.mark.parametrize("stiffness", [1e-2, 1e4, 1e8, 1e16])
@pytest.mark.parametrize("method", ["implicit_euler", "midpoint", "gauss"])
def test_implicit_methods_bear_any_stiffness(method, stiffness):
    model = springs()
    joints = (model.joints[0], replace(model.joints[1], stiffness=(stiffness,)))
    log = dl.simulate_motion(
        replace(model, joints=joints), [0.1, 1e-3], times=np.linspace(0, 1, 11), method=method, step=0.01
    )
    assert log.statuses is dl.stepping.MotionStatus.DONE
    assert log.energy.max() < log.energy[0] * (1 + 1e-6)


def test_the_taylor_step_is_exact_in_a_throw():
    a = Assembly("ball")
    a.body("ball", Free(), None, parts=[ball(0.1, 1.0)])
    log = dl.simulate_motion(
        a.model(), [0, 0, 0, 0, 0, 0, 1], [1.0, 2.0, 5.0, 0, 0, 0], times=[0, 1], method="taylor", step=0.1
    )
    np.testing.assert_allclose(log.q[-1, :3], [1.0, 2.0, 5.0 - 9.81 / 2], atol=1e-13)


def test_quaternions_keep_their_length():
    log = dl.simulate_motion(TOP, TOP_START, TOP_SPEED, times=np.linspace(0, 5, 3), method="rk4", step=0.01)
    np.testing.assert_allclose(np.linalg.norm(log.q[:, :4], axis=-1), 1.0, atol=1e-14)
