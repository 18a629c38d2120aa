"""Piles that stand, lean and fall, for seconds: against statics and the balance of energy."""

import numpy as np
import pytest

import delassus as dl

GRAVITY = 9.81


def pile(geoms, masses, friction=0.6):
    """Free bodies with one geom each on a plane; steps of 1 ms."""
    contact = f'friction="{friction} 0 0" condim="3"'
    bodies = "".join(
        f'<body name="b{k}"><freejoint/><geom name="g{k}" {geom} mass="{mass}" {contact}/></body>'
        for k, (geom, mass) in enumerate(zip(geoms, masses, strict=True))
    )
    plane = f'<geom type="plane" size="9 9 .1" {contact}/>'
    options = f'<option gravity="0 0 -{GRAVITY}" timestep="0.001"/>'
    model = dl.load(f"<mujoco>{options}<worldbody>{plane}{bodies}</worldbody></mujoco>")
    return dl.Simulation(model, ground=dl.Ground(friction=friction), colliding=[("g*", "g*")], time_step=1e-3)


def place(places, turns=None):
    q = np.zeros((len(places), 7))
    q[:, :3], q[:, 6] = places, 1.0
    if turns is not None:
        q[:, 3:] = turns
    return q.ravel()


def energies(model, log):
    """Kinetic and potential energy (steps,) [J] of bodies whose centers of mass are their origins."""
    total = 0.0
    for k, joint in enumerate(model.joints):
        m, own = joint.inertia.mass, log.v[:, 6 * k : 6 * k + 6]
        spin = np.einsum("si,ij,sj->s", own[:, 3:], np.array(joint.inertia.rotational), own[:, 3:])
        total = total + 0.5 * m * np.sum(own[:, :3] ** 2, 1) + 0.5 * spin + m * GRAVITY * log.q[:, 7 * k + 2]
    return total


@pytest.mark.parametrize("masses", [np.geomspace(1000, 1, 10), np.geomspace(1, 1000, 10)], ids=["light", "heavy"])
@pytest.mark.slow
def test_ten_boxes_of_masses_one_to_a_thousand_stand_for_ten_seconds(masses):
    sim = pile(['type="box" size="0.05 0.05 0.05"'] * 10, masses)
    log = sim.run(place([[0, 0, 0.05 + 0.1 * k] for k in range(10)]), steps=10_000)
    assert np.abs(log.v).max() < 1e-7
    np.testing.assert_allclose(log.q[-1], log.q[0], atol=1e-6)


def tilts_of(log):
    """(steps, bodies) [rad] of the bodies' z axes."""
    q = log.q.reshape(len(log.q), -1, 7)
    return np.arccos(np.clip(1.0 - 2.0 * (q[..., 3] ** 2 + q[..., 4] ** 2), -1.0, 1.0))


@pytest.mark.slow
def test_dominoes_stand_until_the_first_is_tipped_and_then_fall_in_order():
    sim = pile(['type="box" size="0.01 0.04 0.08"'] * 10, [0.1] * 10)
    q0, v0 = place([[0.06 * k, 0, 0.08] for k in range(10)]), np.zeros(60)
    assert tilts_of(sim.run(q0, v0, steps=500)).max() < 1e-9
    v0[[0, 4]] = 0.32, 4.0
    log = sim.run(q0, v0, steps=1500)
    tilts, energy = tilts_of(log), energies(sim.mechanism.model, log)
    falls = np.argmax(tilts > 0.3, axis=0)
    assert (tilts[-1] > 0.7).all()
    assert (np.diff(falls) > 0).all()
    assert np.maximum.accumulate(energy).max() <= energy[0] * (1 + 1e-3)


@pytest.mark.slow
def test_a_heap_of_thirty_capsules_loses_energy_and_keeps_its_capsules_apart():
    rng = np.random.default_rng(0)
    sim = pile(['type="capsule" size="0.04 0.06"'] * 30, [1.0] * 30)
    places = [[0.25 * (k % 2), 0.25 * (k // 2 % 2), 0.15 + 0.22 * (k // 4)] for k in range(30)]
    turns = rng.normal(size=(30, 4))
    log = sim.run(place(places, turns / np.linalg.norm(turns, axis=1, keepdims=True)), steps=1500)
    energy = energies(sim.mechanism.model, log)
    assert (energy - np.minimum.accumulate(energy)).max() < 1e-3 * energy[0]
    assert energy[-1] < 0.6 * energy[0]
    assert log.q[:, 2::7].min() > 0.04 - 1e-4
    assert sim.contacts(log.q[-1]).gap.min() > -1e-4
