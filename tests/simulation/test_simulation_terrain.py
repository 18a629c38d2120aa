"""Boxes, cylinders, capsules and hulls on ridges, spikes, risers and stairs: by coal and closed forms."""

import math
from dataclasses import replace

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, body, energy
from delassus.model.parts import Geometry
from delassus.model.placement import HERE

SPACING = 0.02
X = SPACING * (np.arange(81) - 40)
RIDGE = np.where(np.abs(X) < 1e-9, 0.1, 0.0)
STEP = np.where(X > 0.11, 0.1, 0.0)  # a riser from x = 0.10 to x = 0.12
SKIN = 2e-6  # by which terrain is allowed into shapes

SIZES = {"box": (0.2, 0.12, 0.06), "cylinder": (0.06, 0.1), "capsule": (0.03, 0.2)}
BODIES = {name: body(name, size, 1.0, (0.002, 0.003, 0.004)) for name, size in SIZES.items()}


def ground(profile: np.ndarray, **options) -> dl.Ground:
    return dl.Ground(heights=np.tile(profile[:, None], (1, 41)), spacing=SPACING, **options)


@pytest.fixture(scope="module")
def hull(tmp_path_factory) -> dl.Model:
    """A box of the same size as a mesh."""
    path = tmp_path_factory.mktemp("meshes") / "brick.obj"
    corners = 0.5 * np.array(SIZES["box"]) * np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3)
    path.write_text("".join("v {} {} {}\n".format(*x) for x in corners.tolist()))
    return replace(BODIES["box"], geometries=(Geometry("hull", 0, HERE, "mesh", (1.0,) * 3, "collision", str(path)),))


def rise_of_energy(model: dl.Model, log) -> float:
    """Above its running minimum, as a share of the largest kinetic energy so far."""
    total = energy(model, log)
    kinetic = total - model.joints[0].inertia.mass * G * log.q[..., 2]
    return float(((total - np.minimum.accumulate(total, 0)) / np.maximum.accumulate(kinetic, 0)).max())


# --- motions ----------------------------------------------------------------------------------------------------------

PLATE = body("box", (0.2, 0.12, 0.01), 1.0, (0.0012, 0.0033, 0.0045))
LYING = (0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))  # z of the body along x of the world
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def test_a_plate_rests_across_a_ridge_and_not_around_it():
    log = dl.Simulation(PLATE, ground(RIDGE)).run([0, 0, 0.15, *UPRIGHT], steps=150)
    assert log.q[-1, 2] == pytest.approx(0.105, abs=2.0 * SKIN) and np.abs(log.v[-1]).max() < 1e-6


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_no_spike_pierces_a_plate(speed):
    heights = np.zeros((81, 41))
    heights[40, 20] = 0.1
    sim = dl.Simulation(PLATE, dl.Ground(heights=heights, spacing=SPACING))
    q0 = np.array([[0, 0, 0.3, *UPRIGHT], [0.03, 0, 0.3, *UPRIGHT], [0.03, 0.02, 0.3, 0.2, 0, 0, 0.98]])
    log = sim.run(q0, np.tile([0.0, 0.0, -speed, 0.0, 0.0, 0.0], (3, 1)), steps=150)
    assert rise_of_energy(PLATE, log) < 1e-5 and not log.status.any()
    turn = Rotation.from_quat(log.q[..., 3:].reshape(-1, 4))
    tip = turn.inv().apply([0, 0, 0.1] - log.q[..., :3].reshape(-1, 3)).reshape(*log.q.shape[:2], 3)
    below = np.all(np.abs(tip[..., :2]) < [0.1, 0.06], axis=-1)
    assert below.sum() > 100 and not np.any(below & (np.abs(tip[..., 2]) < 0.005 - 1e-5))
    assert not np.any(below[1:] & below[:-1] & (tip[1:, :, 2] * tip[:-1, :, 2] < 0.0))


@pytest.mark.parametrize("speed", [1.0, 3.0, 10.0])
def test_a_plate_does_not_pass_a_riser(speed):
    sim = dl.Simulation(PLATE, ground(STEP, friction=0.0))
    log = sim.run([-0.2, 0, 0.005, *UPRIGHT], [speed, 0, 0, 0, 0, 0], steps=300)
    assert rise_of_energy(PLATE, log) < 4e-3  # a corner meets the riser up to h v late, and is lifted out of it
    assert np.all((log.q[:, 0] < 0.03) | (log.q[:, 2] > 0.01))  # in front of it, or above the floor


def test_a_plate_slides_over_level_points_of_the_grid_as_over_a_plane():
    start, speed = [-0.2, 0.0, 0.005, *UPRIGHT], [0.5, 0.1, 0.0, 0.0, 0.0, 0.0]
    log = dl.Simulation(PLATE, ground(0.0 * X, friction=0.0)).run(start, speed, steps=200)
    np.testing.assert_allclose(log.q[-1, :3], [-0.1, 0.02, 0.005], atol=1e-9)


