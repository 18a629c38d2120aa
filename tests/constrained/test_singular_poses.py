"""Near singular poses: whatever is returned obeys the equation of motion, and the status is true.

Poses are at distances 1e-16 … 1 from singular ones. The oracle is the dense answer by NumPy's singular values.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.constrained.delassus.scales import row_groups, row_mobilities
from delassus.constrained.solvers.choice import SOLVERS
from delassus.constrained.solvers.kkt import dense_system
from delassus.constrained.solvers.status import Status
from delassus.model.bundled.linkages import four_bar
from delassus.model.joints import Prismatic, Revolute
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from how_many import examples
from mechanisms import Dense, loop, relative

every_method = pytest.mark.parametrize("method", SOLVERS)
PENDULUM = dl.Mechanism(dl.load("double_pendulum"), [dl.Point("tip")])
ARM = dl.load("arm7")
MECHANISMS = {
    "pendulum": PENDULUM,
    "arm": dl.Mechanism(ARM, [dl.Point(ARM.frame_list[-1].name)]),
    "held arm": dl.Mechanism(ARM, [dl.Weld(ARM.frame_list[-1].name)]),
    "four-bar": loop("four_bar"),
    "slider-crank": loop("slider_crank"),
}


def solve(mechanism, q, v, tau, method="prox_pv", **options):
    """Result and dense system of one state, in plain NumPy."""
    found = dl.constrained_dynamics.python(mechanism, q, v, tau, method=method, **options)
    system = Dense(*dense_system.python(mechanism, q, v, tau), weight=1.0 / np.sqrt(row_mobilities(mechanism)))
    return found, system


def imbalance(system: Dense, a, force) -> float:
    """How much the equation of motion is off, as a share of the terms that cancel at each joint."""
    terms = np.abs(system.M) @ np.abs(a) + np.abs(system.h) + np.abs(system.J).T @ np.abs(force)
    off = np.abs(system.M @ a - system.h - system.J.T @ force)
    return float(np.max(off / np.where(terms > 0.0, terms, 1.0)))


def is_met(mechanism, system: Dense, a, force, share=1e-8) -> bool:
    """Whether residuals are small beside the accelerations that cancel in the constraint's rows of the same unit."""
    free = np.linalg.solve(system.M, system.h)
    driven = np.diagonal(np.linalg.inv(system.M)) * (np.abs(system.h) + np.abs(system.J).T @ np.abs(force))
    size = np.abs(system.J) @ (np.abs(a) + np.abs(free) + driven) + np.abs(system.gamma)
    groups = row_groups(mechanism)
    size = np.array([max(size[k] for k, other in enumerate(groups) if other == group) for group in groups])
    return bool(np.all(np.abs(system.J @ a + system.gamma) <= share * size))


@pytest.mark.parametrize("name", MECHANISMS)
@every_method
@settings(max_examples=examples(25))
@given(st.floats(-16.0, 0.0), st.integers(0, 10_000))
def test_the_equation_of_motion_holds_and_the_status_is_true(name, method, exponent, seed):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(seed)
    step, v, tau = rng.normal(size=(3, mechanism.nv))
    q = dl.integrate.python(mechanism.model, mechanism.neutral(), 10.0**exponent * step)
    (a, force, residual, _, status, _), system = solve(mechanism, q, v, tau, method)
    assert imbalance(system, a, force) < 1e-9
    np.testing.assert_allclose(residual, system.J @ a + system.gamma, atol=1e-9 * max(1.0, np.max(np.abs(a))))
    assert status in (Status.CONVERGED, Status.LEAST_SQUARES, Status.PRECISION)
    assert is_met(mechanism, system, a, force) == (status == Status.CONVERGED)
    spectrum = np.linalg.svd((system.whitened.T * system.weight).T, compute_uv=False) ** 2
    shares = spectrum / spectrum.max()
    if np.all((shares < 1e-13) | (shares > 1e-9)):
        assert relative(a, system.answer[0]) < (1e-9 if np.all((shares < 1e-13) | (shares > 1e-6)) else 1e-8)


@every_method
def test_a_pendulum_held_at_its_tip_in_a_nearly_straight_pose(method):
    q, v, tau = np.full(2, 1e-7), np.array([1.0, -1.0]), np.array([0.1, 0.0])
    (a, force, _, _, status, off), system = solve(PENDULUM, q, v, tau, method)
    np.testing.assert_allclose(a, system.answer[0], rtol=1e-9)
    assert status == Status.PRECISION
    assert np.max(np.abs(off)) < 1e-15
    assert np.max(np.abs(force)) < 0.01


@every_method
@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5])
def test_a_parallelogram_is_exact_close_to_where_it_lies_flat(method, angle):
    mechanism = dl.Mechanism(four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2))
    q = np.array([angle, -angle, angle])
    v = np.array([1.0, -1.0, 1.0])
    (a, _, _, _, status, _), system = solve(mechanism, q, v, np.array([0.3, 0.0, 0.1]), method)
    B = (system.whitened.T * system.weight).T
    free = np.linalg.solve(np.linalg.cholesky(system.M), system.h)
    y = free - np.linalg.pinv(B, rcond=1e-6) @ (system.weight * system.gamma + B @ free)
    assert relative(a, np.linalg.solve(np.linalg.cholesky(system.M).T, y)) < 1e-8
    assert status == Status.CONVERGED


