"""Height fields: balls and ellipsoids against all triangles in reach, by coal, MuJoCo and closed forms."""

import math
from dataclasses import replace

import coal
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, body, energy
from delassus.geometry.fields import Field, HeightField
from refusals import refuses

MASS, RADIUS = 0.1, 0.05
BALL = body("sphere", (RADIUS,), MASS, (0.4 * MASS * RADIUS**2,) * 3)
SPACING = 0.02
X = SPACING * (np.arange(81) - 40)


def ground(profile: np.ndarray, **options) -> dl.Ground:
    return dl.Ground(heights=np.tile(profile[:, None], (1, 41)), spacing=SPACING, **options)


STEP = np.where(X > 0.11, 0.1, 0.0)  # a riser from x = 0.10 to x = 0.12
RIDGE = np.where(np.abs(X) < 1e-9, 0.1, 0.0)


def triangles(field: Field, heights: np.ndarray) -> np.ndarray:
    """(n, 3, 3) of all cells."""
    i, j = np.meshgrid(np.arange(field.rows), np.arange(field.columns), indexing="ij")
    x = np.stack([field.origin[0] + field.spacing[0] * i, field.origin[1] + field.spacing[1] * j, heights], -1)
    a, b, c, d = x[:-1, :-1], x[:-1, 1:], x[1:, :-1], x[1:, 1:]
    return np.concatenate([np.stack(corners, 2).reshape(-1, 3, 3) for corners in ((a, c, d), (a, d, b))])


def mesh_of(corners: np.ndarray) -> coal.BVHModelOBBRSS:
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(corners), 3 * len(corners))
    mesh.addVertices(corners.reshape(-1, 3))
    mesh.addTriangles(np.arange(3 * len(corners)).reshape(-1, 3).astype(np.uint64))
    mesh.endModel()
    return mesh


def nearest(radius: float, field: dl.Ground, centers: np.ndarray):
    """Gaps (n,), points and normals (n, 3) of the nearest contacts of balls at `centers` (n, 3)."""
    q = np.concatenate([centers, np.tile([0.0, 0, 0, 1], (len(centers), 1))], 1)
    contacts = dl.Simulation(body("sphere", (radius,), 1.0, (1e-3, 1e-3, 1e-3)), field).contacts(q)
    first = contacts.gap.argmin(-1)
    return tuple(np.asarray(x)[np.arange(len(q)), first] for x in contacts[:3])


def surface(field: dl.Ground, x: np.ndarray) -> float:
    """How far a point is above the ground, straight down."""
    distance, normal = HeightField(field.field, field.heights)(x)
    return float(distance / normal[2])


@pytest.mark.parametrize("radius", [0.03, 0.15, 0.33])
def test_the_distance_of_a_ball_is_that_of_coal_to_the_nearest_triangle(radius):
    rng = np.random.default_rng(0)
    rough = dl.Ground(heights=0.15 * rng.normal(size=(9, 11)), spacing=0.1)
    centers = np.concatenate([rng.uniform(-0.1, 0.1, (40, 2)), np.zeros((40, 1))], 1)
    centers[:, 2] = [radius * rng.uniform(0.3, 1.1) - surface(rough, x) for x in centers]
    mesh, tiny = mesh_of(triangles(rough.field, rough.heights)), coal.Sphere(1e-6)
    gap, point, normal = nearest(radius, rough, centers)
    for k, center in enumerate(centers):
        place, result = coal.Transform3s(np.eye(3), center), coal.DistanceResult()
        far = coal.distance(mesh, coal.Transform3s(), tiny, place, coal.DistanceRequest(), result)
        wanted = far + 1e-6 - radius
        if wanted < 0.09 * radius:
            assert gap[k] == pytest.approx(wanted, abs=1e-7)
    assert (gap < 0.09 * radius).sum() > 20
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(point, centers - radius * normal, atol=1e-12)


