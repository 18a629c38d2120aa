"""Robots on the ground against closed forms: sticking, sliding, rolling, striking, standing."""

import math

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK, G, H, body
from refusals import refuses


def slope(angle: float, friction: float) -> dl.Ground:
    """Rises along x."""
    return dl.Ground(friction=friction, normal=(-math.sin(angle), 0.0, math.cos(angle)))


def on_slope(angle: float, height: float) -> np.ndarray:
    """A configuration with its base's z along the slope's normal."""
    n = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    return np.array([*(height * n), 0.0, -math.sin(angle / 2), 0.0, math.cos(angle / 2)])


@pytest.mark.parametrize("angle", [0.0, 0.3, 0.6])
def test_a_box_sticks_to_a_slope_within_its_friction(angle):
    sim = dl.Simulation(BRICK, slope(angle, 0.7), H)
    log = sim.run(on_slope(angle, 0.05), steps=300)
    assert np.abs(log.v[1:, :3]).max() < 1e-9
    assert np.abs(log.q[-1, :3] - log.q[0, :3]).max() < 1e-9
    assert not log.status.any()


def test_a_box_slides_down_a_slope_with_what_friction_leaves():
    angle, friction = 0.6, 0.3
    sim = dl.Simulation(BRICK, slope(angle, friction), H)
    log = sim.run(on_slope(angle, 0.05), steps=300)
    wanted = -G * (math.sin(angle) - friction * math.cos(angle))
    np.testing.assert_allclose(log.v[-1, 0] / log.time[-1], wanted, rtol=1e-9)


def test_a_sliding_box_stops_where_friction_has_used_up_its_energy():
    sim = dl.Simulation(BRICK, dl.Ground(friction=0.4), H)
    log = sim.run(np.array([0, 0, 0.05, 0, 0, 0, 1.0]), np.array([5.0, 0, 0, 0, 0, 0]), steps=1400)
    assert log.q[-1, 0] == pytest.approx(5.0**2 / (2 * 0.4 * G), rel=1e-3)  # v₀ h/2 is 0.08 % of it
    assert np.abs(log.v[-1]).max() < 1e-9


def test_a_sliding_ball_ends_up_rolling_at_five_sevenths():
    sim = dl.Simulation(BALL, dl.Ground(friction=0.3), H)
    log = sim.run(np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 0, 0, 0]), steps=200)
    R = _rotation(log.q[-1, 3:])
    assert (R @ log.v[-1, :3])[0] == pytest.approx(5.0 / 7.0, rel=1e-6)
    assert np.diff(log.energy).max() < 1e-12


def _rotation(quaternion):
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(quaternion).as_matrix()


@pytest.mark.parametrize("restitution", [0.5, 0.8, 1.0])
def test_a_ball_bounces_as_high_as_its_closed_form(restitution):
    """e² of the height with every bounce, wherever in a step the ball meets the ground."""
    heights = np.linspace(0.3, 2.0, 16)
    q0 = np.tile([0, 0, 0, 0, 0, 0, 1.0], (16, 1))
    q0[:, 2] = 0.1 + heights
    log = dl.Simulation(BALL, dl.Ground(restitution=restitution), H).run(q0, steps=2500)
    z = log.q[..., 2] - 0.1
    for item, height in enumerate(heights):
        inner = z[1:-1, item]
        peaks = inner[(inner > z[:-2, item]) & (inner >= z[2:, item])][:6]
        wanted = height * restitution ** (2.0 * np.arange(1, len(peaks) + 1))
        np.testing.assert_allclose(peaks, wanted, atol=G * H * H)  # between two steps there may be a higher point


def test_a_ball_that_bounces_comes_to_rest_and_gains_no_energy():
    sim = dl.Simulation(BALL, dl.Ground(restitution=0.6), H)
    log = sim.run(np.array([0, 0, 0.5, 0, 0, 0, 1.0]), steps=2500)
    assert np.abs(log.v[-1]).max() < 1e-9 and abs(log.q[-1, 2] - 0.1) < 1e-6
    # Semi-implicit steps of a free fall lose and gain m g² h²/2 of energy each, which is no motion.
    assert np.diff(log.energy).max() < 3.0 * G * G * H * H


def test_what_starts_in_the_ground_is_taken_out_without_a_throw():
    sim = dl.Simulation(BALL, dl.Ground(), H)
    log = sim.run(np.array([0, 0, 0.0995, 0, 0, 0, 1.0]), steps=100)
    assert log.q[-1, 2] == pytest.approx(0.1, abs=2e-9)
    assert np.abs(log.v).max() < 1e-9


