"""Free bodies that spin in flight, in every room: energy, world momentum, and closed forms of tops."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

import delassus as dl
from delassus.model.bundled.build import Part, box
from physics_measures import RISE, angular_momentum_error, energy, largest_drift, momentum_error
from physics_rooms import ROOMS, rooms
from physics_scenes import Scene, at, free_body, free_box, random_turns

STICK = free_box((1.0, 0.02, 0.02), 0.1, gravity=0.0)
BODIES = {
    "stick": STICK,
    "plate": free_box((0.4, 0.3, 0.01), 0.5, gravity=0.0),
    "plank": free_box((0.6, 0.2, 0.05), 1.0, gravity=0.0),
    "cube": free_box((0.2, 0.2, 0.2), 1.0, gravity=0.0),
}
each_body = pytest.mark.parametrize("name", BODIES)
each_step = pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")


def spinning(scene: Scene, count: int, speed: float, seed: int = 0):
    """Turned at random, thrown, and spinning at a speed [rad/s]."""
    rng = np.random.default_rng(seed)
    q = at(scene, count)
    q[:, 3:] = random_turns(rng, count)
    spin = rng.normal(size=(count, 3))
    v = np.concatenate([rng.normal(size=(count, 3)), speed * spin / np.linalg.norm(spin, axis=1, keepdims=True)], 1)
    return q, v


def assert_second_order(errors, rounding=1e-6):
    """Each halving of the step divides errors by 3.5 at least, until they are as small as solvers' tolerances."""
    ratios = [coarse / max(fine, rounding) for coarse, fine in pairwise(errors)]
    small = [fine <= rounding for fine in errors[1:]]
    assert all(ratio >= 3.5 or done for ratio, done in zip(ratios, small, strict=True)), f"{errors} {ratios}"


# --- energy and momentum ----------------------------------------------------------------------------------------------


@each_step
@each_body
@rooms("spin")
def test_a_body_that_spins_in_flight_keeps_its_energy(room, name, h):
    """At 20 rad/s for 1 s, or 0.2 s where steps are slow."""
    scene, duration = BODIES[name], 1.0 if room.batch > 1 else 0.2
    _, q, v = room.rollout(scene.model, *spinning(scene, min(16, room.batch), 20.0), h, round(duration / h))
    drift = largest_drift(*energy(room, scene.model, h, q, v))
    assert drift <= RISE[h]


@pytest.mark.parametrize(("spin", "h", "steps"), [((500.0, 5.0, 0.0), 1e-3, 400), ((50.0, 5.0, 0.0), 1e-2, 100)])
@rooms("spin")
def test_a_stick_that_spins_about_its_axis_keeps_its_energy(room, spin, h, steps):
    _, q, v = room.rollout(STICK.model, at(STICK, 1), np.array([[0.0, 0, 0, *spin]]), h, steps)
    drift, bound = largest_drift(*energy(room, STICK.model, h, q, v)), 1e-3 if h <= 1e-3 else 1e-2
    assert drift <= bound


@each_body
@rooms("spin")
def test_the_angular_momentum_of_a_free_body_is_of_second_order(room, name):
    scene, errors = BODIES[name], []
    q0, v0 = spinning(scene, min(16, room.batch), 10.0)
    for h in (4e-3, 2e-3, 1e-3):
        _, q, v = room.rollout(scene.model, q0, v0, h, round(0.2 / h))
        errors.append(angular_momentum_error(scene.model, q, v))
    assert_second_order(errors)


def lopsided(gravity: float) -> dl.Model:
    """A plank whose centre of mass is not at its joint's frame."""
    return free_body(box((0.6, 0.2, 0.05), 1.0, at=(0.2, -0.1, 0.15)), gravity).model


@pytest.mark.parametrize("gravity", [0.0, 9.81])
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "lopsided"])
@each_step
@rooms("free")
def test_the_linear_momentum_of_a_spinning_throw_is_exact(room, h, centred, gravity):
    scene = free_box((0.6, 0.2, 0.05), 1.0, gravity) if centred else Scene(lopsided(gravity))
    t, q, v = room.rollout(scene.model, *spinning(scene, 16, 10.0), h, round(0.5 / h))
    error, bound = momentum_error(scene.model, t, q, v), max(1e-12, room.tolerance)
    assert error <= bound


@pytest.mark.parametrize("centred", [True, False], ids=["centred", "lopsided"])
@each_step
@rooms("free")
def test_the_centre_of_mass_of_a_spinning_throw_flies_on_a_parabola(room, h, centred):
    """Velocities of rooms that lag are told half a step before, which makes the parabola of the centre exact."""
    scene = free_box((0.6, 0.2, 0.05), 1.0) if centred else Scene(lopsided(9.81))
    q0, v0 = spinning(scene, 16, 10.0)
    t, q, _ = room.rollout(scene.model, q0, v0, h, round(0.5 / h))
    g, t = np.array([0.0, 0.0, -9.81]), t[:, None, None]
    centre = dl.center_of_mass(scene.model, q)
    start = dl.centroidal_momentum(scene.model, q0, v0)[:, :3] / scene.model.mass + 0.5 * room.lag * h * g
    exact = centre[0] + start * t + 0.5 * g * t**2
    error, bound = float(np.abs(centre - exact).max()), max(1e-11, 10 * room.tolerance)
    assert error <= bound


# --- closed forms -----------------------------------------------------------------------------------------------------


def angle_between(q, R) -> np.ndarray:
    """How far quaternions (…, 4) are from rotations [rad]."""
    return np.asarray((Rotation.from_quat(q) * R.inv()).magnitude())


