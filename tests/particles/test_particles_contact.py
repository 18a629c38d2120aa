"""Large systems on obstacles: planes, spheres, boxes, bricks on bricks, with friction."""

import mujoco
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import delassus as dl
import delassus.particles as P
from delassus.particles.contact.bricks import box_contacts
from delassus.particles.contact.detection import find_touches
from delassus.particles.description.bodies import rotations
from delassus.particles.solvers.coloring import colors

WAYS = ["newton", "admm", "gradient", "sequential_impulses"]


def slider(friction, slope):
    """A particle on a slope, thrown along it, and how it moves in each step."""
    normal = (np.sin(slope), 0.0, np.cos(slope))
    return P.Particles([[0.0, 0, 0]], 2.0, obstacles=P.Plane(normal), friction=friction)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("friction", "slope"), [(0.3, 0.5), (0.8, 0.5), (0.0, 0.3)])
def test_a_particle_on_a_slope_slides_as_coulomb_says(way, friction, slope):
    system = slider(friction, slope)
    log = P.simulate_particles(system, steps=50, contact_method=way, contact_tolerance=1e-9)
    down = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    expected = max(9.81 * (np.sin(slope) - friction * np.cos(slope)), 0.0) * 0.5
    assert log.v[-1, 0] @ down == pytest.approx(expected, abs=2e-6)


def test_a_chain_on_the_ground_weighs_what_it_weighs():
    chain = P.chain((0, 0, 0), (1, 0, 0), 10, pinned="none", obstacles=[P.Plane()], friction=0.3)
    made = P.Stepper(chain, 1e-2, contact_tolerance=1e-6).step(P.initial_state(chain))
    assert made.state.contact[:, 2].sum() == pytest.approx(chain.masses.sum() * 9.81 * 1e-2, rel=1e-4)
    assert np.abs(made.state.v).max() < 1e-6


@pytest.mark.parametrize("way", ["newton", "admm"])
def test_contacts_obey_their_laws_on_a_cloth(way):
    cloth = P.cloth((0.6, 0.6), (8, 8), center=(0, 0, 0.301), obstacles=[P.Sphere((0, 0, 0), 0.3)], friction=0.4)
    stepper = P.Stepper(cloth, 1e-2, contact_method=way, contact_tolerance=1e-7, contact_iterations=1000)
    state = P.initial_state(cloth)
    for _ in range(12):
        before, made = state, stepper.step(state)
        state = made.state
    assert made.status is dl.Status.CONVERGED and len(state.touched) > 4
    (touches,) = find_touches(cloth, before.x, before.v, before.orientations, 1e-2)
    slide = np.einsum("crj,cj->cr", touches.rows[:, :, 0], state.v[touches.nodes[:, 0]])
    push, gap = state.contact, np.maximum(touches.gap / 1e-2, 0.0)
    weight = cloth.masses.sum() * 9.81 * 1e-2
    assert np.all(push[:, 2] >= -1e-12) and np.all(slide[:, 2] + gap > -1e-5)
    assert np.abs(push[:, 2] * (slide[:, 2] + gap)).max() < 1e-6 * weight
    assert np.all(np.hypot(push[:, 0], push[:, 1]) <= 0.4 * push[:, 2] + 1e-6 * weight)
    fast = np.hypot(slide[:, 0], slide[:, 1]) > 1e-3
    assert np.allclose(np.hypot(push[fast, 0], push[fast, 1]), 0.4 * push[fast, 2], atol=1e-5 * weight)
    assert np.all(np.einsum("cr,cr->c", push[:, :2], slide[:, :2]) < 1e-8)


OBSTACLES = [P.Plane((0.3, 0.1, 2.0), 0.2), P.Sphere((0.1, 0.2, 0.3), 0.7), P.Box((0.1, 0.0, 0.2), (0.5, 0.3, 0.4))]


@pytest.mark.parametrize("method", ["pgs", "sequential_impulses"])
def test_elements_and_contacts_can_be_swept_together(method):
    chain = P.chain((0, 0, 0), (0, 0, 0.3), 3, pinned="none", obstacles=[P.Plane()], friction=0.3)
    v = np.tile([0.1, 0.0, 0.0], (4, 1))
    fine = {"time_step": 1e-2, "tolerance": 1e-10, "contact_tolerance": 1e-9}
    known, found = (P.particle_step(chain, P.initial_state(chain, v=v), **fine, method=m) for m in ("cholesky", method))
    assert found.status is dl.Status.CONVERGED
    assert np.allclose(found.state.v, known.state.v, atol=1e-7) and np.allclose(found.force, known.force, atol=1e-4)


