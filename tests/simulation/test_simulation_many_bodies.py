"""Scenes of many free bodies, which are stepped by loops: against straight-line steps, mechanics and MuJoCo."""

import ctypes

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning
from delassus.simulation.checks import SimulationError
from delassus.step.bodies.kernels import simulate_bodies

BALL, BOX, CAPSULE = ("sphere", "0.05"), ("box", "0.05 0.07 0.04"), ("capsule", "0.04 0.06")


def xml(shapes, masses=None, gravity="0 0 -9.81", plane=True):
    bodies = "".join(
        f'<body name="b{k}"><freejoint/><geom name="g{k}" type="{kind}" size="{size}" '
        f'mass="{1.0 if masses is None else masses[k]}" friction="0.6 0 0" condim="3"/></body>'
        for k, (kind, size) in enumerate(shapes)
    )
    ground = '<geom type="plane" size="9 9 .1" friction="0.6 0 0" condim="3"/>' if plane else ""
    options = f'<option gravity="{gravity}" cone="elliptic" timestep="0.001"/>'
    return f"<mujoco>{options}<worldbody>{ground}{bodies}</worldbody></mujoco>"


def simulation(shapes, ground=None, masses=None, gravity="0 0 -9.81", **options):
    model = dl.load(xml(shapes, masses, gravity))
    return dl.Simulation(model, ground=ground or dl.Ground(friction=0.6), colliding=[("g*", "g*")], **options)


def placed(places, turns=None):
    q = np.zeros((len(places), 7))
    q[:, :3], q[:, 6] = places, 1.0
    if turns is not None:
        q[:, 3:] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    return q.ravel()


def heights_of(log):
    return log.q[..., 2::7]


def momenta(model, q, v):
    """Linear and angular momentum (3,) about the world's origin, of bodies with their centre of mass at 0."""
    linear, angular = np.zeros(3), np.zeros(3)
    for k, joint in enumerate(model.joints):
        p, (x, y, z, w) = q[7 * k : 7 * k + 3], q[7 * k + 3 : 7 * k + 7]
        u = np.array([x, y, z])
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        R = np.eye(3) + 2 * w * cross + 2 * (np.outer(u, u) - u @ u * np.eye(3))
        m, own = joint.inertia.mass, v[6 * k : 6 * k + 6]
        push = m * R @ own[:3]
        linear += push
        angular += np.cross(p, push) + R @ np.array(joint.inertia.rotational) @ own[3:]
    return linear, angular


# --- the same steps as straight-line code -----------------------------------------------------------------------------

THREE = placed([[0, 0, 0.06], [0.03, 0, 0.17], [-0.02, 0.03, 0.28]])


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_loops_move_balls_as_straight_code_does(restitution):
    v0, ground = np.random.default_rng(1).normal(size=18), dl.Ground(friction=0.6, restitution=restitution)
    loops, straight = (
        simulation([BALL] * 3, ground, method=method, max_contacts=8).run(THREE, v0, steps=150)
        for method in ("sweeps", "dual")
    )
    np.testing.assert_allclose(loops.q, straight.q, atol=1e-8)
    assert not loops.status.any()


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [[CAPSULE] * 2, [BOX, CAPSULE], [BOX, BALL]])
def test_loops_move_other_shapes_as_straight_code_does(shapes):
    q0 = placed([[0, 0, 0.16], [0.03, 0.01, 0.3]], np.array([[0.1, 0.7, 0, 0.7], [0.7, 0.1, 0.05, 0.7]]))
    loops, straight = (
        simulation(shapes, method=method, max_contacts=20).run(q0, steps=150) for method in ("sweeps", "dual")
    )
    np.testing.assert_allclose(loops.q, straight.q, atol=1e-6)


# --- what is chosen, and what is refused ------------------------------------------------------------------------------


def test_seven_free_bodies_are_stepped_by_loops():
    assert simulation([BALL] * 7).scene.many_bodies is not None
    assert simulation([BALL] * 6).scene.many_bodies is None


def test_robots_without_free_bodies_are_not_stepped_by_loops():
    with pytest.raises(SimulationError, match="it has no free body"):
        dl.Simulation(dl.load("quadruped"), method="sweeps")


def test_scenes_without_a_matrix_have_no_dense_problem():
    sim = simulation([BALL] * 7)
    with pytest.raises(SimulationError, match="7 free bodies"):
        sim.problem(sim.start(placed([[0.2 * k, 0, 0.05] for k in range(7)])))


def test_fifty_balls_and_twenty_boxes_are_short_programs():
    for shapes in ([BALL] * 50, [BOX] * 20):
        assert sum(simulate_bodies.program(simulation(shapes).scene).count().values()) < 100_000


# --- eight bodies, one compiled step ----------------------------------------------------------------------------------

EIGHT = [("sphere", "0.05")] * 8


@pytest.fixture(scope="module")
def pile():
    return simulation(EIGHT)


