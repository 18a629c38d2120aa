"""Starts deep in the ground of robots that joints or loops hold: moved out as far as these allow, or refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK
from delassus.model import Inertia, Joint, Model, Placement, Prismatic, Revolute
from delassus.model.parts import Geometry
from refusals import refuses


def link(name: str, parent: int, p: tuple[float, float, float], length: float) -> tuple[Joint, Geometry]:
    """A stick that hangs from a hinge across x and z."""
    middle = Placement.of(p=(0, 0, -length / 2))
    inertia = Inertia.of(1.0, (0, 0, -length / 2), rotational=np.diag((length**2 / 12, length**2 / 12, 1e-3)))
    shape = Geometry(name, parent + 1, middle, "capsule", (0.02, length), "collision")
    return Joint(name, Revolute((0.0, 1.0, 0.0)), parent, Placement.of(p=p), inertia), shape


def pendulum(height: float = 0.5, **limits: tuple[float]) -> Model:
    joint, shape = link("stick", -1, (0, 0, height), 0.8)
    return Model("pendulum", (replace(joint, **limits),), geometries=(shape,))


def cart() -> Model:
    """On a rail at the ground's height, half in the ground, with two poles."""
    rail = Joint("rail", Prismatic((1.0, 0.0, 0.0)), inertia=Inertia(mass=10.0))
    lower, upper = link("lower", 0, (0, 0, 0), 0.6), link("upper", 1, (0, 0, -0.6), 0.6)
    box = Geometry("cart", 0, Placement.of(), "box", (0.2, 0.2, 0.2), "collision")
    return Model("cart", (rail, lower[0], upper[0]), geometries=(box, lower[1], upper[1]))


FOUR_BAR = dl.load("four_bar")


@pytest.mark.parametrize("angle", [0.0, 1e-9, -0.3, 0.9])
def test_a_pendulum_that_reaches_into_the_ground_starts_beside_it(angle):
    sim = dl.Simulation(pendulum())
    with pytest.warns(
        dl.DelassusWarning, match="the shape 'stick' penetrates the ground by .* m. The joints were moved"
    ):
        log = sim.run([angle], steps=300)
    assert abs(log.q).max() == pytest.approx(math.acos(0.48 / 0.8), abs=1e-6)
    assert sim.contacts(log.q).gap.min() > -1e-8
    assert log.energy.max() - log.energy[0] < 1e-8


def test_joint_limits_hold_what_is_moved_out_of_the_ground():
    sim = dl.Simulation(pendulum(lower=(-0.5,), upper=(0.5,)))
    with pytest.warns(dl.DelassusWarning, match="penetrates the ground by 0.222 m, and the joints cannot move it out"):
        assert abs(sim.start([0.1]).q[0]) == pytest.approx(0.5)


@pytest.mark.parametrize("q0", [(0.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, 0.3, 2.0), (0.0, math.pi - 0.1, 0.0)])
def test_what_a_rail_holds_in_the_ground_is_not_thrown_about(q0):
    sim = dl.Simulation(cart())
    with pytest.warns(dl.DelassusWarning, match="'cart' penetrates the ground by 0.1 m, and the joints cannot move"):
        log = sim.run(q0, steps=1000)
    assert log.energy.max() - log.energy[0] < 1e-3
    assert np.abs(log.q).max() < 10.0


def test_a_four_bar_is_moved_out_of_the_ground_with_its_loop_closed():
    """The crank is 0.15 m long, and its end is where the coupler is lowest."""
    sim = dl.Simulation(FOUR_BAR, dl.Ground(height=0.1), touching="coupler_0")
    q0 = FOUR_BAR.posture("home") + np.array([1.2, -1.0, 0.5])
    with pytest.warns(dl.DelassusWarning, match="'coupler_0' penetrates the ground by .* m. The joints were moved"):
        log = sim.run(q0, steps=300)
    assert sim.contacts(log.q).gap.min() > -1e-8
    assert log.drift.max() < 1e-10
    assert log.energy.max() - log.energy[0] < 1e-6