@pytest.mark.parametrize("method", ["cholesky", "cg", "pgs"])
def test_a_particle_that_a_spring_shoots_at_the_ground_stops_there(method):
    """It is at rest and far away before the step that would take it 1 m deep."""
    x = [[0, 0, 0.05], [0, 0, 1.05]]
    spring = P.Elements(P.stretch, [[0, 1]], [[2.0]], compliance=1e-5)
    shot = P.Particles(x, [0.01, 1000.0], spring, obstacles=P.Plane(), friction=0.0)
    made = P.particle_step(shot, P.initial_state(shot), time_step=1e-2, method=method, contact_tolerance=1e-8)
    assert made.state.x[0, 2] == pytest.approx(0.0, abs=1e-6)
    assert method == "pgs" or made.status is dl.Status.CONVERGED  # sweeps are slow on stiff springs, and say so


def test_a_brick_that_is_pushed_through_a_wall_stops_there():
    pile = P.tower(1, 1, half=(0.05, 0.05, 0.05), obstacles=[P.Plane(), P.Plane((-1, 0, 0), -0.5)])
    push = np.zeros((2, 3))
    push[0, 0] = 1e5
    made = P.Stepper(pile, 1e-2, contact_tolerance=1e-8).step(P.initial_state(pile), push)
    assert made.state.x[0, 0] <= 0.45 + 1e-6


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda o: type(o).__name__)
def test_normals_of_obstacles_are_the_derivatives_of_gaps(obstacle):
    x = np.random.default_rng(2).normal(size=(200, 3))
    gap, normal = obstacle.gap_and_normal(x)
    step = 1e-6
    found = np.stack([(obstacle.gap_and_normal(x + step * e)[0] - obstacle.gap_and_normal(x - step * e)[0]) / (2 * step)
                      for e in np.eye(3)], -1)  # fmt: skip
    smooth = np.abs(np.linalg.norm(found, axis=1) - 1.0) < 1e-4
    assert smooth.mean() > 0.9 and np.allclose(found[smooth], normal[smooth], atol=1e-4)
    assert np.allclose(obstacle.gap_and_normal(x - gap[:, None] * normal)[0], 0.0, atol=1e-9)


def test_boxes_meet_where_mujoco_says():
    """The depth of 200 pairs of boxes; contacts of a face rest on the same plane."""
    rng = np.random.default_rng(4)
    spec = mujoco.MjSpec()
    for name in "ab":
        body = spec.worldbody.add_body(name=name)
        body.add_freejoint()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5, 0.4, 0.3])
    model = spec.compile()
    data = mujoco.MjData(model)
    half = np.array([[0.5, 0.4, 0.3]] * 2)
    seen = 0
    for _ in range(200):
        quats = rng.normal(size=(2, 4))
        quats /= np.linalg.norm(quats, axis=1, keepdims=True)
        centers = np.array([[0.0, 0, 0], rng.normal(size=3) * 0.5])
        for k in range(2):
            data.qpos[7 * k : 7 * k + 3], data.qpos[7 * k + 3 : 7 * k + 7] = centers[k], quats[k][[3, 0, 1, 2]]
        mujoco.mj_forward(model, data)
        _, _, normal, gap, _ = box_contacts(centers, rotations(None, quats), half, np.array([[0, 1]]), 0.0)
        theirs = min((data.contact[k].dist for k in range(data.ncon)), default=None)
        assert (theirs is None) == (len(gap) == 0) or abs(theirs if theirs is not None else gap.min()) < 2e-3
        if theirs is not None and len(gap) and theirs > -0.1:
            seen += 1
            assert gap.min() == pytest.approx(theirs, abs=0.01) and normal[0] @ (centers[0] - centers[1]) > 0.0
    assert seen > 10


def test_a_brick_on_four_corners_carries_its_weight():
    pile = P.tower(1, 1)
    made = P.Stepper(pile, 1e-2, contact_tolerance=1e-9).step(P.initial_state(pile))
    assert len(made.state.touched) == 4
    assert made.state.contact[:, 2].sum() == pytest.approx(pile.bricks.masses[0] * 9.81e-2, rel=1e-6)


SMALL = [P.Sphere((0, 0, -0.5), 0.5), P.Box((0, 0, -0.01), (0.01, 0.01, 0.01)), P.Box((0, 0, -1), (1, 1, 1))]