@pytest.mark.parametrize(
    ("shape", "size", "height"),
    [
        ("capsule", (0.05, 0.2), 0.15),
        ("cylinder", (0.05, 0.2), 0.1),
        ("ellipsoid", (0.1, 0.2, 0.05), 0.05),
        ("box", (0.1, 0.2, 0.3), 0.15),
        ("sphere", (0.07,), 0.07),
    ],
)
def test_gaps_are_those_of_the_lowest_points(shape, size, height):
    sim = dl.Simulation(body(shape, size, 1.0, (0.1, 0.1, 0.1)), dl.Ground(height=0.2))
    found = sim.contacts(np.array([0.3, -0.2, 1.0, 0, 0, 0, 1.0]))
    assert found.gap.min() == pytest.approx(0.8 - height, abs=1e-15)
    assert found.body[0] == "base" and found.shape[0] == shape
    np.testing.assert_allclose(found.point[..., 2] - 0.2, found.gap, atol=1e-15)


def test_a_height_field_that_is_a_slope_is_that_slope():
    angle = 0.2
    x = 0.1 * (np.arange(21) - 10)
    field = dl.Ground(heights=np.tile(math.tan(angle) * x[:, None], (1, 21)), spacing=0.1)
    q = np.array([0.13, 0.07, 0.18, *np.array([0.2, 0.3, -0.1, 0.9]) / math.sqrt(0.95)])
    for model in (BRICK, BALL):
        on_field = dl.Simulation(model, field).contacts(q)
        on_plane = dl.Simulation(model, slope(angle, 0.7)).contacts(q)
        for one, other in zip(on_field[:3], on_plane[:3], strict=True):
            np.testing.assert_allclose(one[: len(other)], other, atol=1e-14)
        others = on_field.gap[len(on_plane.gap) :]  # vertices and edges of the field are no nearer than its faces
        assert np.all(others >= on_plane.gap.min() - 1e-14)


def test_a_robot_that_nothing_touches_falls_freely():
    log = dl.Simulation(BALL, max_contacts=0).run(np.array([0, 0, 0, 0, 0, 0, 1.0]), steps=50)
    np.testing.assert_allclose(log.v[:, 2], -G * log.time, atol=1e-12)


def test_a_body_that_spins_keeps_its_momentum():
    log = dl.Simulation(BALL.with_gravity((0, 0, 0)), max_contacts=0).run(
        np.array([0, 0, 0, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 3.0, 20.0, 1.0]), steps=500
    )
    np.testing.assert_allclose(log.q[-1, :3], [0.5, 0, 0], atol=1e-12)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"time_step": 0.0}, ("time-step-out-of-range",)),
        ({"time_step": 7.0}, ("time-step-out-of-range", "7.0")),
        ({"substeps": 0}, ("out-of-range", "substeps")),
        ({"max_contacts": 2.5}, ("not-a-whole-number",)),
        ({"touching": "boks"}, ("unknown-shape", "box")),
    ],
)
def test_simulations_that_make_no_sense_are_refused(options, refusal):
    with refuses(*refusal):
        dl.Simulation(BRICK, dl.Ground(), **options)


@pytest.mark.parametrize("ground", [{"friction": -1}, {"restitution": 2}, {"normal": (0, 0, 0)}, {"heights": [1, 2]}])
def test_grounds_that_make_no_sense_are_refused(ground):
    with pytest.raises(dl.DelassusError):
        dl.Ground(**ground)


def test_shapes_of_no_size_are_refused():
    with refuses("out-of-range"):
        dl.Simulation(body("sphere", (0.0,), 1.0, (1, 1, 1)))


@pytest.mark.parametrize(
    ("q0", "v0", "control", "refusal"),
    [
        (np.zeros(6), None, None, ("wrong-shape",)),
        (np.zeros(7), np.zeros(5), None, ("wrong-shape",)),
        (np.zeros((3, 7)), np.zeros((2, 6)), None, ("batch-mismatch",)),
        (np.zeros(7), None, np.zeros((10, 3)), ("wrong-shape", "controls")),
    ],
)
def test_arrays_of_wrong_shapes_are_refused(q0, v0, control, refusal):
    with refuses(*refusal):
        dl.Simulation(BALL).run(q0, v0, control, steps=2)


def test_a_start_deep_in_the_ground_is_lifted_or_refused():
    sim = dl.Simulation(BALL)
    q0 = np.array([0, 0, -0.5, 0, 0, 0, 1.0])
    assert sim.start(q0).q[2] == pytest.approx(0.1)
    with refuses("constraints-violated", "0.6"):
        sim.start(q0, repair=False)


def test_a_tumbling_body_keeps_its_energy():
    brick = body("box", (0.3, 0.2, 0.1), 1.0, (0.01, 0.02, 0.03)).with_gravity((0.0, 0.0, 0.0))
    log = dl.Simulation(brick, max_contacts=0).run(
        np.array([0, 0, 0, 0, 0, 0, 1.0]), np.array([0, 0, 0, 0.1, 10.0, 0.1]), steps=2000
    )
    np.testing.assert_allclose(log.energy, log.energy[0], rtol=1e-4)
