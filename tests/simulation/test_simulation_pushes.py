"""Wrenches on bodies and kicks: momentum by Newton's laws, items apart from each other, refusals."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusError
from delassus.simulation import Push

QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")
FLYING = dl.Simulation(QUADRUPED, max_contacts=0, max_limits=0)
STANDING = dl.Simulation(QUADRUPED, touching="*_calf_1")
FOOT = QUADRUPED.frames("*calf*")[0].name
RNG = np.random.default_rng(0)
WRENCHES = RNG.normal(size=(5, 6))
GRAVITY = np.array(QUADRUPED.gravity)


def momentum(state):
    """Linear and angular momentum about the world's origin (…, 6)."""
    linear, about_center = np.split(dl.dynamics.centroidal_momentum(QUADRUPED, state.q, state.v), 2, -1)
    return np.concatenate([linear, about_center + np.cross(dl.dynamics.center_of_mass(QUADRUPED, state.q), linear)], -1)


def test_a_wrench_changes_momentum_by_newtons_laws():
    state, mass = FLYING.start(np.tile(HOME, (5, 1))), sum(joint.inertia.mass for joint in QUADRUPED.joints)
    change = momentum(FLYING.step(state, push=Push({FOOT: WRENCHES}))) - momentum(state)
    place = dl.dynamics.frame_placement(QUADRUPED, state.q, frame=FOOT)[1]
    center = dl.dynamics.center_of_mass(QUADRUPED, state.q)
    force, torque = np.split(WRENCHES, 2, -1)
    force, torque = force + mass * GRAVITY, torque + np.cross(place, force) + np.cross(center, mass * GRAVITY)
    np.testing.assert_allclose(change, 1e-3 * np.concatenate([force, torque], -1), atol=1e-9)


def test_a_kick_changes_the_velocity_and_nothing_else():
    state, kick = FLYING.start(HOME), RNG.normal(size=QUADRUPED.nv)
    wanted = FLYING.step(FLYING.start(HOME, kick))
    np.testing.assert_array_equal(FLYING.step(state, push=Push(kick=kick)).v, wanted.v)


def test_items_that_are_not_pushed_do_not_move_differently():
    state = STANDING.start(np.tile(HOME, (4, 1)))
    pushed = STANDING.step(state, push=Push({"trunk": 300.0 * np.eye(6)[1] * (np.arange(4) == 2)[:, None]}))
    calm = STANDING.step(state)
    moved = np.abs(pushed.v - calm.v).max(-1)
    assert moved[2] > 1e-3 and not moved[[0, 1, 3]].any()


def test_pushes_of_a_run_are_those_of_its_steps():
    def push(time, q, v):
        return Push({"trunk": np.array([20.0, 0, 0, 0, 0, 0])}, 0.1 * v) if time > 0.0025 else None

    state = STANDING.start(HOME)
    log = STANDING.run(state, steps=5, push=push)
    for _ in range(5):
        state = STANDING.step(state, push=push(state.time, state.q, state.v))
    np.testing.assert_array_equal(log.q[-1], state.q)


def test_a_push_of_a_run_kicks_once():
    kick = 0.1 * np.eye(QUADRUPED.nv)[0]
    log = FLYING.run(HOME, steps=5, push=Push(kick=kick))
    np.testing.assert_allclose(momentum(log[-1])[0], momentum(log[1])[0], rtol=1e-9)


def test_a_kick_that_is_no_number_freezes_its_item_alone():
    kick = np.zeros((3, QUADRUPED.nv))
    kick[1, 4] = np.nan
    state = FLYING.step(FLYING.start(np.tile(HOME, (3, 1))), push=Push(kick=kick))
    assert state.frozen.tolist() == [False, True, False] and np.isfinite(state.v).all()


@pytest.mark.parametrize(
    ("push", "code"),
    [
        (Push({"nose": np.zeros(6)}), "unknown-frame"),
        (Push({"world": np.zeros(6)}), "unknown-frame"),
        (Push({"trunk": np.zeros(5)}), "wrong-shape"),
        (Push({"trunk": np.zeros((2, 6))}), "batch-mismatch"),
        (Push(kick=np.zeros(3)), "wrong-shape"),
        (Push(np.zeros(6)), "wrong-type"),
        (np.zeros(6), "wrong-type"),
    ],
)
def test_pushes_that_cannot_be_are_refused(push, code):
    with pytest.raises(DelassusError) as caught:
        FLYING.step(FLYING.start(HOME), push=push)
    assert caught.value.code == code
