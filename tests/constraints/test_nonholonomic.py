"""Constraints on velocities alone, against closed forms: skates, sleighs, rolling disks."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import delassus as dl
import delassus.numpy as dnp
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.model.joints import Free, Planar, Prismatic, Revolute
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from delassus.spatial.quaternions import quaternion_from_rotation
from differences import jacobian
from mechanisms import PROXIMAL
from refusals import refuses

MASS, TURN, AHEAD = 2.0, 0.3, 0.4
"""Mass [kg], moment of inertia about the center of mass [kg·m²] and how far that is before the blade [m]."""


def sled(ahead: float, slope: float = 0.0) -> Model:
    """A body that slides in a plane along x, y and turns by θ, on a blade at the origin of its frame."""
    inertia = dl.Inertia.of(MASS, (ahead, 0.0, 0.0), TURN * np.eye(3))
    joints = (
        Joint("x", Prismatic((1.0, 0.0, 0.0))),
        Joint("y", Prismatic((0.0, 1.0, 0.0)), parent=0),
        Joint("turn", Revolute((0.0, 0.0, 1.0)), parent=1, inertia=inertia),
    )
    gravity = (9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope))
    return Model("sled", joints, (Frame("blade", 2),), gravity=gravity)


def sideways(kinematics, q, v):
    """The velocity of the blade across itself."""
    return dnp.stack([kinematics.rotation("blade")[:, 1] @ kinematics.velocity("blade")])


@dl.kernel("(nq),(nv)->(nq),(nv)")
def rates(mechanism: dl.Mechanism, q, v):
    a, _ = dl.prox_pv(mechanism, q, v, np.zeros(mechanism.nv), iterations=4)
    return coordinate_rates(mechanism.model, q, v), a


def run(mechanism, q, v, duration):
    """The state after a while, by SciPy."""
    step, n = rates.specialize(mechanism), mechanism.nq
    found = solve_ivp(
        lambda t, x: np.concatenate(step(x[:n], x[n:])),
        (0.0, duration),
        np.concatenate([q, v]),
        method="DOP853",
        rtol=1e-11,
        atol=1e-12,
    )
    return found.y[:n, -1], found.y[n:, -1]


def test_a_skate_on_a_slope_goes_on_a_cycloid():
    """It turns at a constant rate ω, and x = g/(2ω²) sin²(ωt), y = g/(2ω²)(ωt - ½ sin 2ωt): it does not descend."""
    slope, rate, duration = 0.3, 2.0, 1.7
    mechanism = dl.Mechanism(sled(0.0, slope), dl.Nonholonomic(sideways, rows=1))
    q, _ = run(mechanism, np.zeros(3), np.array([0.0, 0.0, rate]), duration)
    size, turned = 9.81 * np.sin(slope) / (2 * rate**2), rate * duration
    expected = [size * np.sin(turned) ** 2, size * (turned - np.sin(2 * turned) / 2), turned]
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-8)


def test_a_sleigh_ends_up_straight_as_chaplygin_says():
    """u = V tanh(kt), ω = V/c sech(kt) with c² = J/m + a² and k = aV/c²."""
    mechanism = dl.Mechanism(sled(AHEAD), dl.Nonholonomic(sideways, rows=1))
    c = np.sqrt(TURN / MASS + AHEAD**2)
    speed, duration = 1.5, 0.8
    q, v = run(mechanism, np.zeros(3), np.array([0.0, 0.0, speed / c]), duration)
    k = AHEAD * speed / c**2
    u = np.array([np.cos(q[2]), np.sin(q[2]), 0.0]) @ v
    np.testing.assert_allclose([u, v[2]], [speed * np.tanh(k * duration), speed / c / np.cosh(k * duration)], atol=1e-9)
    np.testing.assert_allclose(dl.kinetic_energy(mechanism, q, v), MASS * speed**2 / 2, rtol=1e-9)


RADIUS = 0.35
DISK = Model(
    "disk",
    (
        Joint(
            "free",
            Free(),
            inertia=dl.Inertia.of(MASS, rotational=MASS * RADIUS**2 * np.diag([0.25, 0.25, 0.5])),
        ),
    ),
    (Frame("disk", 0),),
)


def rolling(kinematics, q, v):
    """The velocity of the disk's lowest point as a point of the disk; its axis is the frame's z."""
    axis, up = kinematics.rotation("disk")[:, 2], np.array([0.0, 0.0, 1.0])
    uphill = up - (axis @ up) * axis
    down = -RADIUS * uphill / dnp.sqrt(uphill @ uphill)
    return kinematics.velocity("disk") + dnp.cross(kinematics.angular_velocity("disk"), down)


ROLLING = dl.Mechanism(DISK, dl.Nonholonomic(rolling, rows=3))


def steady(lean, precession):
    """Configuration, velocity and acceleration of the center of a disk that rolls round a circle.

    With e₁ along the path, e₂ up the disk and e₃ its axis, ω = Ω sin θ e₂ + ω₃ e₃ and moments about the center say
    Ω sin θ ω₃ (I₃ + m r²) - I₁ Ω² sin θ cos θ + m g r cos θ = 0.
    """
    s, c = np.sin(lean), np.cos(lean)
    first, third = 0.25 * MASS * RADIUS**2, 0.5 * MASS * RADIUS**2
    spin = (first * precession**2 * s * c - MASS * 9.81 * RADIUS * c) / (precession * s * (third + MASS * RADIUS**2))
    up = np.array([0.0, s, c])  # of the world, in e₁, e₂, e₃
    turn = np.array([0.0, precession * s, spin])
    velocity = np.cross(turn, [0.0, RADIUS, 0.0])
    e_2, e_3 = np.array([0.0, -c, s]), np.array([0.0, s, c])
    R = np.stack([np.cross(e_2, e_3), e_2, e_3], axis=1)
    np.testing.assert_allclose(R.T @ [0.0, 0.0, 1.0], up, atol=1e-15)
    q = np.concatenate([[0.0, 0.0, RADIUS * s], quaternion_from_rotation(R)])
    return q, np.concatenate([velocity, turn]), R @ np.cross(precession * up, velocity)


@pytest.mark.parametrize("kernel", PROXIMAL, ids=lambda k: k.name)
def test_a_disk_rolls_round_a_circle_as_its_closed_form_says(kernel):
    q, v, centre = steady(lean=1.1, precession=1.7)
    a, _ = kernel.python(ROLLING, q, v, np.zeros(6), iterations=6)
    found = dl.frame_acceleration.python(DISK, q, v, a, frame="disk", reference="LOCAL_WORLD_ALIGNED", classical=True)
    np.testing.assert_allclose(found[:3], centre, rtol=0, atol=1e-9)


def test_a_rolling_disk_keeps_its_energy_and_its_height():
    q, v, _ = steady(lean=1.1, precession=1.7)
    after, moving = run(ROLLING, q, v, 1.0)

    def energy(q, v):
        return dl.kinetic_energy(DISK, q, v) + dl.potential_energy(DISK, q)

    np.testing.assert_allclose(energy(after, moving), energy(q, v), rtol=1e-8)
    np.testing.assert_allclose(after[2], q[2], rtol=0, atol=1e-7)


def test_what_rows_ask_for_is_that_the_velocity_stays():
    """γ is the derivative of A v along the motion, by differences."""
    rng = np.random.default_rng(1)
    q, v = DISK.random_configuration(rng), rng.normal(size=6)
    h = 1e-5
    ahead, behind = (
        dl.constraint_jacobian.python(ROLLING, dl.integrate.python(DISK, q, s * h * v)) @ v for s in (1, -1)
    )
    found = dl.constraint_bias.python(ROLLING, q, v)
    np.testing.assert_allclose(found, (ahead - behind) / (2 * h), rtol=0, atol=1e-6 * np.abs(found).max())


def test_projection_takes_off_velocities_and_leaves_places():
    mechanism = dl.Mechanism(sled(AHEAD), dl.Nonholonomic(sideways, rows=1))
    q, v = np.array([0.3, -0.2, 0.7]), np.array([1.0, 2.0, 3.0])
    for method in ("mass", "svd"):
        found = dl.project(mechanism, q, v, method=method)
        np.testing.assert_allclose(found.q, q, atol=1e-15)
        np.testing.assert_allclose(dl.constraint_jacobian(mechanism, q) @ found.v, 0.0, atol=1e-12)


def at_the_line(kinematics, q):
    return dnp.stack([kinematics.position("blade")[1]])


@pytest.mark.parametrize("method", ["mass", "svd", "assemble"])
def test_corrections_of_place_may_go_sideways(method):
    """The blade points along x; only a step across it leads back to the line y = 0."""
    rows = [dl.Nonholonomic(sideways, rows=1), dl.Implicit(at_the_line, rows=1), dl.JointLock("turn", position=0.0)]
    mechanism, q = dl.Mechanism(sled(0.0), rows), np.array([0.5, 0.01, 0.0])
    if method == "assemble":
        found = dl.assemble(mechanism, q).q
    else:
        found = dl.project(mechanism, q, np.zeros(3), method=method).q
    np.testing.assert_allclose(found, [0.5, 0.0, 0.0], rtol=0, atol=1e-9)


def on_a_belt(kinematics, q, v, t):
    return dnp.stack([kinematics.velocity("blade")[0] - 3.0 * dnp.cos(t)])


def test_a_belt_carries_along():
    """A part that does not depend on v is a velocity to have: its acceleration is -3 sin t."""
    mechanism = dl.Mechanism(sled(0.0), dl.Nonholonomic(on_a_belt, rows=1, velocity_gain=5.0))
    q, v, t = np.zeros(3), np.array([1.0, 0.0, 0.0]), 0.4
    a, force = dl.prox_pv.python(mechanism, q, v, np.zeros(3), time=np.array(t), iterations=6)
    expected = -3.0 * np.sin(t) - 5.0 * (1.0 - 3.0 * np.cos(t))
    np.testing.assert_allclose([a[0], force[0]], [expected, MASS * expected], rtol=1e-9)
    np.testing.assert_allclose(dl.project(mechanism, q, v, time=t).v[0], 3.0 * np.cos(t), rtol=1e-12)


def test_derivatives_are_those_of_differences():
    mechanism = dl.Mechanism(sled(AHEAD), dl.Nonholonomic(sideways, rows=1, velocity_gain=3.0))
    q, v, tau = np.array([0.3, -0.2, 0.7]), np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.1, -0.2])
    a_q, a_v, _, force_q, force_v, _ = dl.constrained_derivatives(mechanism, q, v, tau)
    by_q = jacobian(lambda d: np.concatenate(dl.prox_pv(mechanism, q + d, v, tau)), 3)
    by_v = jacobian(lambda d: np.concatenate(dl.prox_pv(mechanism, q, v + d, tau)), 3)
    np.testing.assert_allclose(np.concatenate([a_q, force_q]), by_q, rtol=0, atol=1e-9 * np.abs(by_q).max())
    np.testing.assert_allclose(np.concatenate([a_v, force_v]), by_v, rtol=0, atol=1e-9 * np.abs(by_v).max())


def test_an_impact_stops_what_may_not_slip():
    """The sled is thrown sideways: the blade's impulse is the one that a rigid body takes at its end."""
    mechanism = dl.Mechanism(sled(AHEAD), dl.Nonholonomic(sideways, rows=1))
    struck = dl.impact(mechanism, np.zeros(3), np.array([1.0, 2.0, 0.0]))
    impulse = -2.0 / (1.0 / MASS + AHEAD**2 / TURN)
    np.testing.assert_allclose(struck.impulse, [impulse], rtol=1e-10)
    np.testing.assert_allclose(struck.v, [1.0, 0.0, -AHEAD * impulse / TURN], rtol=0, atol=1e-10)


