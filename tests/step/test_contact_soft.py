"""The soft model: springs and dampers, against closed forms."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.bundled.build import Assembly, ball
from delassus.model.joints import Free
from refusals import refuses

G, MASS, RADIUS = 9.81, 2.0, 0.1


def drop() -> dl.Model:
    a = Assembly("drop")
    a.body("drop", Free(), None, (0, 0, 0), [ball(RADIUS, MASS)])
    return a.model()


DROP = drop()
SPRING = dl.Softness(stiffness=3e3, damping=40.0, slip_speed=0.02)
CONTACT = dl.Contact("drop", radius=RADIUS, friction=0.5, torsional=0.01, softness=SPRING)


def step(depth, v, **options):
    q = DROP.neutral()
    q[2] = RADIUS - depth
    return dl.contact_dynamics(DROP, q, v, np.zeros(6), contacts=CONTACT, time_step=1e-3, law="soft", **options)


def test_the_normal_force_is_that_of_a_spring_and_a_damper():
    v = np.array([0.0, 0.0, -0.3, 0.0, 0.0, 0.0])
    found = step(0.002, v)
    force = 3e3 * 0.002 + 40.0 * 0.3
    np.testing.assert_allclose(found.impulse[2], 1e-3 * force)
    np.testing.assert_allclose(found.velocity[2], -0.3 + 1e-3 * (force / MASS - G))


@pytest.mark.parametrize(("depth", "speed"), [(-0.01, -1.0), (0.002, 1.0)], ids=["open", "leaving fast"])
def test_it_never_pulls(depth, speed):
    found = step(depth, np.array([0.0, 0.0, speed, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(found.impulse, 0.0)


def test_friction_grows_with_the_speed_and_never_exceeds_its_cone():
    speeds = np.geomspace(1e-4, 1.0, 9)
    v = np.zeros((9, 6))
    v[:, 0], v[:, 5] = speeds, 3.0
    found = step(0.002, v)
    push, normal = found.impulse[:, 0], found.impulse[:, 2]
    np.testing.assert_allclose(push, -0.5 * normal * speeds / np.sqrt(speeds**2 + 0.02**2), rtol=1e-12)
    np.testing.assert_allclose(found.impulse[:, 3], -0.01 * normal * 3.0 / np.hypot(3.0, 0.02), rtol=1e-12)
    assert np.all(abs(push) < 0.5 * normal)


def test_a_number_that_is_none_marks_its_own_state():
    v = np.zeros((9, 6))
    v[4, 1] = np.nan
    found = step(0.002, v)
    assert np.flatnonzero(found.status == dl.Status.NOT_FINITE).tolist() == [4]
    assert np.all(np.isfinite(np.delete(found.velocity, 4, 0)))


def test_loops_stay_closed_beside_soft_contacts():
    model = dl.load("four_bar")
    loop, q = dl.Mechanism(model), model.posture("home")
    J = dl.constraint_jacobian.python(loop, q)
    v = np.linalg.svd(J)[2][-1]
    frame = model.frames("*")[-1].name
    _, p = dl.frame_placement.python(model, q, frame=frame)
    contact = dl.Contact(frame, height=float(p[2]) + 1e-3)
    found = dl.contact_dynamics(loop, q, v, np.zeros(3), contacts=contact, time_step=1e-3, law="soft")
    assert found.impulse[2] > 0.0
    np.testing.assert_allclose(J @ found.velocity, 0.0, atol=1e-9)


def test_numbers_that_are_no_spring_are_refused():
    for options in ({"stiffness": -1.0}, {"slip_speed": 0.0}, {"damping": float("nan")}):
        with refuses("out-of-range", next(iter(options))):
            dl.Softness(**options)
