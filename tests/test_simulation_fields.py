"""Height fields: balls and ellipsoids against all triangles in reach, by coal, MuJoCo and closed forms."""

import math
from dataclasses import replace

import coal
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, H, body
from delassus.simulation.geometry.fields import Field, HeightField, RoundBody

MASS, RADIUS = 0.1, 0.05
BALL = body("sphere", (RADIUS,), MASS, (0.4 * MASS * RADIUS**2,) * 3)
SPACING = 0.02
X = SPACING * (np.arange(81) - 40)


def ground(profile: np.ndarray, **options) -> dl.Ground:
    return dl.Ground(heights=np.tile(profile[:, None], (1, 41)), spacing=SPACING, **options)


STEP = np.where(X > 0.11, 0.1, 0.0)  # a riser from x = 0.10 to x = 0.12
RIDGE = np.where(np.abs(X) < 1e-9, 0.1, 0.0)


def energy(model: dl.Model, log) -> np.ndarray:
    """T + V - ½ h vᵀ∇V, since velocities are half a step off."""
    inertia = model.joints[0].inertia
    turn = Rotation.from_quat(np.array(log.q).reshape(-1, 7)[:, 3:])
    rise = turn.apply(np.array(log.v).reshape(-1, 6)[:, :3])[:, 2].reshape(log.q.shape[:-1])
    kinetic = 0.5 * inertia.mass * (log.v[..., :3] ** 2).sum(-1)
    kinetic += 0.5 * np.einsum("...i,ij,...j", log.v[..., 3:], inertia.rotational, log.v[..., 3:])
    return kinetic + inertia.mass * G * (log.q[..., 2] - 0.5 * H * rise)


def triangles(field: Field, heights: np.ndarray) -> np.ndarray:
    """(n, 3, 3) of all cells."""
    i, j = np.meshgrid(np.arange(field.rows), np.arange(field.columns), indexing="ij")
    x = np.stack([field.origin[0] + field.spacing * i, field.origin[1] + field.spacing * j, heights], -1)
    a, b, c, d = x[:-1, :-1], x[:-1, 1:], x[1:, :-1], x[1:, 1:]
    return np.concatenate([np.stack(corners, 2).reshape(-1, 3, 3) for corners in ((a, c, d), (a, d, b))])


def mesh_of(corners: np.ndarray) -> coal.BVHModelOBBRSS:
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(corners), 3 * len(corners))
    mesh.addVertices(corners.reshape(-1, 3))
    mesh.addTriangles(np.arange(3 * len(corners)).reshape(-1, 3).astype(np.uint64))
    mesh.endModel()
    return mesh


@pytest.mark.parametrize("radius", [0.03, 0.15, 0.33])
def test_the_distance_of_a_ball_is_that_of_coal_to_the_nearest_triangle(radius):
    rng = np.random.default_rng(0)
    field = Field(9, 11, 0.1, (-0.4, -0.5))
    heights = 0.15 * rng.normal(size=(9, 11))
    surface, tiny, seen = HeightField(field, heights), coal.Sphere(1e-6), 0
    mesh = mesh_of(triangles(field, heights))
    for _ in range(12):
        center = np.array([*rng.uniform(-0.1, 0.1, 2), 0.0])
        center[2] -= surface(center)[0] / surface(center)[1][2]  # on the ground
        center[2] += radius * rng.uniform(0.3, 1.1)
        place, request = coal.Transform3s(np.eye(3), center), coal.DistanceRequest()
        far = coal.distance(mesh, coal.Transform3s(), tiny, place, request, coal.DistanceResult())
        wanted = far + 1e-6 - radius
        gap, point, normal = min(surface.minima(RoundBody(center, np.full(3, radius))), key=lambda touch: touch[0])
        if wanted < 0.09 * radius:
            seen += 1
            assert gap == pytest.approx(wanted, abs=1e-7)
            np.testing.assert_allclose(np.linalg.norm(point - center), radius, rtol=1e-12)
            np.testing.assert_allclose(np.linalg.norm(normal), 1.0, rtol=1e-12)
            np.testing.assert_allclose(point, center - radius * normal, atol=1e-12)
    assert seen > 5


def test_the_distance_of_a_ball_changes_by_no_more_than_the_ball_moves():
    rng = np.random.default_rng(1)
    heights = rng.choice([0.0, 0.1, 0.3], size=(12, 12))
    surface = HeightField(Field(12, 12, SPACING, (0.0, 0.0)), heights)

    def distance(center: np.ndarray) -> float:
        return min(touch[0] for touch in surface.minima(RoundBody(center, np.full(3, RADIUS))))

    for _ in range(60):
        center = rng.uniform([0.02, 0.02, 0.0], [0.2, 0.2, 0.35])
        near = distance(center)
        if abs(near) < 0.9 * RADIUS:
            for size in (1e-2, 1e-4, 1e-7):
                move = rng.normal(size=3)
                move *= 1e-1 * size / np.linalg.norm(move)
                bound = np.linalg.norm(move) * (1.0 + 1e-6) + 1e-12
                assert abs(distance(center + move) - near) <= bound


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
    data, seen = mujoco.MjData(m), 0
    surface = HeightField(Field(7, 9, 0.1, (-0.3, -0.4)), 0.3 * heights)
    for _ in range(300):
        center = rng.uniform([-0.2, -0.3, 0.05], [0.2, 0.3, 0.35])
        data.qpos[:3], data.qpos[3:] = center, (1.0, 0.0, 0.0, 0.0)
        mujoco.mj_forward(m, data)
        gap = min(touch[0] for touch in surface.minima(RoundBody(center, np.full(3, 0.06))))
        if -0.02 < gap < -1e-6 and surface(center)[0] > 0.0:
            seen += 1
            assert data.ncon and data.contact.dist.min() == pytest.approx(gap, abs=1e-5)
    assert seen > 20


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


CARD = body("box", (0.3, 0.3, 0.02), 1.0, (0.01, 0.01, 0.02))


@pytest.mark.parametrize(
    ("shape", "size"), [("box", (0.3, 0.3, 0.02)), ("capsule", (0.02, 0.3)), ("cylinder", (0.2, 0.1))]
)
def test_shapes_that_ridges_enter_between_their_corners_are_named(shape, size):
    flat = body(shape, size, 1.0, (0.01, 0.01, 0.01))
    words = f"the {shape} '{shape}' is larger than the spacing of the ground's heights, 0.02 m.*may be 0.1 m inside"
    with pytest.warns(dl.DelassusWarning, match=words):
        dl.Simulation(flat, ground(RIDGE))


def test_shapes_on_smooth_hills_and_balls_on_ridges_are_not_named():
    dl.Simulation(CARD, ground(0.5 * X))
    dl.Simulation(CARD, ground(0.02 * X**2))
    dl.Simulation(CARD, ground(-0.02 * X**2))
    dl.Simulation(BALL, ground(RIDGE))