@pytest.mark.parametrize("obstacle", SMALL, ids=["sphere", "small box", "large box"])
@pytest.mark.parametrize("turn", [0.0, 0.6])
def test_a_brick_stays_on_what_is_under_its_middle(obstacle, turn):
    """Its corners touch nothing, but for the large box."""
    turned = [[0.0, 0.0, np.sin(0.5 * turn), np.cos(0.5 * turn)]]
    brick = P.Bricks([[0, 0, 0.045]], [0.1, 0.05, 0.04], 1.2, turned)
    system = P.Particles(np.zeros((0, 3)), np.zeros(0), bricks=brick, obstacles=[obstacle])
    log = P.simulate_particles(system, steps=30, contact_tolerance=1e-7)
    assert np.allclose(log.x[-1], [[0, 0, 0.04]], atol=1e-5) and log.speed[-1] < 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_gaps_of_bricks_and_balls_are_those_of_optimisation(seed):
    """The nearest point of a box to a center, as a bounded least-squares problem."""
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    brick = P.Bricks([rng.normal(size=3)], [0.3, 0.2, 0.5], 1.0, [turn / np.linalg.norm(turn)])
    place, radius = brick.positions[0] + 2.0 * rng.normal(size=3), 0.1
    system = P.Particles(np.zeros((0, 3)), np.zeros(0), bricks=brick, obstacles=[P.Sphere(tuple(place), radius)])
    v = np.array([1e3 * (place - brick.positions[0]), [0, 0, 0]])
    (touches,) = find_touches(system, brick.positions, v, brick.orientations, 1.0)
    R = rotations(None, brick.orientations)[0]
    found = lsq_linear(R, place - brick.positions[0], (-brick.half[0], brick.half[0]), tol=1e-14)
    assert touches.gap[0] == pytest.approx(np.sqrt(2.0 * found.cost) - radius, abs=1e-6)
    assert np.allclose(touches.points[0], brick.positions[0] + R @ found.x, atol=1e-5)
    assert touches.rows[0, 2, 0] @ (touches.points[0] - place) == pytest.approx(touches.gap[0] + radius)


@pytest.mark.parametrize("way", ["newton", "admm", "sequential_impulses"])
def test_a_small_tower_stands(way):
    tower = P.tower(24, 6)
    log = P.simulate_particles(tower, time_step=5e-3, steps=10, contact_method=way, contact_iterations=400)
    assert np.abs(log.x[-1] - log.x[0]).max() < 2e-5
    assert log.speed[-1] < 1e-3


def test_a_tower_on_ice_with_a_shove_does_not_stand():
    tower = P.tower(3, 1, friction=0.0)
    v = np.zeros((tower.nodes, 3))
    v[1, 0] = 1.0
    log = P.simulate_particles(tower, P.initial_state(tower, v=v), steps=20)
    assert log.x[-1, 1, 0] - log.x[0, 1, 0] == pytest.approx(0.2, rel=2e-2)


def test_a_spinning_brick_keeps_its_momentum():
    pile = P.tower(1, 1, obstacles=(), gravity=0.0)
    v = np.array([[0.1, 0, 0], [3.0, 0.02, -2.0]])
    log = P.simulate_particles(pile, P.initial_state(pile, v=v), time_step=1e-4, steps=200)
    before, after = (P.total_momentum(pile, log[k])[1] for k in (0, -1))
    assert np.allclose(before, after, atol=2e-3 * np.abs(before).max())


@pytest.mark.parametrize(("spin", "status"), [(2.0, dl.Status.CONVERGED), (23.0, dl.Status.ITERATIONS)])
def test_a_brick_that_turns_too_far_in_a_step_is_flagged(spin, status):
    stick = P.Bricks([[0, 0, 1.0]], [0.5, 0.01, 0.01], 0.4)
    system = P.Particles(np.zeros((0, 3)), np.zeros(0), bricks=stick, gravity=np.zeros(3))
    v = np.array([[0.0, 0.0, 0.0], [3.0 * spin, spin, spin]])
    assert P.particle_step(system, P.initial_state(system, v=v), time_step=5e-3).status == status


@pytest.mark.parametrize("blend", [(1.0, 1.0), (0.5, 0.5)])
@pytest.mark.parametrize("spin", [3.0, 30.0, 100.0])
def test_a_brick_that_tumbles_fast_gains_no_energy(blend, spin):
    """A turn of a radian in a step is too much for accuracy; it may not be for stability."""
    pile = P.tower(1, 1, obstacles=(), gravity=0.0)
    v = np.array([[0.1, 0, 0], [spin, 0.02, -0.7 * spin]])
    log = P.simulate_particles(pile, P.initial_state(pile, v=v), steps=100, alpha=blend[0], beta=blend[1])
    assert len(log) == 101 and log.energy.max() <= 1.01 * log.energy[0]
    before, after = (P.total_momentum(pile, log[k])[1] for k in (0, -1))
    if spin < 100.0:
        assert np.allclose(before, after, atol=1e-6 * np.abs(before).max())