@every_method
def test_joints_that_are_locked_on_a_robot_that_stands_are_met(method):
    robot = dl.load("biped")
    soles = [dl.Weld(f) for f in robot.frames("*foot*")[:2]]
    locks = [dl.JointLock(joint.name) for joint in robot.joints[1:]]
    mechanism = dl.Mechanism(replace(robot, constraints=()), [*soles, *locks])
    still = np.zeros(robot.nv)
    for seed in range(3):
        q = robot.random_configuration(np.random.default_rng(seed))
        (a, _, _, _, status, _), _ = solve(mechanism, q, still, still, method)
        assert status == Status.CONVERGED
        np.testing.assert_allclose(a, 0.0, atol=1e-9)


def slider_and_rotor() -> Model:
    slider = Joint("slider", Prismatic((1.0, 0.0, 0.0)), inertia=dl.Inertia.of(10.0))
    rotor = Joint("rotor", Revolute(), inertia=dl.Inertia.of(1e-3, rotational=1e-6 * np.eye(3)))
    return Model("slider and rotor", (slider, rotor), (Frame("slider", 0), Frame("rotor", 1)))


@every_method
def test_a_contradiction_shows_beside_a_joint_that_accelerates_fast(method):
    locks = [dl.JointLock("slider"), dl.JointLock("slider", acceleration=1e-4)]
    mechanism = dl.Mechanism(slider_and_rotor(), locks)
    (a, force, _, _, status, _), _ = solve(mechanism, np.zeros(2), np.zeros(2), np.array([0.0, 1.0]), method)
    assert status == Status.LEAST_SQUARES
    np.testing.assert_allclose(force, 2.5e-4, rtol=1e-6)
    np.testing.assert_allclose(a, [5e-5, 1e6], rtol=1e-9)


@every_method
def test_links_of_a_tenth_of_a_millimetre_are_held_as_large_ones_are(method):
    length, mass = 1e-4, 1e-9
    body = dl.Inertia.of(mass, (length / 2, 0.0, 0.0), mass * length**2 / 12 * np.eye(3))
    places = [dl.Placement.of(p=(length if k else 0.0, 0.0, 0.0)) for k in range(3)]
    joints = [Joint(f"{k}", Revolute((0.0, 1.0, 0.0)), k - 1, places[k], body) for k in range(3)]
    model = Model("tiny", tuple(joints), (Frame("tip", 2, dl.Placement.of(p=(length, 0.0, 0.0))),))
    mechanism = dl.Mechanism(model, [dl.Point("tip")])
    (a, force, _, _, status, _), system = solve(mechanism, np.array([0.3, 0.5, -0.4]), np.zeros(3), np.zeros(3), method)
    np.testing.assert_allclose(a, system.answer[0], rtol=1e-8)
    np.testing.assert_allclose(force, system.answer[1], rtol=1e-6, atol=1e-15)
    assert status == Status.CONVERGED


# --- a row that is redundant on the manifold only ---------------------------------------------------------------------


def bricard() -> dl.Mechanism:
    """Bricard's linkage along the edges of a cube, rods of 1 m and 1 kg, cut at its fourth hinge: one row too many."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    axes = ("y", "z", "x", "y", "z", "x")

    def branch(hinges: list[int], step: int, first: int) -> list[Joint]:
        joints, before = [], np.zeros(3)
        for k, hinge in enumerate(hinges):
            along = corners[hinge + step] - corners[hinge]
            rod = dl.Inertia.of(1.0, along / 2, (np.eye(3) - np.outer(along, along)) / 12)
            parent, axis = first + k - 1 if k else -1, tuple(np.eye(3)["xyz".index(axes[hinge])])
            place = dl.Placement.of(p=corners[hinge] - before)
            joints.append(Joint(f"hinge {hinge}", Revolute(axis), parent, place, rod))
            before = corners[hinge]
        return joints

    left, right = branch([0, 1, 2], 1, 0), branch([5, 4], -1, 3)
    ends = [Frame("left", 2, dl.Placement.of(p=(0, 0, 1))), Frame("right", 4, dl.Placement.of(p=(1, 0, 0)))]
    model = Model("bricard", (*left, *right), tuple(ends), gravity=(0.0, -9.81, 0.0))
    return dl.Mechanism(model, [dl.Hinge("left", "right", axis="y")])


def swing(mechanism, step, duration, stages, **options):
    """The configuration after a time, by the classical Runge–Kutta method, its stages projected or not."""
    model, q, v, still = mechanism.model, mechanism.neutral(), np.zeros(mechanism.nv), np.zeros(mechanism.nv)

    def slope(q, v):
        if stages:
            q, v = dl.project(mechanism, q, v)
        return v, dl.constrained_dynamics(mechanism, q, v, still, **options).acceleration

    for _ in range(round(duration / step)):
        slopes = [slope(q, v)]
        for share in (0.5, 0.5, 1.0):
            rate, a = slopes[-1]
            slopes.append(slope(dl.integrate(model, q, share * step * rate), v + share * step * a))
        rate, a = (step / 6 * (k1 + 2 * k2 + 2 * k3 + k4) for k1, k2, k3, k4 in zip(*slopes, strict=True))
        q, v = dl.project(mechanism, dl.integrate(model, q, rate), v + a)
    return q


def test_a_rank_that_is_said_keeps_a_redundant_row_from_acting_off_the_manifold():
    """Within steps the row is nearly, not exactly, redundant: it would have forces of its own, as large as any."""
    mechanism = bricard()
    exact = swing(mechanism, 2e-3, 1.0, stages=True)
    assert np.max(np.abs(swing(mechanism, 1e-2, 1.0, stages=True) - exact)) < 1e-8
    assert np.max(np.abs(swing(mechanism, 1e-2, 1.0, stages=False, rank=1e-6) - exact)) < 1e-8
    assert np.max(np.abs(swing(mechanism, 1e-2, 1.0, stages=False) - exact)) > 1e-4


# --- singular values --------------------------------------------------------------------------------------------------