def test_the_distance_of_a_ball_changes_by_no_more_than_the_ball_moves():
    rng = np.random.default_rng(1)
    spikes = dl.Ground(heights=rng.choice([0.0, 0.1, 0.3], size=(12, 12)), spacing=SPACING, origin=(0.0, 0.0))
    centers = rng.uniform([0.02, 0.02, 0.0], [0.2, 0.2, 0.35], (2000, 3))
    moves = rng.normal(size=(2000, 3))
    moves *= 10.0 ** rng.uniform(-8, -3, (2000, 1)) / np.linalg.norm(moves, axis=1)[:, None]
    one, other = (nearest(RADIUS, spikes, x)[0] for x in (centers, centers + moves))
    near = np.abs(one) < 0.9 * RADIUS
    bound = np.linalg.norm(moves, axis=1) * (1.0 + 1e-6) + 1e-12
    assert near.sum() > 200 and np.all(np.abs(other - one)[near] <= bound[near])


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("restitution", [0.0, 0.8])
def test_a_ball_larger_than_the_spacing_does_not_pass_a_riser(speed, restitution):
    sim = dl.Simulation(BALL, ground(STEP, restitution=restitution, friction=0.0))
    log = sim.run([0, 0, RADIUS, 0, 0, 0, 1.0], [speed, 0, 0, 0, 0, 0], steps=300)
    spent = energy(BALL, log)
    assert np.all(spent <= spent[0] * (1.0 + 1e-9)) and not log.status.any()
    wall = 0.1 - 0.2 * RADIUS * (math.sqrt(26.0) - 1.0)  # where it touches the floor and the riser, of slope 5
    low = log.q[:, 2] < RADIUS + 1e-3
    assert log.q[low, 0].max() < wall + 2e-4
    assert restitution or log.q[low, 0].max() > wall - 2e-4


def test_a_ball_rests_on_the_crest_of_a_ridge_and_not_inside():
    log = dl.Simulation(BALL, ground(RIDGE)).run([0, 0, 0.2, 0, 0, 0, 1.0], steps=200)
    assert log.q[-1, 2] == pytest.approx(0.1 + RADIUS, abs=1e-6) and np.abs(log.v[-1]).max() < 1e-6


def test_a_ball_beside_a_ridge_rolls_off_and_gains_nothing():
    sim = dl.Simulation(BALL, ground(RIDGE))
    q0 = np.tile([0, 0, 0.2, 0, 0, 0, 1.0], (4, 1))
    q0[:, 0] = [0.003, 0.01, -0.02, 0.03]
    log = sim.run(q0, steps=600)
    spent = energy(BALL, log)
    assert np.all(spent <= spent[0] + 1e-9)
    np.testing.assert_allclose(log.q[-1, :, 2], RADIUS, atol=1e-6)


def test_a_ball_lies_in_a_corner_of_a_floor_and_two_walls():
    """Gravity leans towards both walls."""
    heights = np.where((X[:, None] > 0.11) | (X[None, :] > 0.11), 0.2, 0.0)
    leaning = replace(BALL, gravity=(2.0, 2.0, -G))
    sim = dl.Simulation(leaning, dl.Ground(heights=heights, spacing=SPACING, friction=0.5))
    log = sim.run([0.05, 0.05, RADIUS, 0, 0, 0, 1.0], steps=500)
    wall = 0.1 - 0.1 * RADIUS * (math.sqrt(101.0) - 1.0)
    assert np.abs(log.q[-1, :2] - wall).max() < 1e-6 and np.abs(log.v[-1]).max() < 1e-8
    assert (sim.contacts(log.q[-1]).gap < 1e-6).sum() == 3