def test_penetrations_are_taken_off_by_stabilisation():
    ball = P.Particles([[0.0, 0, -0.01]], 1.0, obstacles=P.Plane())
    kept, freed = (
        P.particle_step(ball, P.initial_state(ball), time_step=1e-2, stabilization=s) for s in ("none", "post")
    )
    assert kept.state.x[0, 2] == pytest.approx(-0.01, abs=1e-6)
    assert freed.state.x[0, 2] == pytest.approx(0.0, abs=1e-6) and abs(freed.state.v[0, 2]) < 1e-6


def test_elements_of_one_colour_share_no_particle():
    cloth = P.cloth((1, 1), (12, 9))
    for group in cloth.elements:
        found = colors(group.points, cloth.n)
        assert sorted(np.concatenate(found)) == list(range(len(group)))
        assert all(len(np.unique(group.points[c])) == group.points[c].size for c in found)
        assert len(found) <= 3 * max(np.bincount(group.points.reshape(-1)))


# --- large ------------------------------------------------------------------------------------------------------------


def draped(cells, radius=0.4):
    """A cloth on a sphere, laid out on it by distances from its middle, half a millimeter above, and its state."""
    ball = P.Sphere((0, 0, 0), radius)
    cloth = P.cloth((0.3, 0.3), (cells, cells), obstacles=[ball], friction=0.6, stretching=300.0, shearing=60.0,
                    bending=2e-5, drag=0.09 / cells**2)  # fmt: skip
    flat = cloth.positions[:, :2]
    far = np.linalg.norm(flat, axis=1, keepdims=True)
    away = flat / np.where(far > 0.0, far, 1.0)
    x = (radius + 2e-4) * np.concatenate([np.sin(far / radius) * away, np.cos(far / radius)], 1)
    return cloth, P.initial_state(cloth, x=x)


@pytest.mark.parametrize("cells", [16, pytest.param(182, marks=pytest.mark.slow)])
def test_a_cloth_comes_to_rest_on_a_sphere(cells):
    """With 182 cells each way it has more than 100 000 unknowns."""
    cloth, state = draped(cells)
    log = P.simulate_particles(cloth, state, time_step=2e-2, steps=25, every=5, contact_tolerance=1e-3)
    assert np.isfinite(log.x).all() and log.contacts[-1] > 0.5 * cloth.n
    assert log.speed[-1] < 0.02
    assert np.linalg.norm(log.x[-1], axis=1).min() > 0.4 - 1e-3


@pytest.mark.slow
def test_a_tower_of_a_thousand_bricks_stands():
    tower = P.tower(1000, 20)
    log = P.simulate_particles(tower, time_step=5e-3, steps=100, every=10)
    assert np.isfinite(log.x).all()
    assert np.abs(log.x[-1] - log.x[0]).max() < 1e-4 and log.speed[-1] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rope", "cloth"])
def test_a_million_unknowns_run(kind):
    system = (P.rope((0, 0, 0), (1000.0, 0, 0), 333_400, stiffness=1e4, bending=1e-3) if kind == "rope"
              else P.cloth((1, 1), (577, 577), pinned=("left",)))  # fmt: skip
    assert system.unknowns > 0.99e6
    made = P.Stepper(system, 1e-2).step(P.initial_state(system))
    assert made.status is dl.Status.CONVERGED and made.state.v[:, 2].min() < -0.05


@pytest.mark.parametrize(("length", "mass", "time"), [(2.0**20, 1, 1), (2.0**-20, 1, 1), (1, 2.0**20, 2.0**-10)])
@pytest.mark.parametrize("what", ["cloth", "tower"])
def test_units_change_nothing(what, length, mass, time):
    """Powers of two change no bits either: nothing is compared with a number that has a unit."""

    def moved(s, m, t):
        gravity = (0, 0, -9.81 * s / t**2)
        if what == "cloth":
            system = P.cloth(
                (0.6 * s, 0.6 * s), (5, 5), center=(0, 0, 0.301 * s), obstacles=[P.Sphere((0, 0, 0), 0.3 * s)],
                density=0.2 * m / s**2, stretching=500 * m / t**2, shearing=50 * m / t**2,
                bending=1e-5 * m * s**2 / t**2, gravity=gravity,
            )  # fmt: skip
            return P.simulate_particles(system, time_step=1e-2 * t, steps=12).x[-1] / s
        half = s * np.array([0.1, 0.05, 0.04])
        system = P.tower(6, 3, half=half, density=1500 * m / s**3, gravity=gravity)
        v = np.zeros((system.nodes, 3))
        v[3], v[3 + 6] = np.array([0.3, 0.1, 0.0]) * s / t, np.array([1.0, 2.0, 3.0]) / t
        return P.simulate_particles(system, P.initial_state(system, v=v), time_step=5e-3 * t, steps=6).x[-1] / s

    assert np.array_equal(moved(length, mass, time), moved(1, 1, 1))