def symmetric_top(moments, spin, t) -> Rotation:
    """Precession about L at |L|/I₁ after a turn about the axis of symmetry, x, at (1 - I₃/I₁) ω₃; from no turn."""
    axial, across = moments[0], moments[1]
    L = np.asarray(moments) * spin
    own = (1.0 - axial / across) * spin[0]
    return Rotation.from_rotvec(np.outer(t, L / across)) * Rotation.from_rotvec(np.outer(t, [own, 0.0, 0.0]))


def euler_top(moments, spin, t) -> np.ndarray:
    """ω (times, 3) of a body with I₁ > I₂ > I₃ that starts at ω = (ω₁, 0, ω₃) with 2 T I₂ < L²: Jacobi's functions.

    ω₁ = a dn, ω₂ = b sn, ω₃ = c cn at the phase n t, which starts at 0.
    """
    I1, I2, I3 = moments
    L2, T2 = sum((np.asarray(moments) * spin) ** 2), sum(np.asarray(moments) * np.square(spin))
    assert L2 > T2 * I2 and spin[1] == 0.0
    a, b = np.sqrt((L2 - T2 * I3) / (I1 * (I1 - I3))), np.sqrt((T2 * I1 - L2) / (I2 * (I1 - I2)))
    c = np.sqrt((T2 * I1 - L2) / (I3 * (I1 - I3)))
    rate = np.sqrt((I1 - I2) * (L2 - T2 * I3) / (I1 * I2 * I3))
    modulus = (I2 - I3) * (T2 * I1 - L2) / ((I1 - I2) * (L2 - T2 * I3))
    sn, cn, dn, _ = ellipj(rate * t, modulus)
    return np.stack([a * dn, -b * sn, c * cn], 1)


def attitudes(spin_at, t) -> Rotation:
    """Rotations at times t of a body that has the angular velocity `spin_at(t)` in its own axes, from no turn."""

    def rate(time, x):
        w, (a, b, c, d) = spin_at(np.array([time]))[0], x
        return 0.5 * np.array([d * w[0] + b * w[2] - c * w[1], d * w[1] + c * w[0] - a * w[2],
                               d * w[2] + a * w[1] - b * w[0], -a * w[0] - b * w[1] - c * w[2]])  # fmt: skip

    found = solve_ivp(rate, (0.0, t[-1]), [0.0, 0, 0, 1], method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13)
    return Rotation.from_quat(found.y.T)


TRIAXIAL = free_body(Part("box", (0.1, 0.3, 0.6), 3.0), gravity=0.0)
I_TRIAXIAL = 0.25 * np.array([0.45, 0.37, 0.10])
SPIN = np.array([6.0, 0.0, 3.0])


def test_the_closed_form_of_the_triaxial_body_solves_eulers_equations():
    t, e = np.linspace(0.0, 1.0, 11), 1e-6
    w = euler_top(I_TRIAXIAL, SPIN, t)
    rate = (euler_top(I_TRIAXIAL, SPIN, t + e) - euler_top(I_TRIAXIAL, SPIN, t - e)) / (2 * e)
    np.testing.assert_allclose(I_TRIAXIAL * rate, np.cross(I_TRIAXIAL * w, w), atol=1e-7)
    np.testing.assert_allclose(w[0], SPIN, rtol=1e-12)


def errors_of(room, scene, spin, exact, steps=(4e-3, 2e-3, 1e-3)) -> list[float]:
    """The largest angle [rad] from the closed form within 0.4 s, by the step."""
    errors = []
    for h in steps:
        t, q, _ = room.rollout(scene.model, at(scene, 1), np.array([[0.0, 0, 0, *spin]]), h, round(0.4 / h))
        errors.append(float(angle_between(q[:, 0, 3:], exact(t)).max()))
    return errors


@rooms("spin")
def test_a_symmetric_top_precesses_as_its_closed_form(room):
    scene, spin = free_box((0.6, 0.1, 0.1), 2.0, gravity=0.0), np.array([20.0, 3.0, 0.0])
    moments = 2.0 / 12.0 * np.array([0.02, 0.37, 0.37])
    assert_second_order(errors_of(room, scene, spin, lambda t: symmetric_top(moments, spin, t)))


@rooms("spin")
def test_a_triaxial_body_turns_as_its_closed_form(room):
    exact = lambda t: attitudes(lambda s: euler_top(I_TRIAXIAL, SPIN, s), t)  # noqa: E731
    assert_second_order(errors_of(room, TRIAXIAL, SPIN, exact))


@rooms("spin")
def test_a_body_that_spins_about_a_principal_axis_turns_evenly(room):
    """ω stays, to the digits; so the angle is ω t."""
    spin = np.array([0.0, 0.0, 12.0])
    t, q, v = room.rollout(TRIAXIAL.model, at(TRIAXIAL, 1), np.array([[0.0, 0, 0, *spin]]), 2e-3, 200)
    assert angle_between(q[:, 0, 3:], Rotation.from_rotvec(np.outer(t, spin))).max() < 1e-7
    np.testing.assert_allclose(v[:, 0, 3:], np.tile(spin, (len(t), 1)), atol=1e-7)


@rooms("spin")
def test_the_middle_axis_is_the_unstable_one(room):
    """Dzhanibekov's flip: a body that spins about its middle axis, a little off, turns over; the others keep on."""
    for axis, flips in ((0, False), (1, True), (2, False)):
        spin = np.full(3, 1e-2) + 10.0 * np.eye(3)[axis]
        _, _, v = room.rollout(TRIAXIAL.model, at(TRIAXIAL, 1), np.array([[0.0, 0, 0, *spin]]), 1e-2, 200)
        assert bool(v[:, 0, 3 + axis].min() < 0.0) is flips


def test_every_room_is_named_once():
    assert len({room.name for room in ROOMS}) == len(ROOMS)