@pytest.fixture(scope="module")
def fallen(pile):
    q0 = placed([[0.02 * (k % 3) - 0.02, 0.03 * (k % 2), 0.06 + 0.11 * k] for k in range(8)])
    return pile.run(q0, steps=400)


def test_a_falling_pile_is_solved_and_does_not_sink(fallen):
    assert not fallen.status.any()
    assert heights_of(fallen).min() > 0.05 - 1e-6


def test_balls_of_a_pile_do_not_enter_each_other(fallen, pile):
    assert pile.contacts(fallen.q[-1]).gap.min() > -1e-6


def test_the_ground_carries_the_weight_of_a_pile_at_rest(pile):
    places = [[0.2 * (k % 4), 0.2 * (k // 4), 0.05] for k in range(8)]
    log = pile.run(placed(places), steps=60)
    np.testing.assert_allclose(log.contacts.contact_force[-1, :, 2].sum(), 8 * 9.81, rtol=1e-9)
    np.testing.assert_allclose(log.q[-1], log.q[0], atol=1e-12)


def test_items_of_a_batch_have_the_bits_that_they_have_alone(pile, fallen):
    rng = np.random.default_rng(0)
    q0 = fallen.q[[0, 100, 200]] + 0.0
    v0 = fallen.v[[0, 100, 200]] + 1e-3 * rng.normal(size=(3, 48))
    batch = pile.run(q0, v0, steps=20)
    alone = [pile.run(q0[k], v0[k], steps=20) for k in range(3)]
    for k in range(3):
        np.testing.assert_array_equal(batch.q[:, k], alone[k].q)


def test_overlapping_starts_are_kept_and_pushed_apart(pile):
    places = np.array([[0.3 * k, 0, 0.05] for k in range(8)])
    places[1] = places[0] + [0.02, 0.0, 0.0]
    places[2] = places[3]  # coincident centres
    with pytest.warns(DelassusWarning, match="starts there"):
        log = pile.run(placed(places), steps=400)
    assert np.isfinite(log.q).all()
    assert pile.contacts(log.q[-1]).gap.min() > -1e-3


def test_more_contacts_than_slots_are_flagged_and_the_deepest_are_solved_for():
    sim = simulation(EIGHT, max_contacts=4)
    log = sim.run(placed([[0.3 * k, 0, 0.05] for k in range(8)]), steps=3)
    assert (np.asarray(log.status) & int(dl.simulation.Mark.MANY_CONTACTS)).any()


@pytest.mark.slow
def test_bodies_that_meet_in_space_keep_their_momenta():
    sim = simulation([BOX] * 8, gravity="0 0 0", ground=dl.Ground(friction=0.6, height=-100.0))
    rng = np.random.default_rng(2)
    q0 = placed([[0.2 * (k % 2), 0.2 * (k // 2 % 2), 0.2 * (k // 4)] for k in range(8)], rng.normal(size=(8, 4)))
    v0 = rng.normal(size=(8, 6))
    v0[:, :3] = -3.0 * (q0.reshape(8, 7)[:, :3] - 0.1)
    log = sim.run(q0, v0.ravel(), steps=300)
    first, last = (momenta(sim.model, log.q[k], log.v[k]) for k in (0, -1))
    assert log.contacts.contact_impulse[:, :, 2].max() > 0.0
    np.testing.assert_allclose(last[0], first[0], atol=1e-12)
    np.testing.assert_allclose(last[1], first[1], atol=1e-12)


# --- scenes that others use -------------------------------------------------------------------------------------------


STACK = placed([[0, 0, 0.1 + 0.2 * k] for k in range(10)])


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1e-3, 1e3], ids=["lighter upwards", "heavier upwards"])
def test_boxes_whose_masses_differ_by_a_thousand_stay_at_rest(ratio):
    masses = np.geomspace(1.0, ratio, 10)
    sim = simulation([("box", "0.1 0.1 0.1")] * 10, masses=list(masses))
    log = sim.run(STACK, steps=500, every=100)
    assert not log.status.any()
    assert np.abs(log.q - log.q[0]).max() < 1e-9
    contacts = log.contacts
    ground = contacts.contact_force[-1, :, 2] * (contacts.contact[-1] < sim.scene.ground_candidates)
    np.testing.assert_allclose(ground.sum(), 9.81 * masses.sum(), rtol=1e-6)


@pytest.mark.parametrize("n", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_a_cube_of_balls_stays_at_rest(n):
    """Boxes around balls touch also across the diagonals, where balls are far from each other."""
    sim = simulation([BALL] * n**3)
    places = [[0.1 * i, 0.1 * j, 0.05 + 0.1 * k] for k in range(n) for j in range(n) for i in range(n)]
    log = sim.run(placed(places), steps=100, every=20)
    assert not log.status.any()
    assert np.abs(log.q - log.q[0]).max() < 1e-6


@pytest.mark.slow
def test_elastic_balls_keep_their_energy():
    n = 5
    ground = dl.Ground(friction=0.0, restitution=1.0, height=-100.0)
    sim = simulation([BALL] * n**3, ground, gravity="0 0 0")
    rng = np.random.default_rng(0)
    places = [[0.15 * i, 0.15 * j, 0.15 * k] for k in range(n) for j in range(n) for i in range(n)]
    v0 = np.zeros((n**3, 6))
    v0[:, :3] = rng.normal(size=(n**3, 3))
    log = sim.run(placed(places), v0.ravel(), steps=1000, every=100)
    energy = 0.5 * (log.v.reshape(len(log.v), -1, 6)[..., :3] ** 2).sum((1, 2))
    np.testing.assert_allclose(energy, energy[0], rtol=1e-2)


@pytest.mark.slow
def test_capsules_fall_to_a_heap():
    rng = np.random.default_rng(3)
    sim = simulation([CAPSULE] * 30)
    places = [[0.21 * (k % 3), 0.21 * (k // 3 % 3), 0.12 + 0.21 * (k // 9)] for k in range(30)]
    log = sim.run(placed(places, rng.normal(size=(30, 4))), steps=500, every=100)
    assert sim.contacts(log.q[-1]).gap.min() > -1e-3
    assert heights_of(log)[-1].max() < 0.3


@pytest.mark.slow
def test_dominoes_fall_one_after_the_other():
    count = 10
    sim = simulation([("box", "0.01 0.03 0.06")] * count)
    q0 = placed([[0.06 * k, 0, 0.06] for k in range(count)])
    v0 = np.zeros((count, 6))
    v0[0, [0, 4]] = 0.3, 5.0  # about its lower edge
    log = sim.run(q0, v0.ravel(), steps=1200, every=10)
    tilt = 1.0 - 2.0 * (log.q.reshape(len(log.q), count, 7)[..., 3:5] ** 2).sum(-1)
    down = [int(np.argmax(tilt[:, k] < 0.8)) for k in range(count)]
    assert min(down) > 0 and down == sorted(down)


@pytest.mark.slow
def test_falling_balls_agree_with_mujoco_before_they_scatter():
    text = xml([BALL] * 8)
    model, data = mujoco.MjModel.from_xml_string(text), None
    data = mujoco.MjData(model)
    q0 = placed([[0.3 * k, 0, 0.3 + 0.01 * k] for k in range(8)])
    own = q0.reshape(8, 7)
    data.qpos[:] = np.concatenate([own[:, :3], own[:, [6, 3, 4, 5]]], 1).ravel()
    for _ in range(200):
        mujoco.mj_step(model, data)
    log = simulation([BALL] * 8).run(q0, steps=200)
    np.testing.assert_allclose(log.q[-1].reshape(8, 7)[:, :3], data.qpos.reshape(8, 7)[:, :3], atol=1e-9)


def test_a_stack_moves_alone_as_in_batches_of_any_size():
    """Its masses grow upwards, so steps take different numbers of sweeps."""
    sim = simulation([BOX] * 5, masses=[3.0**k for k in range(5)], method="sweeps", max_contacts=32)
    q = placed([[0.004 * k, 0.0, 0.04 + 0.0801 * k] for k in range(5)])
    alone = sim.run(q, steps=40)
    for count in (2, 8, 9):
        log = sim.run(np.tile(q, (count, 1)), steps=40)
        np.testing.assert_array_equal(log.q, np.repeat(alone.q[:, None], count, axis=1))


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fill_memory():
    """A function that fills memory allocated from now on with a byte; 0 stops it. For the allocator of glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        pytest.skip("the C library has no mallopt")
    perturb = -6
    yield lambda byte: mallopt(perturb, byte ^ 0xFF)
    mallopt(perturb, 0)


def test_steps_do_not_depend_on_what_memory_held_before(fill_memory):
    """Hammers that bounce at oblique angles, where friction with full restitution would add energy."""
    boxes = '<geom type="box" size=".1 .01 .01" mass=".2"/><geom type="box" pos=".1 0 0" size=".02 .05 .02" mass=".8"/>'
    model = dl.load(f'<mujoco><worldbody><body pos="0 0 .2"><freejoint/>{boxes}</body></worldbody></mujoco>')
    ground = dl.Ground(friction=0.3, restitution=1.0)
    sim = dl.Simulation(model, ground, method="sweeps", max_contacts=16)
    rng = np.random.default_rng(5)
    q, v = np.tile(model.neutral(), (64, 1)), rng.normal(size=(64, 6)) * np.repeat([1.5, 25.0], 3)
    q[:, 2] = 0.2
    q[:, 3:] = rng.normal(size=(64, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    first = sim.run(q, v, steps=200)
    fill_memory(0x7F)  # as numbers, 1e306
    second = sim.run(q, v, steps=200)
    np.testing.assert_array_equal(second.q, first.q)
    assert (first.status & dl.simulation.Mark.ENERGY_LIMITED).any()
