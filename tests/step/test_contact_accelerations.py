"""Rigid contact without a step of time: closed forms, Painlevé's rod among them, and the limit of small steps."""

import math

import numpy as np
import pytest

import delassus as dl
from delassus.contact.problems.checks import ContactProblemError
from delassus.model.bundled.build import Assembly, ball, box, rod
from delassus.model.joints import Free, Prismatic, Revolute

G, HALF, MASS = 9.81, 0.5, 2.0


def falling_rod() -> dl.Model:
    """A thin rod of length 2 l in the x-z plane."""
    a = Assembly("rod")
    a.body("x", Prismatic((1, 0, 0)), None)
    a.body("z", Prismatic((0, 0, 1)), "x")
    a.body("rod", Revolute((0, 1, 0)), "z", (0, 0, 0), [rod((-HALF, 0, 0), (HALF, 0, 0), MASS, radius=1e-8)])
    return a.model()


ROD = falling_rod()
STEEP = math.atan(2.0)
"""The angle at which the least friction, 4/3, is enough for Painlevé's paradox."""


def fallen(friction, angle=STEEP, sliding=-1.0, spin=0.0):
    """Forces on a rod whose lower end slides; it leans towards +x, so that sliding towards -x drives it in."""
    c, s = HALF * math.cos(angle), HALF * math.sin(angle)
    q, v = np.array([0.0, s, -angle]), np.array([sliding + spin * s, -spin * c, spin])
    end = dl.Contact("rod", corners=[(-HALF, 0, 0)], friction=friction)
    return dl.contact_dynamics(ROD, q, v, np.zeros(3), contacts=end, time_step=None)


def response(friction, angle, sliding):
    """n · G (n - friction t) in closed form."""
    c, s = math.cos(angle), math.sin(angle)
    return (1.0 + 3.0 * c * (c + friction * math.copysign(1.0, sliding) * s)) / MASS


@pytest.mark.parametrize("friction", [0.0, 0.5, 1.3])
@pytest.mark.parametrize("sliding", [1.0, -1.0])
@pytest.mark.parametrize("spin", [0.0, 3.0])
def test_a_sliding_rod_has_the_forces_of_the_closed_form(friction, sliding, spin):
    found = fallen(friction, STEEP, sliding, spin)
    push = (G - spin**2 * HALF * math.sin(STEEP)) / response(friction, STEEP, sliding)
    np.testing.assert_allclose(found.force, [-friction * math.copysign(push, sliding), 0.0, push], atol=1e-7 * push)
    np.testing.assert_allclose(found.row_acceleration[2], 0.0, atol=1e-6)
    assert found.status == dl.Status.CONVERGED


@pytest.mark.parametrize("friction", [1.34, 2.0, 5.0])
def test_painleves_rod_has_no_solution_and_says_so(friction):
    assert response(friction, STEEP, -1.0) < 0.0
    found = fallen(friction)
    assert found.status == dl.Status.NO_SOLUTION
    assert "no solution" in found.describe()
    # the other way round there is one, and with a step of time as well
    assert fallen(friction, sliding=1.0).status == dl.Status.CONVERGED


def test_painleves_rod_that_has_two_solutions_leaves_the_ground():
    spin = 6.0
    assert spin**2 * HALF * math.sin(STEEP) > G
    found = fallen(2.0, spin=spin)
    assert found.status == dl.Status.CONVERGED
    np.testing.assert_allclose(found.force, 0.0, atol=1e-9)
    assert found.row_acceleration[2] > 0.0


def test_a_number_that_is_none_marks_its_own_state():
    q, v = np.tile([0.0, 1.0, -1.0], (3, 1)), np.zeros((3, 3))
    q[1, 1] = np.nan
    end = dl.Contact("rod", corners=[(-HALF, 0, 0)])
    found = dl.contact_dynamics(ROD, q, v, np.zeros(3), contacts=end, time_step=None)
    assert [s is dl.Status.NOT_FINITE for s in found.statuses] == [False, True, False]
    np.testing.assert_allclose(found.acceleration[[0, 2], 1], -G, rtol=1e-9)


def test_an_impulse_is_what_painleves_rod_has_instead():
    angle = STEEP
    c, s = HALF * math.cos(angle), HALF * math.sin(angle)
    q, v = np.array([0.0, s, -angle]), np.array([-1.0, 0.0, 0.0])
    end = dl.Contact("rod", corners=[(-HALF, 0, 0)], friction=2.0)
    impulses = [dl.contact_dynamics(ROD, q, v, np.zeros(3), contacts=end, time_step=h).impulse[2] for h in (1e-3, 1e-5)]
    assert c > 0.0
    np.testing.assert_allclose(impulses[0], impulses[1], rtol=0.05)  # not of the order of the step
    assert impulses[1] > 0.1


def test_a_box_at_rest_has_the_forces_of_small_steps():
    a = Assembly("box")
    a.body("box", Free(), None, (0, 0, 0), [box((0.4, 0.3, 0.2), 2.0)])
    model = a.model()
    feet = dl.Contact.foot("box", 0.4, 0.3, center=(0, 0, -0.1), friction=0.5)
    q, still = model.neutral(), np.zeros(6)
    q[2] = 0.1
    tau = np.zeros((3, 6))
    tau[:, 0] = 5.0, 9.0, 14.0  # sticks below 0.5 m g = 9.81 N
    found = dl.contact_dynamics(model, q, still, tau, contacts=feet, time_step=None)
    np.testing.assert_allclose(found.acceleration[:, 0], [0.0, 0.0, (14.0 - 0.5 * 2.0 * G) / 2.0], atol=1e-6)
    np.testing.assert_allclose(found.force[:, 2::3].sum(-1), 2.0 * G, rtol=1e-6)
    assert np.all(found.status == dl.Status.CONVERGED)


def test_open_and_opening_contacts_have_no_force_and_limits_and_dry_friction_act():
    a = Assembly("slides")
    for name in ("down", "up", "high", "held"):
        a.body(name, Prismatic((0, 0, 1)), None, (0, 0, 0), [ball(0.1, 2.0)], limits=(0.0, 5.0))
    model = a.model()
    joints = [dl.Contact(name, friction=0.0) for name in ("down", "up", "high")]
    q, v = np.array([0.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 0.0])
    found = dl.contact_dynamics(model, q, v, np.zeros(4), contacts=joints, time_step=None)
    np.testing.assert_allclose(found.acceleration, [0.0, -G, -G, -G], atol=1e-7)
    stops = dl.contact_dynamics(model, q, v, np.zeros(4), time_step=None, limits=True)
    np.testing.assert_allclose(stops.acceleration, [0.0, -G, -G, 0.0], atol=1e-7)
    np.testing.assert_allclose(stops.force, [2.0 * G, 0.0, 0.0, 2.0 * G], atol=1e-6)


def test_what_needs_a_step_of_time_is_refused_without_one():
    for options in ({"restitution": 0.5}, {"compliance": 1e-3}, {"law": "soft"}):
        with pytest.raises(ContactProblemError, match="time_step"):
            dl.contact_dynamics(
                ROD, np.zeros(3), np.zeros(3), np.zeros(3), contacts=dl.Contact("rod"), time_step=None, **options
            )
