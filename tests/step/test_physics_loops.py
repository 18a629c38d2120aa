"""Pendulums and closed loops, in every room: closed forms of swings, energy, and loops that stay closed."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import delassus as dl
from delassus.model.bundled.build import Assembly, Revolute, ball, rod
from delassus.model.joints import Translation
from physics_measures import RISE, energy, largest_rise
from physics_rooms import rooms

G = 9.81
each_step = pytest.mark.parametrize("h", RISE, ids=lambda h: f"{1e3 * h:g}ms")


def swing(rate: float, angle: float, t) -> np.ndarray:
    """The angle of a pendulum that is let go at an angle: 2 asin(k sn(K - ω t, k)), k = sin(angle/2)."""
    k = np.sin(angle / 2)
    sn, *_ = ellipj(ellipk(k**2) - rate * t, k**2)
    return 2 * np.arcsin(k * sn)


def pendulum() -> dl.Model:
    """A rod of 1 m and 1 kg that hangs from a hinge."""
    a = Assembly("pendulum")
    a.body("arm", Revolute((0, 1, 0)), None, (0, 0, 0), [rod((0, 0, 0), (0, 0, -1.0), 1.0, radius=1e-4)])
    return a.model()


def mass_on_a_rod() -> dl.Mechanism:
    """A mass that moves freely but for a rigid rod of 1 m from the origin."""
    a = Assembly("mass on a rod")
    a.body("mass", Translation(), None, (0, 0, 0), [ball(0.05, 1.0)])
    return dl.Mechanism(a.model(), [dl.Distance("mass", length=1.0, name="rod")])


def parallelogram() -> dl.Mechanism:
    """Two cranks of 1 m, and a rail of 1 m between them that only translates; rods of 1 kg that hang down at zero."""
    a = Assembly("parallelogram")
    for k in range(2):
        a.body(f"crank{k}", Revolute((0, 1, 0)), None, (k, 0, 0), [rod((0, 0, 0), (0, 0, -1.0), 1.0, radius=1e-4)])
    a.body("rail", Revolute((0, 1, 0)), "crank0", (0, 0, -1.0), [rod((0, 0, 0), (1.0, 0, 0), 1.0, radius=1e-4)])
    a.frame("end", "rail", (1.0, 0, 0))
    a.frame("pin", "crank1", (0, 0, -1.0))
    return dl.Mechanism(a.model(), [dl.Point("end", "pin", rows=("x", "z"))])


def assert_first_order(errors, bound):
    """Small at 1 ms, and less with the step."""
    assert errors[-1] <= bound, errors
    assert all(fine <= max(0.6 * coarse, 1e-6) for coarse, fine in pairwise(errors)), errors


def swing_errors(room, mechanism, q0, angle_of, rate):
    """The largest error of the angle [rad] within 1.5 s at 4, 2 and 1 ms, of a swing from rest at q0."""
    errors, still = [], np.zeros(mechanism.nv)
    a = dl.constrained_dynamics(mechanism, q0, still, still).acceleration
    start = float(angle_of(q0[None])[0])
    for h in (4e-3, 2e-3, 1e-3):
        t, q, _ = room.rollout(mechanism, q0[None], room.before(h, still, a)[None], h, round(1.5 / h))
        errors.append(float(np.abs(angle_of(q[:, 0]) - swing(rate, start, t)).max()))
    return errors


@rooms("tree", "loop")
def test_a_pendulum_swings_as_its_closed_form(room):
    errors = swing_errors(room, dl.Mechanism(pendulum()), np.array([2.0]), lambda q: q[:, 0], np.sqrt(1.5 * G))
    assert_first_order(errors, 0.05)


@rooms("loop")
def test_a_mass_on_a_rod_swings_as_its_closed_form(room):
    q0 = np.array([-np.sin(2.0), 0.0, -np.cos(2.0)])
    angle = lambda q: np.arctan2(-q[:, 0], -q[:, 2])  # noqa: E731
    errors = swing_errors(room, mass_on_a_rod(), q0, angle, np.sqrt(G))
    assert_first_order(errors, 0.05)


@rooms("loop")
def test_a_parallelogram_swings_as_its_closed_form(room):
    """(2/3 + 1) m l² φ̈ = -2 m g l sin φ: ω² = 6/5 g/l. It never lies flat, where it could become another linkage."""
    q0 = np.array([1.2, 1.2, -1.2])
    errors = swing_errors(room, parallelogram(), q0, lambda q: q[:, 0], np.sqrt(1.2 * G))
    assert_first_order(errors, 0.05)


@each_step
@rooms("loop")
def test_a_four_bar_that_swings_gains_no_energy(room, h):
    mechanism = dl.Mechanism(dl.load("four_bar"))
    q, v = four_bar_starts(mechanism)
    _, q, v = room.rollout(mechanism, q, v, h, round(0.5 / h))
    rise = largest_rise(*energy(room, mechanism.model, h, q, v))
    assert rise <= RISE[h]


@rooms("closed")
def test_a_four_bar_that_swings_stays_closed(room):
    """Within h² of the accelerations of its ends."""
    mechanism = dl.Mechanism(dl.load("four_bar"))
    _, q, _ = room.rollout(mechanism, *four_bar_starts(mechanism), 1e-3, 500)
    opened = float(np.abs(dl.constraint_error(mechanism, q)).max())
    assert opened <= 1e-4


def four_bar_starts(mechanism):
    state = dl.project(mechanism, mechanism.model.posture("home"), np.zeros(3))
    q = np.tile(state.q, (4, 1))
    v = np.outer([0.0, 1.0, -2.0, 4.0], [1.0, 0.0, 0.0])
    start = dl.project(mechanism, q, v)
    return np.array(start.q), np.array(start.v)
