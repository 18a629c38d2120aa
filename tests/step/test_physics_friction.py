"""Friction and rest, in every room with contacts: slopes, slides, rolls and stacks."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from physics_rooms import rooms
from physics_scenes import SLAB, G, at, box_on_box, free_ball

BALL = free_ball(0.1, 3.0)
H = 1e-3


def on_slope(scene, height: float, angles):
    """Configurations at a height above slopes that rise along x by angles (items,), and the slopes' normals."""
    up = np.stack([-np.sin(angles), np.zeros(len(angles)), np.cos(angles)], 1)
    q = at(scene, len(angles))
    q[:, :3] = height * up
    q[:, 3:] = Rotation.from_rotvec(np.outer(angles, [0.0, -1.0, 0.0])).as_quat()
    return q, up


def items(room, *arrays):
    """All items, or the last one where steps are slow."""
    return arrays if room.batch > 1 else tuple(np.asarray(x)[-1:] for x in arrays)


# --- slopes -----------------------------------------------------------------------------------------------------------


@rooms("friction", "box")
def test_a_box_on_a_slope_sticks_below_the_angle_of_friction(room):
    """tan θ = 0.98 μ. What creeps is what solvers leave: 1e-8 of what closes the gaps of upper corners."""
    mu = np.linspace(0.1, 1.0, 8)
    mu, angles = items(room, mu, np.arctan(0.98 * mu))
    q0, normal = on_slope(SLAB, 0.03, angles)
    _, q, v = room.rollout(SLAB.model, q0, np.zeros((len(mu), 6)), H, 200, **SLAB.touch, friction=mu, normal=normal)
    creep, moved = np.abs(v[50:]).max(), np.abs(q[-1] - q[0]).max()
    assert creep <= 1e-5
    assert moved <= 1e-6


@rooms("friction", "box")
def test_a_box_on_a_slope_slides_above_the_angle_of_friction(room):
    """tan θ = 1.02 μ and more: a = g (sin θ - μ cos θ), and nothing else moves."""
    mu = np.linspace(0.0, 0.8, 8)
    mu, angles = items(room, mu, np.arctan(np.maximum(1.02 * mu, 0.1)))
    q0, normal = on_slope(SLAB, 0.03, angles)
    t, q, v = room.rollout(SLAB.model, q0, np.zeros((len(mu), 6)), H, 200, **SLAB.touch, friction=mu, normal=normal)
    slides = (v[-1, :, 0] - v[100, :, 0]) / (t[-1] - t[100])
    np.testing.assert_allclose(slides, -G * (np.sin(angles) - mu * np.cos(angles)), atol=1e-5)
    np.testing.assert_allclose(v[-1, :, 1:], 0.0, atol=1e-5)
    np.testing.assert_allclose(np.sum(q[-1, :, :3] * normal, -1), 0.03, atol=1e-6)


@rooms("friction", "free")
def test_a_ball_rolls_down_a_slope_or_slips(room):
    """a = 5/7 g sin θ as long as tan θ ≤ 7/2 μ, and g (sin θ - μ cos θ) beyond."""
    angles, mu = np.array([0.2, 0.5, 0.8, 1.0]), np.array([0.7, 0.3, 0.2, 0.1])
    _, up = on_slope(BALL, 0.1, angles)
    q0 = at(BALL, 4)
    q0[:, :3] = 0.1 * up
    t, q, v = room.rollout(BALL.model, q0, np.zeros((4, 6)), H, 300, **BALL.touch, friction=mu, normal=up)
    world = Rotation.from_quat(q[..., 3:].reshape(-1, 4)).apply(v[..., :3].reshape(-1, 3)).reshape(v[..., :3].shape)
    down = np.stack([-np.cos(angles), np.zeros(4), -np.sin(angles)], 1)
    speed = np.sum(world * down, -1)
    rolls = np.tan(angles) <= 3.5 * mu
    exact = np.where(rolls, 5 / 7 * G * np.sin(angles), G * (np.sin(angles) - mu * np.cos(angles)))
    assert rolls.tolist() == [True, True, False, False]
    np.testing.assert_allclose((speed[-1] - speed[100]) / (t[-1] - t[100]), exact, rtol=1e-3)


# --- slides and rolls -------------------------------------------------------------------------------------------------


@rooms("friction", "box")
def test_a_box_that_slides_stops_where_friction_has_used_its_energy(room):
    """At v₀²/(2 μ g), within what it goes in half a step."""
    speed, mu = items(room, np.array([0.5, 1.0, 2.0]), np.array([0.3, 0.5, 0.8]))
    v0 = np.zeros((len(speed), 6))
    v0[:, 0] = speed
    _, q, v = room.rollout(SLAB.model, at(SLAB, len(speed), 0.03), v0, H, 300, **SLAB.touch, friction=mu)
    off = np.abs(q[-1, :, 0] - speed**2 / (2 * mu * G)) / (speed * H)
    assert off.max() <= 0.51
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-7)


@rooms("friction", "free")
def test_a_ball_that_slides_rolls_at_five_sevenths_of_its_speed(room):
    v0 = np.array([[2.0, 0, 0, 0, 0, 0]])
    _, q, v = room.rollout(BALL.model, at(BALL, 1, 0.1), v0, H, 400, **BALL.touch, friction=0.4)
    speed = Rotation.from_quat(q[-1, 0, 3:]).apply(v[-1, 0, :3])[0]
    assert speed == pytest.approx(10 / 7, rel=1e-3)


@rooms("friction", "free")
def test_a_ball_with_back_spin_turns_round(room):
    """v = (5 v₀ - 2 r ω₀)/7 in the end: it comes back where it spun fast enough."""
    v0 = np.array([[1.0, 0, 0, 0, -40.0, 0]])
    _, q, v = room.rollout(BALL.model, at(BALL, 1, 0.1), v0, H, 800, **BALL.touch, friction=0.5)
    speed = Rotation.from_quat(q[-1, 0, 3:]).apply(v[-1, 0, :3])[0]
    assert speed == pytest.approx((5 * 1.0 - 2 * 0.1 * 40.0) / 7, rel=2e-3)


# --- stacks -----------------------------------------------------------------------------------------------------------


UNEQUAL = [pytest.param(pair, marks=pytest.mark.slow) for pair in ((1.0, 1000.0), (1000.0, 1.0))]


@pytest.mark.parametrize("masses", [(1.0, 1.0), *UNEQUAL], ids=str)
@rooms("contact", "collision", "box")
def test_a_stack_of_two_boxes_rests(room, masses):
    scene = box_on_box(*masses)
    q0 = scene.model.neutral()[None]
    q0[0, [2, 9]] = 0.1, 0.3
    _, q, v = room.rollout(scene.model, q0, np.zeros((1, 12)), H, 200, **scene.touch, friction=0.5)
    np.testing.assert_allclose(v[100:], 0.0, atol=1e-6)
    np.testing.assert_allclose(q[-1], q0, atol=1e-6)