@pytest.mark.parametrize("height", [0.05, 0.3])
def test_loops_stay_closed_while_steps_push_against_what_cannot_move(height):
    sim = dl.Simulation(FOUR_BAR, dl.Ground(height=height))
    below = dl.Simulation(FOUR_BAR, dl.Ground(height=-1.0)).start(FOUR_BAR.posture("home"))
    log = sim.run(below, steps=300)
    assert log.drift.max() < 1e-10
    assert log.energy.max() - log.energy[0] < 0.5 * abs(log.energy[0])


def test_a_robot_is_lifted_out_of_hills_as_it_is():
    rng = np.random.default_rng(0)
    sim = dl.Simulation(BRICK, dl.Ground(heights=0.3 * rng.normal(size=(40, 40)), spacing=0.3))
    q0 = np.concatenate([rng.uniform(-4.0, 4.0, (64, 2)), rng.uniform(-0.5, 0.5, (64, 1)), rng.normal(size=(64, 4))], 1)
    q0[:, 3:] /= np.linalg.norm(q0[:, 3:], axis=-1, keepdims=True)
    q = sim.start(q0).q
    assert sim.contacts(q).gap.min() > -1e-9
    np.testing.assert_allclose(q[:, [0, 1, 3, 4, 5, 6]], q0[:, [0, 1, 3, 4, 5, 6]], atol=1e-15)


@pytest.mark.parametrize("model", [pendulum(), cart()])
def test_starts_in_the_ground_are_refused_where_they_are_not_repaired(model):
    with refuses("constraints-violated"):
        dl.Simulation(model).start(np.zeros(model.nq), repair=False)


def test_only_the_items_that_are_in_the_ground_are_moved():
    sim = dl.Simulation(pendulum())
    q0 = np.array([[1.5], [0.1], [3.0], [-0.7]])
    with pytest.warns(dl.DelassusWarning, match="in environment 1"):
        q = sim.start(q0).q
    np.testing.assert_array_equal(q[[0, 2]], q0[[0, 2]])
    np.testing.assert_allclose(q[[1, 3], 0], [math.acos(0.6), -math.acos(0.6)], atol=1e-6)


def test_what_is_no_configuration_is_neither_moved_nor_refused_for_its_depth():
    sim = dl.Simulation(pendulum())
    for q0 in ([math.nan], [[math.nan], [1.5]]):
        np.testing.assert_array_equal(sim.start(q0, repair=False).q, q0)


def test_an_item_is_moved_to_where_it_would_be_alone():
    sim, q0 = dl.Simulation(cart()), np.array([[0, 0, 0], [0, 3.0, 0], [0, 0.3, 2.0], [0, 0, 0.1]])
    with pytest.warns(dl.DelassusWarning):
        np.testing.assert_array_equal(sim.start(q0).q[1:3], np.stack([sim.start(q).q for q in q0[1:3]]))


def test_bodies_that_start_inside_of_each_other_are_taken_apart_or_refused():
    pair = BRICK.attach(BALL, "world", prefix="second_")
    shapes = [g.name for g in pair.geometries]
    sim = dl.Simulation(pair, dl.Ground(height=-1.0), colliding=[tuple(shapes)])
    q0 = np.array([0, 0, 0, 0, 0, 0, 1.0, 0.02, 0.0, 0.1, 0, 0, 0, 1])
    with refuses("constraints-violated"):
        sim.start(q0, repair=False)
    with pytest.warns(dl.DelassusWarning, match="The joints were moved"):
        q = sim.start(q0).q
    assert sim.contacts(q).gap.min() > -1e-8


def test_a_start_meets_what_moves_in_time_at_its_own_time():
    lifted = dl.Mechanism(BALL, dl.Implicit(lambda kinematics, q, t: q[2:3] - 0.5 - 0.1 * t, rows=1))
    sim = dl.Simulation(lifted)
    at = sim.run([0, 0, 0.5, 0, 0, 0, 1.0], steps=100)[-1]
    again = sim.start(at.q, at.v, time=at.time, repair=False)
    np.testing.assert_allclose(again.q, at.q, atol=1e-9)
    np.testing.assert_allclose(again.v, at.v, atol=1e-9)