STAIRS = np.where(np.floor(X / 0.4) % 2 == 0, 0.1, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "turn", "height"),
    [("box", UPRIGHT, 0.03), ("cylinder", UPRIGHT, 0.05), ("capsule", LYING, 0.03), ("mesh", UPRIGHT, 0.03)],
)
def test_shapes_rest_across_a_ridge_and_gain_no_energy_on_rough_ground(shape, turn, height, hull):
    model = hull if shape == "mesh" else BODIES[shape]
    log = dl.Simulation(model, ground(RIDGE)).run([0, 0, 0.2, *turn], steps=300)
    assert log.q[-1, 2] == pytest.approx(0.1 + height, abs=2.0 * SKIN) and np.abs(log.v[-1]).max() < 1e-4
    rng = np.random.default_rng(1)
    hills = 0.05 * np.sin(5.0 * X)[:, None] * np.cos(4.0 * X[:41])
    for heights in (np.tile(STAIRS[:, None], (1, 41)), hills, rng.choice([0.0, 0.1], size=(81, 41))):
        q0 = np.zeros((16, 7))
        q0[:, :2], q0[:, 2] = rng.uniform(-0.3, 0.3, (16, 2)), 0.4
        q0[:, 3:] = Rotation.random(16, rng=rng).as_quat()
        sim = dl.Simulation(model, dl.Ground(heights=heights, spacing=SPACING, friction=0.5))
        log = sim.run(q0, rng.normal(size=(16, 6)) * [1.5, 1.5, 1.5, 3, 3, 3], steps=400)
        assert rise_of_energy(model, log) < 4e-3 and not np.any(log.status & dl.Mark.FROZEN)


# --- geometry ---------------------------------------------------------------------------------------------------------


def contacts_of(model: dl.Model, field: dl.Ground, q: np.ndarray):
    return dl.Simulation(model, field, max_contacts=4).contacts(q)


def test_a_hull_that_is_a_box_touches_a_ridge_as_the_box_does(hull):
    turn = Rotation.from_euler("z", [[0.0], [0.02], [0.3]])
    q = np.concatenate([np.tile([0.01, 0.0, 0.13 - 1e-3], (3, 1)), turn.as_quat()], 1)
    box, brick = (contacts_of(model, ground(RIDGE), q) for model in (BODIES["box"], hull))
    for k in range(3):
        ends = [sorted(found.point[k][found.gap[k] < 0.0].tolist()) for found in (box, brick)]
        assert np.ptp(ends[0], axis=0).max() > 0.1
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)


def test_a_box_on_a_ridge_touches_it_where_the_ridge_leaves_the_box():
    found = contacts_of(BODIES["box"], ground(RIDGE), np.array([0.0, 0.0, 0.13, *UPRIGHT]))
    near = found.gap < 1e-5
    assert near.sum() >= 2 and np.ptp(found.point[near, 1]) == pytest.approx(0.12)
    np.testing.assert_allclose(found.normal[near], np.tile([0, 0, 1.0], (near.sum(), 1)), atol=1e-9)


def test_edges_that_cross_touch_along_their_cross_product():
    """A box on one of its edges, turned about the vertical, across a ridge."""
    turn = Rotation.from_euler("z", 0.4) * Rotation.from_euler("x", 0.25 * math.pi)
    lowest = -(
        turn.apply(0.5 * np.array(SIZES["box"]) * np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3))[:, 2]
    )
    q = np.array([0.0, 0.0, 0.1 + lowest.max() - 1e-3, *turn.as_quat()])
    found = contacts_of(BODIES["box"], ground(RIDGE), q)
    deepest = found.gap.argmin()
    np.testing.assert_allclose(found.normal[deepest], [0, 0, 1.0], atol=1e-9)
    assert found.gap[deepest] == pytest.approx(-1e-3 + SKIN, abs=1e-9)


def mesh_of(field: dl.Ground) -> coal.BVHModelOBBRSS:
    grid, mesh = field.field, coal.BVHModelOBBRSS()
    i, j = np.meshgrid(np.arange(grid.rows), np.arange(grid.columns), indexing="ij")
    x = np.stack([grid.origin[0] + grid.spacing[0] * i, grid.origin[1] + grid.spacing[1] * j, field.heights], -1)
    a, b, c, d = x[:-1, :-1], x[:-1, 1:], x[1:, :-1], x[1:, 1:]
    corners = np.concatenate([np.stack(three, 2).reshape(-1, 3, 3) for three in ((a, c, d), (a, d, b))])
    mesh.beginModel(len(corners), 3 * len(corners))
    mesh.addVertices(corners.reshape(-1, 3))
    mesh.addTriangles(np.arange(3 * len(corners)).reshape(-1, 3).astype(np.uint64))
    mesh.endModel()
    return mesh


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("box", coal.Box(*SIZES["box"])),
        ("cylinder", coal.Cylinder(*SIZES["cylinder"])),
        ("capsule", coal.Capsule(*SIZES["capsule"])),
    ],
)
def test_shapes_above_a_rough_field_are_no_farther_from_it_than_coal_says(name, shape):
    """Corners count as near the planes of the triangles below them, and are farther from those beside."""
    rng, count = np.random.default_rng(0), 3000
    rough = dl.Ground(heights=rng.uniform(0.0, 0.03, (41, 41)), spacing=0.03)
    turns, q, mesh = Rotation.random(count, rng=rng), np.zeros((count, 7)), mesh_of(rough)
    q[:, :2], q[:, 2] = rng.uniform(-0.2, 0.2, (count, 2)), rng.uniform(0.05, 0.13, count)
    q[:, 3:] = turns.as_quat()
    gap = contacts_of(BODIES[name], rough, q).gap.min(-1)
    places = [coal.Transform3s(R, x) for R, x in zip(turns.as_matrix(), q[:, :3], strict=True)]
    request, none = coal.DistanceRequest(), coal.Transform3s()
    wanted = np.array([coal.distance(mesh, none, shape, place, request, coal.DistanceResult()) for place in places])
    near = (wanted > 1e-4) & (wanted < 5e-3)
    error = gap[near] - wanted[near]
    assert near.sum() > 50 and np.mean(np.abs(error) < 1e-5) > 0.75
    assert np.mean(error > 1e-5) < 0.03 and error.max() < 1e-3
    assert np.mean(gap[wanted <= 0.0] < 0.0) > 0.97
    assert not np.any(gap[wanted > 1e-4] < 0.0)