def test_a_field_is_the_one_of_mujoco():
    rng = np.random.default_rng(2)
    heights = rng.uniform(0.0, 1.0, size=(7, 9))
    xml = """<mujoco><asset><hfield name="f" nrow="9" ncol="7" size=".3 .4 .3 1"/></asset>
      <worldbody><geom type="hfield" hfield="f"/><body><freejoint/><geom type="sphere" size=".06" mass="1"/></body>
      </worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    m.hfield_data[:] = heights.T.ravel()  # its rows are along y
    data, field = mujoco.MjData(m), dl.Ground(heights=0.3 * heights, spacing=0.1)
    centers = rng.uniform([-0.2, -0.3, 0.05], [0.2, 0.3, 0.35], (300, 3))
    gap = nearest(0.06, field, centers)[0]
    chosen = [k for k in range(300) if -0.02 < gap[k] < -1e-6 and surface(field, centers[k]) > 0.0]
    assert len(chosen) > 20
    for k in chosen:
        data.qpos[:3], data.qpos[3:] = centers[k], (1.0, 0.0, 0.0, 0.0)
        mujoco.mj_forward(m, data)
        assert data.contact.dist.min() == pytest.approx(gap[k], abs=1e-5)


def test_an_ellipsoid_on_a_slope_touches_where_it_does_on_a_plane():
    angle, halves = 0.3, (0.1, 0.15, 0.05)
    egg = body("ellipsoid", halves, 1.0, (0.005, 0.0025, 0.0065))
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    flat = dl.Simulation(egg, dl.Ground(normal=normal))
    slope = dl.Simulation(egg, ground(math.tan(angle) * X))
    rng = np.random.default_rng(3)
    for _ in range(10):
        q = np.array([0.0, 0.0, rng.uniform(0.1, 0.14), *Rotation.random(rng=rng).as_quat()])
        wanted, contacts = flat.contacts(q), slope.contacts(q)
        nearest = contacts.gap.argmin()
        assert contacts.gap[nearest] == pytest.approx(wanted.gap[0], abs=1e-12)
        np.testing.assert_allclose(contacts.point[nearest], wanted.point[0], atol=1e-9)
        np.testing.assert_allclose(contacts.normal[nearest], wanted.normal[0], atol=1e-9)


ROUND = {
    "sphere": body("sphere", (0.05,), 1.0, (0.001, 0.001, 0.001)),
    "capsule": body("capsule", (0.05, 0.2), 1.0, (0.006, 0.006, 0.0012)),
    "ellipsoid": body("ellipsoid", (0.1, 0.08, 0.05), 1.0, (0.00178, 0.0025, 0.00328)),
}


@pytest.mark.parametrize("shape", ROUND)
def test_round_shapes_thrown_onto_stairs_hills_and_spikes_gain_no_energy(shape):
    """Its largest rise above its running minimum, as a share of the largest kinetic energy so far."""
    rng, model = np.random.default_rng(4), ROUND[shape]
    x = SPACING * (np.arange(201) - 100)
    stairs = np.tile(np.where(np.floor(x / 0.4) % 2 == 0, 0.1, 0.0)[:, None], (1, 201))
    hills = 0.1 * np.sin(5.0 * x)[:, None] * np.cos(4.0 * x)[None, :]
    for heights in (stairs, hills, rng.choice([0.0, 0.1], size=(201, 201))):
        sim = dl.Simulation(model, dl.Ground(heights=heights, spacing=SPACING, friction=0.5))
        q0 = np.zeros((16, 7))
        q0[:, :2], q0[:, 2] = rng.uniform(-0.5, 0.5, (16, 2)), 0.4
        q0[:, 3:] = Rotation.random(16, rng=rng).as_quat()
        log = sim.run(q0, rng.normal(size=(16, 6)) * [1.5, 1.5, 1.5, 3, 3, 3], steps=400)
        spent = energy(model, log)
        kinetic = spent - model.joints[0].inertia.mass * G * log.q[..., 2]
        rise = spent - np.minimum.accumulate(spent, 0)
        assert np.all(rise <= 1e-3 * np.maximum.accumulate(kinetic, 0))


def test_a_cylinder_rolls_on_a_field_that_is_a_slope_as_on_the_slope():
    wheel, angle = body("cylinder", (0.05, 0.04), 1.0, (0.0008, 0.0008, 0.00125)), 0.1
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    q0 = np.array([0.2, 0.0, 0.2 * math.tan(angle) + 0.05 / math.cos(angle), math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    runs = [
        dl.Simulation(wheel, given).run(q0, steps=300)
        for given in (dl.Ground(normal=normal), ground(math.tan(angle) * X))
    ]
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-6)
    assert runs[0].q[-1, 0] < 0.18


def test_a_ball_that_starts_in_a_wall_is_moved_aside_and_not_up():
    wall = np.where(X > 0.0, 1000.0, 0.0)
    state = dl.Simulation(BALL, ground(wall)).start([-0.02, 0, RADIUS, 0, 0, 0, 1.0])
    assert -0.1 < state.q[0] < -0.04 and state.q[2] < 2.0 * RADIUS


@pytest.mark.parametrize(
    ("shape", "size"), [("sphere", (1.5,)), ("capsule", (1.5, 0.1)), ("ellipsoid", (0.1, 0.1, 1.5))]
)
def test_balls_that_would_meet_too_many_cells_are_refused(shape, size):
    with refuses("out-of-range", "the", shape, "1.5", "0.03"):
        dl.Simulation(body(shape, size, 1.0, (1.0, 1.0, 1.0)), ground(RIDGE))


def test_heights_beyond_all_mountains_are_refused():
    with refuses("out-of-range", "300"):
        dl.Ground(heights=[[0.0, 1e300], [0.0, 0.0]])
