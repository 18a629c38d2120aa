"""Boxes, plates, cylinders, capsules and hulls on height fields: ridges, spikes, risers, stairs; by coal and closed forms."""

import math
from dataclasses import replace

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, H, body
from delassus.geometry.fields import HeightField
from delassus.geometry.shapes.registry import SHAPES, Placed
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


def energy(model: dl.Model, log) -> np.ndarray:
    """T + V - ½ h vᵀ∇V, since velocities are half a step off."""
    inertia = model.joints[0].inertia
    turn = Rotation.from_quat(np.array(log.q).reshape(-1, 7)[:, 3:])
    rise = turn.apply(np.array(log.v).reshape(-1, 6)[:, :3])[:, 2].reshape(log.q.shape[:-1])
    kinetic = 0.5 * inertia.mass * (log.v[..., :3] ** 2).sum(-1)
    kinetic += 0.5 * np.einsum("...i,ij,...j", log.v[..., 3:], inertia.rotational, log.v[..., 3:])
    return kinetic + inertia.mass * G * (log.q[..., 2] - 0.5 * H * rise)


def rise_of_energy(model: dl.Model, log) -> float:
    """Above its running minimum, as a share of the largest kinetic energy so far."""
    total = energy(model, log)
    kinetic = total - model.joints[0].inertia.mass * G * log.q[..., 2]
    return float(((total - np.minimum.accumulate(total, 0)) / np.maximum.accumulate(kinetic, 0)).max())


LYING = (0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))  # z of the body along x of the world


@pytest.mark.parametrize(
    ("shape", "turn", "height"),
    [("box", (0, 0, 0, 1.0), 0.03), ("cylinder", (0, 0, 0, 1.0), 0.05), ("capsule", LYING, 0.03)],
)
def test_shapes_rest_across_a_ridge_and_not_around_it(shape, turn, height):
    log = dl.Simulation(BODIES[shape], ground(RIDGE)).run([0, 0, 0.2, *turn], steps=250)
    assert log.q[-1, 2] == pytest.approx(0.1 + height, abs=2.0 * SKIN) and np.abs(log.v[-1]).max() < 1e-4


def touches_of(model: dl.Model, field: dl.Ground, q: np.ndarray) -> list:
    (shape,) = dl.Simulation(model, field).scene.shapes
    placed = Placed(Rotation.from_quat(q[3:]).as_matrix(), q[:3], shape.size)
    return SHAPES[shape.geometry.shape].ground_touches(placed, HeightField(field.field, field.heights), True)


def test_a_hull_that_is_a_box_touches_a_ridge_as_the_box_does(hull):
    for angle in (0.0, 0.02, 0.3):
        q = np.array([0.01, 0.0, 0.135, 0.0, 0.0, math.sin(angle), math.cos(angle)])
        box, brick = (touches_of(model, ground(RIDGE), q)[-5:] for model in (BODIES["box"], hull))
        near = sorted((float(t.gap), *np.round(t.point, 9)) for t in box if t.gap < 0.01)
        assert len(near) >= 2
        np.testing.assert_allclose(
            sorted((float(t.gap), *np.round(t.point, 9)) for t in brick if t.gap < 0.01), near, atol=1e-8
        )


def test_a_box_on_a_ridge_touches_it_where_the_ridge_leaves_the_box():
    q = np.array([0.0, 0.0, 0.13, 0.0, 0.0, 0.0, 1.0])
    ends = [t for t in touches_of(BODIES["box"], ground(RIDGE), q)[8:] if t.gap < 1e-5]
    assert sorted(float(t.point[1]) for t in ends)[:: len(ends) - 1] == pytest.approx([-0.06, 0.06])
    assert all(np.allclose(t.normal, [0, 0, 1.0]) for t in ends)


def test_edges_that_cross_touch_along_their_cross_product():
    """A box on one of its edges, turned about the vertical, above a ridge."""
    turn = Rotation.from_euler("z", 0.4) * Rotation.from_euler("x", 0.25 * math.pi)
    half = math.hypot(0.06, 0.03) * math.cos(math.atan2(0.06, 0.03) - 0.25 * math.pi)  # its lowest edge
    q = np.array([0.0, 0.0, 0.1 + half - 1e-3, *turn.as_quat()])
    deepest = min(touches_of(BODIES["box"], ground(RIDGE), q)[8:], key=lambda t: float(t.gap))
    np.testing.assert_allclose(deepest.normal, [0, 0, 1.0], atol=1e-9)
    assert deepest.gap == pytest.approx(-1e-3 + SKIN, abs=1e-9)


@pytest.mark.parametrize("name", [*SIZES, "mesh"])
def test_distances_to_the_tips_of_a_rough_field_are_those_of_coal(name, hull):
    """Wherever the nearest part of the terrain is a vertex or an edge of it."""
    rng = np.random.default_rng(0)
    rough = dl.Ground(heights=rng.uniform(0.0, 0.1, (21, 21)), spacing=0.05)
    model = hull if name == "mesh" else BODIES[name]
    shape = {
        "box": coal.Box(*SIZES["box"]),
        "mesh": coal.Box(*SIZES["box"]),
        "cylinder": coal.Cylinder(*SIZES["cylinder"]),
        "capsule": coal.Capsule(*SIZES["capsule"]),
    }[name]
    mesh, grid = coal.BVHModelOBBRSS(), rough.field
    i, j = np.meshgrid(np.arange(grid.rows), np.arange(grid.columns), indexing="ij")
    x = np.stack([grid.origin[0] + grid.spacing * i, grid.origin[1] + grid.spacing * j, rough.heights], -1)
    a, b, c, d = x[:-1, :-1], x[:-1, 1:], x[1:, :-1], x[1:, 1:]
    corners = np.concatenate([np.stack(three, 2).reshape(-1, 3, 3) for three in ((a, c, d), (a, d, b))])
    mesh.beginModel(len(corners), 3 * len(corners))
    mesh.addVertices(corners.reshape(-1, 3))
    mesh.addTriangles(np.arange(3 * len(corners)).reshape(-1, 3).astype(np.uint64))
    mesh.endModel()
    compared = 0
    for _ in range(40):
        turn = Rotation.random(rng=rng)
        q = np.array([*rng.uniform(-0.1, 0.1, 2), rng.uniform(0.1, 0.18), *turn.as_quat()])
        place, result = coal.Transform3s(turn.as_matrix(), q[:3]), coal.DistanceResult()
        wanted = coal.distance(mesh, coal.Transform3s(), shape, place, coal.DistanceRequest(), result)
        if wanted <= 1e-4 or wanted > 0.008:
            continue
        gap = min(float(t.gap) for t in touches_of(model, rough, q))
        if name == "mesh":  # beside edges, it has the height above faces, which is less
            assert 0.0 < gap <= wanted + 2.0 * SKIN
        else:
            assert gap == pytest.approx(wanted, abs=2.0 * SKIN + 1e-6) or gap > wanted
        compared += abs(gap - wanted) < 1e-5
    assert compared >= 3
