"""Bodies on the ground, at the one setting that simulations have: a rolling disk, a stack, energies of all shapes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import BALL, BRICK, G, H, body
from delassus.model import Free, Inertia, Joint, Model, Placement, Prismatic
from delassus.model.parts import Geometry
from delassus.model.placement import HERE
from physics_measures import energy, largest_rise
from physics_rooms import ROOMS


def test_a_rolling_disk_precesses_as_steadily_as_its_closed_form():
    """(C + m r²) ω₃ Ω sin θ - A Ω² sin θ cos θ + m g r cos θ = 0 of a disk whose axis leans by θ."""
    r, m, tilt, rate = 0.1, 2.0, 1.1, 3.0
    A, C = m * r * r / 4, m * r * r / 2
    s, c = math.sin(tilt), math.cos(tilt)
    spin = (A * rate**2 * s * c - m * G * r * c) / ((C + m * r * r) * rate * s)
    thick = 1e-6
    axes = np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])  # columns: along the path, up the disk, the disk's axis
    q0 = np.array([0, 0, r * s + thick / 2 * c, *Rotation.from_matrix(axes).as_quat()])
    v0 = np.array([-spin * r, 0, 0, 0, rate * s, spin])
    sim = dl.Simulation(body("cylinder", (r, thick), m, (A, A, C)), dl.Ground(friction=0.9), H)
    log = sim.run(q0, v0, steps=round(2 * math.pi / rate / H))
    axis = Rotation.from_quat(log.q[:, 3:]).as_matrix()[..., 2]
    turned = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    assert (turned[-1] - turned[0]) / log.time[-1] == pytest.approx(rate, rel=1e-3)
    np.testing.assert_allclose(np.arccos(axis[:, 2]), tilt, atol=5e-3)
    np.testing.assert_allclose(np.ptp(log.q[:, :2], axis=0), 2 * abs(spin) * r / rate, rtol=1e-3)  # its path's diameter
    np.testing.assert_allclose(log.energy, log.energy[0], rtol=1e-4)


def stack(lower: float, upper: float) -> Model:
    """Two boxes [kg] of 0.2 m, the upper one on a rail from the lower one, which stops where they touch."""

    def inertia(mass: float) -> Inertia:
        return Inertia.of(mass, rotational=np.diag((mass / 150, mass / 150, mass / 150)))

    return Model(
        "stack",
        (
            Joint("base", Free(), inertia=inertia(lower)),
            Joint(
                "rail", Prismatic((0.0, 0.0, 1.0)), 0, Placement.of(p=(0, 0, 0.2)), inertia(upper), (0.0,), (math.inf,)
            ),
        ),
        geometries=(Geometry("box", 0, HERE, "box", (0.2, 0.2, 0.2), "collision"),),
    )


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 1000.0), (1000.0, 1.0)])
def test_a_stack_of_one_to_a_thousand_rests_for_ten_seconds(lower, upper):
    log = dl.Simulation(stack(lower, upper), dl.Ground(), H).run(np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0]), steps=10_000)
    assert np.abs(log.v).max() < 1e-9 and np.abs(log.q - log.q[0]).max() < 1e-9
    np.testing.assert_allclose(log.contact_force[1:, :, 2].sum(-1), (lower + upper) * G, rtol=1e-6)
    np.testing.assert_allclose(log.impulse[-1, -1], upper * G * H, rtol=1e-6)
    assert not log.status.any()


SHAPES = {
    "ball": BALL,
    "brick": BRICK,
    "can": body("cylinder", (0.05, 0.2), 1.0, (0.004, 0.004, 0.00125)),
    "coin": body("cylinder", (0.1, 0.01), 1.0, (0.0025, 0.0025, 0.005)),
    "egg": body("ellipsoid", (0.1, 0.15, 0.05), 1.0, (0.005, 0.0025, 0.0065)),
    "stick": body("capsule", (0.05, 0.2), 1.0, (0.005, 0.005, 0.00125)),
}


@pytest.mark.parametrize("bounces", [False, True])
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
def test_bodies_that_tumble_on_the_ground_gain_no_energy(name, bounces, seed):
    model, rng, n = SHAPES[name], np.random.default_rng(seed), 16
    q0 = np.concatenate([rng.uniform(0.2, 0.5, (n, 3)), rng.normal(size=(n, 4))], -1)
    v0 = rng.normal(size=(n, 6)) * np.array([1.0, 1, 1, 5, 5, 5])
    restitution = rng.uniform(0.0, 1.0, n) if bounces else 0.0
    slope = np.concatenate([rng.uniform(-0.5, 0.5, (n, 2)), np.ones((n, 1))], -1)
    ground = dl.Ground(friction=rng.uniform(0, 1.2, n), restitution=restitution, normal=slope, height=-0.3)
    log = dl.Simulation(model, ground, H).run(q0, v0, steps=700)
    E, T = energy(ROOMS[0], model, H, log.q, log.v)
    assert np.all(E <= E[0] + 1e-12 * T.max())
    assert largest_rise(E, T) < 1e-3


@pytest.mark.parametrize(("name", "gain"), [("brick", 1e-6), ("can", 3e-4), ("egg", 3e-4), ("stick", 1e-6)])
def test_bodies_that_lose_nothing_when_they_strike_gain_nothing_either(name, gain):
    model, rng, n = SHAPES[name], np.random.default_rng(0), 16
    q0 = np.concatenate([rng.uniform(0.8, 1.3, (n, 3)), rng.normal(size=(n, 4))], -1)
    v0 = rng.normal(size=(n, 6)) * np.array([2.0, 2, 2, 5, 5, 5])
    log = dl.Simulation(model, dl.Ground(friction=0.0, restitution=1.0), H).run(q0, v0, steps=5000, every=5)
    up = Rotation.from_quat(log.q[..., 3:].reshape(-1, 4)).apply((0, 0, 1), inverse=True).reshape(*log.v.shape[:-1], 3)
    rise = np.sum(up * log.v[..., :3], -1)  # velocities are those of half a step before
    energy = log.energy - 0.5 * H * G * model.mass * rise
    assert np.all(energy < (1.0 + gain) * energy[0])


def test_several_robots_in_one_world_do_what_each_does_alone():
    """A brick and a ball, both thrown; both start in the ground and are lifted out of it, each by its own depth."""
    both = BRICK.attach(BALL, "world", prefix="other_")
    brick, ball = np.array([0, 0, 0.01, 0, 0, 0, 1.0]), np.array([1, 0, 0.05, 0, 0, 0, 1.0])
    v = np.array([2.0, 0, 0, 0, 0, 0])
    together = dl.Simulation(both, max_contacts=9).run(np.concatenate([brick, ball]), np.concatenate([v, v]), steps=300)
    for model, start, at in ((BRICK, brick, slice(0, 7)), (BALL, ball, slice(7, 14))):
        alone = dl.Simulation(model).run(start, v, steps=300)
        np.testing.assert_allclose(together.q[:, at], alone.q, atol=1e-6)  # the tolerance of the solver, over 300 steps
    np.testing.assert_allclose(together.q[0, [2, 9]], [0.05, 0.1], atol=1e-12)
