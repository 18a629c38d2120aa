"""One-sided constraints: ropes that only pull, stops that only push, in all steps of time."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.constraints import Implicit, Unilateral, at_least, at_most
from delassus.model.bundled.build import Assembly, Free, ball
from physics_rooms import rooms
from physics_scenes import G, free_ball
from refusals import refuses

H = 1e-3
BALL = free_ball(0.1, 2.0).model
LENGTH = 0.5
ROPE = dl.Mechanism(BALL, at_most(dl.Distance("body", length=LENGTH)))
"""A ball on a rope from the origin."""


def at(x=0.0, y=0.0, z=0.0):
    return np.array([x, y, z, 0.0, 0.0, 0.0, 1.0])


@rooms("one-sided")
def test_a_slack_rope_does_nothing(room):
    _, q, _ = room.rollout(ROPE, at(z=-0.2), np.zeros(6), H, 50)
    t = H * 50
    np.testing.assert_allclose(q[-1, 2], -0.2 - 0.5 * G * t * t, atol=G * t * H)


@rooms("one-sided")
def test_a_rope_is_slack_where_its_ends_meet(room):
    _, q, _ = room.rollout(ROPE, at(), np.zeros(6), H, 50)
    t = H * 50
    np.testing.assert_allclose(q[-1, 2], -0.5 * G * t * t, atol=G * t * H)


@rooms("one-sided")
def test_a_rope_catches_what_falls_into_it(room):
    _, q, v = room.rollout(ROPE, at(z=-0.2), np.zeros(6), H, 600)
    assert np.linalg.norm(q[..., :3], axis=-1).max() < LENGTH + 1e-3
    np.testing.assert_allclose(q[-1, 2], -LENGTH, atol=1e-4)
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-6)


@rooms("one-sided")
def test_a_ball_on_a_taut_rope_swings_as_a_pendulum(room):
    start = at(x=LENGTH * np.sin(0.1), z=-LENGTH * np.cos(0.1))
    _, q, _ = room.rollout(ROPE, start, np.zeros(6), H, 355)  # a quarter of 2π √(l/g) (1 + θ²/16)
    quarter = 0.5 * np.pi * np.sqrt(LENGTH / G) * (1.0 + 0.01 / 16.0)
    crossing = np.flatnonzero(q[:, 0] < 0.0)[0] * H
    np.testing.assert_allclose(crossing, quarter, atol=2.0 * H)


@rooms("one-sided")
def test_a_rope_adds_no_energy(room):
    rng = np.random.default_rng(0)
    q = np.tile(at(z=-0.3), (32, 1))
    v = np.concatenate([rng.normal(size=(32, 3)), np.zeros((32, 3))], -1)
    _, q, v = room.rollout(ROPE, q, v, H, 400)
    energy = G * q[..., 2] + 0.5 * np.sum(v[..., :3] ** 2, -1) + 0.5 * H * G * v[..., 2]
    rise = energy - np.minimum.accumulate(energy, 0)
    assert rise.max() < 1e-3 * (np.sum(v[..., :3] ** 2, -1).max() + G)


def test_the_tension_of_a_rope_at_rest_is_the_weight():
    step = dl.contact_dynamics(ROPE, at(z=-LENGTH), np.zeros(6), np.zeros(6), time_step=H)
    np.testing.assert_allclose(step.impulse, [2.0 * G * H], rtol=1e-7)


def test_a_rope_between_bodies_keeps_their_momentum():
    assembly = Assembly("two balls")
    for name in ("one", "other"):
        assembly.body(name, Free(), None, (0, 0, 0), [ball(0.1, 2.0)])
    model = replace(assembly.model(), gravity=(0.0, 0.0, 0.0))
    rope = dl.Mechanism(model, at_most(dl.Distance("one", "other", length=LENGTH)))
    sim = dl.Simulation(rope, touching=())
    v = np.array([1.0, 0.2, 0.0, 0, 0, 0, -1.0, 0.1, 0.3, 0, 0, 0])
    q = np.concatenate([at(x=0.1), at(x=-0.1)])
    log = sim.run(q, v, steps=400)
    momentum = log.v[:, :3] + log.v[:, 6:9]  # both without a spin, in axes that stay
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-9)
    assert np.linalg.norm(log.q[:, :3] - log.q[:, 7:10], axis=-1).max() < LENGTH + 2e-3


@rooms("one-sided")
def test_a_stop_that_the_user_writes_holds_a_mass(room):
    above = at_least(Implicit(lambda kinematics, q: q[2:3] - 0.2 - 0.5 * q[0:1], rows=1))  # a slope without friction
    stop = dl.Mechanism(BALL, above)
    _, q, _ = room.rollout(stop, at(z=0.3), np.zeros(6), H, 400)
    assert (q[:, 2] - 0.2 - 0.5 * q[:, 0]).min() > -1e-3
    assert q[-1, 0] < -0.1


@rooms("one-sided")
def test_steps_of_both_sides_are_those_of_the_rod(room):
    rod = dl.Mechanism(
        BALL, [at_most(dl.Distance("body", length=LENGTH)), at_least(dl.Distance("body", length=LENGTH))]
    )
    start, v = at(z=LENGTH), np.array([0.3, 0, 0, 0, 0, 0])
    _, q, _ = room.rollout(rod, start, v, H, 200)
    np.testing.assert_allclose(np.linalg.norm(q[:, :3], axis=-1), LENGTH, atol=1e-3)


def test_rows_of_a_constraint_with_several_become_one_each():
    corner = dl.Mechanism(BALL, at_least(Implicit(lambda kinematics, q: q[:3], rows=3)))
    assert len(corner.one_sided) == 3
    assert corner.m == 0


def test_a_rope_in_the_reduced_contact_set_still_holds():
    robot = dl.load("quadruped")
    trunk = dl.Mechanism(robot, at_most(dl.Distance("trunk", length=0.5)))
    sim = dl.Simulation(trunk, dl.Ground(height=-5.0))
    log = sim.run(robot.posture("home"), steps=400)
    assert np.linalg.norm(log.q[:, :3], axis=-1).max() < 0.5 + 2e-3


@pytest.mark.parametrize(
    "function",
    [
        lambda m: dl.constrained_dynamics(m, at(), np.zeros(6), np.zeros(6)),
        lambda m: dl.simulate_motion(m, at(), times=[0.0, 0.1]),
        lambda m: dl.control.linearize(m, at()),
        lambda m: dl.inverse_dynamics(m, at(), np.zeros(6), np.zeros(6)),
        lambda m: dl.impact(m, at(), np.zeros(6)),
        *(
            lambda m, method=method: method(m, at(), np.zeros(6), np.zeros(6))
            for method in (dl.caba, dl.prox_pv, dl.pv_soft, dl.pv_early, dl.kkt, dl.constrained.three_steps)
        ),
        lambda m: dl.derivatives.constrained_derivatives(m, at(), np.zeros(6), np.zeros(6)),
    ],
)
def test_what_knows_no_steps_refuses_one_sided_constraints(function):
    with refuses("unilateral-constraint", "body"):
        function(ROPE)


def test_a_constraint_without_a_position_has_no_sides():
    with refuses("no-reference"):
        at_least(dl.constraints.Nonholonomic(lambda kinematics, q, v: v[:1], rows=1))


@pytest.mark.parametrize("sign", [0.0, 2.0, "x", None, float("nan")])
def test_a_side_is_plus_or_minus_one(sign):
    with refuses("out-of-range"):
        Unilateral(dl.Distance("body", length=1.0), sign)


def test_only_constraints_have_sides():
    with refuses("wrong-type"):
        at_most("body")