def test_two_that_compute_the_same_are_equal():
    one, two = (dl.Mechanism(DISK, dl.Nonholonomic(rolling, rows=3)) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


def test_a_function_that_is_not_linear_in_the_velocity_is_refused():
    with refuses("not-linear"):
        dl.Mechanism(DISK, dl.Nonholonomic(lambda kinematics, q, v: dnp.stack([v @ v]), rows=1, name="square"))


def test_a_row_without_velocities_is_refused():
    with refuses("immovable"):
        dl.Mechanism(DISK, dl.Nonholonomic(lambda kinematics, q, v: dnp.stack([q[0]]), rows=1, name="place"))


def test_a_position_gain_has_nothing_to_pull_to():
    with refuses("conflicting-arguments"):
        dl.Nonholonomic(rolling, rows=3, position_gain=1.0)


def test_a_planar_joint_can_be_a_skate_by_its_own_velocities():
    """The joint's velocities are in its own axes: the second is the one across."""
    inertia = dl.Inertia.of(MASS, rotational=TURN * np.eye(3))
    model = Model("skate", (Joint("plane", Planar(), inertia=inertia),), (Frame("blade", 0),))
    mechanism = dl.Mechanism(model, dl.Nonholonomic(sideways, rows=1))
    q = dl.integrate.python(model, model.neutral(), np.array([0.1, 0.2, 0.5]))
    np.testing.assert_allclose(dl.constraint_jacobian.python(mechanism, q), [[0.0, 1.0, 0.0]], atol=1e-15)
