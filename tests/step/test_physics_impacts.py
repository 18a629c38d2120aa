"""What strikes the ground or something else, in every room that has restitution: closed forms, energy and momentum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from physics_measures import RISE, energy, largest_rise, momentum_error
from physics_rooms import rooms
from physics_scenes import (
    SLAB,
    G,
    Scene,
    at,
    ball_and_box,
    balls_on_a_rail,
    box_on_box,
    free_ball,
    free_box,
    random_turns,
    stick,
)

BALL = free_ball(0.1, 1.0)


def apexes(z: np.ndarray, count: int) -> np.ndarray:
    """The first heights at which a path (times,) turns down, each the top of the parabola through three samples."""
    tops = [k for k in range(1, len(z) - 1) if z[k - 1] < z[k] >= z[k + 1]]
    bent = [z[k + 1] - 2 * z[k] + z[k - 1] for k in tops]
    heights = [z[k] - (z[k + 1] - z[k - 1]) ** 2 / (8 * b) for k, b in zip(tops, bent, strict=True)]
    return np.array(heights[:count])


def dropped(room, h, steps, height, e, **physics):
    """Heights (times, items) of the lowest point of balls that are let go, with restitutions (items,)."""
    q = at(BALL, len(e), 0.1 + height)
    v = np.zeros((len(e), 6))
    v[:, 2] = room.before(h, 0.0, -G)
    _, q, v = room.rollout(BALL.model, q, v, h, steps, **BALL.touch, restitution=np.array(e), **physics)
    return q[..., 2] - 0.1, v


@pytest.mark.parametrize("h", [1e-3, 4e-3])
@rooms("restitution")
def test_a_ball_comes_back_to_the_squares_of_restitution(room, h):
    """Four apexes: e², e⁴, e⁶, e⁸ of the height from which it falls, to 1e-3 of each."""
    e = [0.8, 0.9, 1.0]
    z, _ = dropped(room, h, round(6.0 / h), 1.0, e)
    for k, restitution in enumerate(e):
        ratio = apexes(z[:, k], 4) / restitution ** (2 * np.arange(1, 5))
        assert np.abs(ratio - 1.0).max() <= 1e-3, ratio


@rooms("restitution")
def test_a_ball_that_loses_at_each_bounce_comes_to_rest_on_the_ground(room):
    """After √(2 H/g) (1 + e)/(1 - e) it has bounced infinitely often."""
    z, v = dropped(room, 1e-3, 1400, 0.2, [0.0, 0.3, 0.5])
    np.testing.assert_allclose(z[-1], 0.0, atol=2e-5)  # within what it falls in two steps
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-9)


@rooms("contact")
def test_a_box_that_falls_flat_stays_where_it_lands(room):
    _, q, v = room.rollout(SLAB.model, at(SLAB, 1, 0.04), np.zeros((1, 6)), 1e-3, 100, **SLAB.touch, friction=0.5)
    np.testing.assert_allclose(q[-1, 0, :3], [0.0, 0.0, 0.03], atol=1e-6)
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-5)


# --- a rod that strikes with its tip ----------------------------------------------------------------------------------


def falling_rods(angles, drop, slide=0.0):
    """Rods of 1 m and 1 kg at angles to the ground, whose lower tips touch it, and that move down and along x."""
    rod = stick(radius=1e-6)
    q = at(rod, len(angles))
    turn = Rotation.from_rotvec(np.outer(angles, [0.0, 1.0, 0.0]))  # the tip at +x is the lower one
    q[:, 2] = 0.5 * np.sin(angles) + 1e-6
    q[:, 3:] = turn.as_quat()
    v = np.concatenate([turn.apply([slide, 0.0, -drop], inverse=True), np.zeros((len(angles), 3))], 1)
    return rod, q, v


def struck(room, rod, q, v, **physics):
    """Velocities after one step, those of the centre in the world, and the spin about y."""
    h = 1e-5
    _, q, v = room.rollout(rod.model, q, v, h, 1, **rod.touch, **physics)
    return Rotation.from_quat(q[-1, :, 3:]).apply(v[-1, :, :3]), v[-1, :, 4]


ANGLES = np.array([0.3, 0.7, 1.0, 1.3])


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@rooms("restitution")
def test_a_smooth_tip_leaves_at_the_share_of_its_speed(room, e):
    """λ = (1 + e) m v / (1 + 3 cos² θ); the centre goes on at v - λ/m, and the rod turns at λ (l/2) cos θ / I."""
    linear, spin = struck(room, *falling_rods(ANGLES, 2.0, 1.0), friction=0.0, restitution=e)
    impulse = (1 + e) * 2.0 / (1 + 3 * np.cos(ANGLES) ** 2)
    np.testing.assert_allclose(linear[:, 2], impulse - 2.0, atol=1e-4)
    np.testing.assert_allclose(linear[:, 0], 1.0, atol=1e-4)
    np.testing.assert_allclose(spin, -impulse * 6.0 * np.cos(ANGLES), atol=1e-4)


@rooms("restitution")
def test_a_rough_tip_that_does_not_bounce_stays_where_it_strikes(room):
    """The angular momentum about the tip stays: (I + m l²/4) ω = m v (l/2) cos θ."""
    linear, spin = struck(room, *falling_rods(ANGLES, 2.0), friction=10.0)
    rate = -2.0 * 0.5 * np.cos(ANGLES) * 3.0
    np.testing.assert_allclose(spin, rate, atol=1e-4)
    np.testing.assert_allclose(linear[:, 0], 0.5 * rate * np.sin(ANGLES), atol=1e-4)
    np.testing.assert_allclose(linear[:, 2], 0.5 * rate * np.cos(ANGLES), atol=1e-4)


@rooms("restitution")
def test_a_tip_that_slides_through_a_strike_has_the_friction_of_its_cone(room):
    """Fast along x, the tangential impulse is μ of the normal one; the tip leaves with e of its speed."""
    mu, e, s, c = 0.2, 0.5, np.sin(ANGLES), np.cos(ANGLES)
    linear, spin = struck(room, *falling_rods(ANGLES, 2.0, 20.0), friction=mu, restitution=e)
    normal = (1 + e) * 2.0 / (1 + 3 * c**2 - 3 * mu * s * c)  # the tip is at (c, -s)/2 from the centre
    np.testing.assert_allclose(20.0 - linear[:, 0], mu * normal, atol=1e-3)
    np.testing.assert_allclose(linear[:, 2] + 2.0, normal, atol=1e-3)
    np.testing.assert_allclose(spin, -6.0 * normal * (c - mu * s), atol=1e-3)


def tip_strikes(count: int, seed: int = 0):
    """Rods that strike with one tip, turned, thrown and spinning at random."""
    rng, rod = np.random.default_rng(seed), stick()
    q = at(rod, count)
    pitch, yaw = rng.uniform(0.05, 1.5, count), rng.uniform(-np.pi, np.pi, count)
    q[:, 3:] = (Rotation.from_euler("z", yaw[:, None]) * Rotation.from_euler("y", pitch[:, None])).as_quat()
    q[:, 2] = 0.5 * np.sin(pitch) + 0.01
    v = np.concatenate([rng.normal(size=(count, 3)), rng.normal(size=(count, 3)) * [0.0, 3.0, 3.0]], 1)
    down = Rotation.from_quat(q[:, 3:]).apply([0.0, 0.0, 1.0], inverse=True)
    v[:, :3] -= down * rng.uniform(1.0, 4.0, (count, 1))
    return rod, q, v


@rooms("restitution")
def test_no_rod_gains_energy_when_it_strikes_with_friction(room):
    rod, q, v = tip_strikes(2000)
    _, q, v = room.rollout(rod.model, q, v, 1e-4, 1, **rod.touch, friction=1.0, restitution=0.9)
    T = dl.kinetic_energy(rod.model, q, v)
    gain = T[1] / T[0] - 1.0
    assert (gain > 1e-6).sum() == 0, f"{(gain > 1e-6).sum()} gain up to {gain.max()}"


@pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")
@rooms("restitution")
def test_rods_that_are_thrown_on_the_ground_gain_no_energy(room, h):
    rng, rod, n = np.random.default_rng(1), stick(gravity=G), 64
    q, v = at(rod, n, 0.8), rng.normal(size=(n, 6)) * [1.0, 1, 1, 0, 4, 4]
    q[:, 3:] = random_turns(rng, n)
    _, q, v = room.rollout(rod.model, q, v, h, round(1.0 / h), **rod.touch, friction=1.0, restitution=0.9)
    rise = largest_rise(*energy(room, rod.model, h, q, v))
    assert rise <= RISE[h]


@pytest.mark.parametrize("friction", [0.0, 0.7])
@rooms("restitution")
def test_a_needle_that_is_thrown_and_loses_nothing_gains_nothing(room, friction):
    """50 × 1 × 1 mm at 1 m/s, e = 1: its spins are fast."""
    needle, rng, n, h = free_box((0.05, 0.001, 0.001), 4e-4), np.random.default_rng(0), 128, 1e-3
    q, v = at(needle, n, 0.05), np.zeros((n, 6))
    q[:, 3:], v[:, :3] = random_turns(rng, n), rng.normal(size=(n, 3))
    v[:, :3] /= np.linalg.norm(v[:, :3], axis=1, keepdims=True)
    _, q, v = room.rollout(needle.model, q, v, h, 400, **needle.touch, friction=friction, restitution=1.0)
    rise = largest_rise(*energy(room, needle.model, h, q, v))
    assert rise <= RISE[h]


# --- bodies that strike each other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
@rooms("restitution", "collision")
def test_two_balls_share_their_momentum_as_restitution_says(room, e):
    """v₁ = (m₁ u₁ + m₂ u₂ - m₂ e (u₁ - u₂))/(m₁ + m₂), and so on."""
    m1, m2, u1, u2 = 1.0, 3.0, 2.0, -0.5
    scene = balls_on_a_rail([m1, m2])
    q, v = np.array([[0.0, 0.3]]), np.array([[u1, u2]])
    _, _, v = room.rollout(scene.model, q, v, 1e-3, 100, **scene.touch, friction=0.0, restitution=e)
    mean = (m1 * u1 + m2 * u2) / (m1 + m2)
    exact = [mean - m2 * e * (u1 - u2) / (m1 + m2), mean + m1 * e * (u1 - u2) / (m1 + m2)]
    np.testing.assert_allclose(v[-1, 0], exact, atol=1e-8)


def cradle(room, gap: float, **physics):
    """Velocities after the first of five equal balls has struck the others, which are a gap apart."""
    scene = balls_on_a_rail([1.0] * 5)
    q = np.array([[-0.11, *(0.2 + gap) * np.arange(4) + 0.1]])
    v = np.array([[1.0, 0, 0, 0, 0]])
    _, _, v = room.rollout(scene.model, q, v, 1e-3, 200, **scene.touch, friction=0.0, restitution=1.0, **physics)
    return v[-1, 0]


@rooms("restitution", "collision")
def test_in_a_cradle_of_balls_a_little_apart_the_last_one_leaves(room):
    np.testing.assert_allclose(cradle(room, 0.01), [0.0, 0, 0, 0, 1.0], atol=1e-8)


@rooms("reflections")
def test_in_a_cradle_of_balls_that_touch_the_last_one_leaves(room):
    np.testing.assert_allclose(cradle(room, 0.0, options={"impacts": "reflections"}), [0.0, 0, 0, 0, 1.0], atol=1e-8)


def off_centre_strikes(count: int):
    """Balls above boxes that turn, which they strike beside their centres."""
    rng, scene = np.random.default_rng(0), ball_and_box()
    q = np.tile(scene.model.neutral(), (count, 1))
    q[:, 7:10] = [0.0, 0.0, 0.25]
    q[:, 7:9] += rng.uniform(-0.08, 0.08, (count, 2))
    v = 0.5 * rng.normal(size=(count, 12))
    v[:, 8] -= 3.0
    return scene, q, v


@pytest.mark.parametrize("e", [0.0, 0.8])
@pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")
@rooms("restitution", "collision", "free")
def test_bodies_that_strike_each_other_keep_their_linear_momentum(room, h, e):
    scene, q, v = off_centre_strikes(16)
    start = v[:, 8]
    t, q, v = room.rollout(scene.model, q, v, h, round(0.1 / h), **scene.touch, friction=0.5, restitution=e)
    assert np.all(np.abs(v[-1, :, 8] - start) > 0.5)  # all have struck
    error = momentum_error(scene.model, t, q, v)
    assert error <= 1e-12


@pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")
@rooms("restitution", "collision", "free")
def test_bodies_that_strike_each_other_gain_no_energy(room, h):
    scene, q, v = off_centre_strikes(16)
    e = np.linspace(0.0, 1.0, 16)
    _, q, v = room.rollout(scene.model, q, v, h, round(0.1 / h), **scene.touch, friction=0.5, restitution=e)
    rise = largest_rise(*energy(room, scene.model, h, q, v))
    assert rise <= RISE[h]


@rooms("collision", "box")
def test_bricks_that_meet_face_to_face_go_on_together(room):
    """Plastic: m₁ u₁ + m₂ u₂ is shared, and stays to the digits."""
    stack = box_on_box(1.0, 3.0)
    scene = Scene(replace(stack.model, gravity=(0.0, 0.0, 0.0)), stack.contacts[1:], stack.colliding)
    q = np.tile(scene.model.neutral(), (1, 1))
    q[0, 7:10] = [0.0, 0.0, 0.23]
    v = np.zeros((1, 12))
    v[0, 2], v[0, 8] = 0.5, -1.0
    t, q, v = room.rollout(scene.model, q, v, 1e-3, 60, **scene.touch, friction=0.5)
    error = momentum_error(scene.model, t, q, v)
    assert error <= 1e-12
    np.testing.assert_allclose(v[-1, 0, [2, 8]], (0.5 * 1.0 - 1.0 * 3.0) / 4.0, atol=1e-7)
