"""The tables of shapes and pairs: supports and distances, pairs with planes, what the documentation says."""

import math
from pathlib import Path

import coal
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, body
from delassus.geometry.pairs.registry import PAIRS, describe_pairs, pair, partners
from delassus.geometry.shapes.registry import SHAPES, Placed, ShapeKind, register_shape

SIZES = {
    "sphere": (0.1,),
    "capsule": (0.06, 0.3),
    "box": (0.2, 0.3, 0.1),
    "cylinder": (0.08, 0.2),
    "ellipsoid": (0.1, 0.15, 0.05),
    "mesh": ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.1)),
}


@dl.kernel("(3),(3)->(),(3)")
def distances_from_ellipsoids(_, halves, x):
    return SHAPES["ellipsoid"].distance(Placed(np.eye(3), np.zeros(3), halves), x)


TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1)).as_matrix()
PLACE = np.array([0.2, -0.1, 0.4])


@dl.kernel("(3,3),(3),(3)->(3)")
def support_of(name, R, p, direction):
    return SHAPES[name].support(Placed(R, p, SIZES[name]), direction)


@pytest.mark.parametrize("name", SIZES)
def test_supports_are_the_farthest_points_of_outlines(name):
    kind, rng = SHAPES[name], np.random.default_rng(0)
    points = PLACE + kind.outline(SIZES[name]) @ TURN.T
    directions = rng.normal(size=(50, 3))
    farthest = (directions @ points.T).max(1)
    reached = np.sum(directions * support_of(name, TURN, PLACE, directions), 1)
    slack = 0.01 * np.linalg.norm(directions, axis=1) * np.ptp(points)  # outlines of round shapes are polyhedra
    assert np.all(farthest - 1e-12 <= reached) and np.all(reached <= farthest + slack)


@pytest.mark.parametrize("name", [name for name in SIZES if SHAPES[name].has_distance])
def test_distances_are_those_to_the_convex_hull_of_outlines(name):
    kind, rng = SHAPES[name], np.random.default_rng(1)
    body, hull = Placed(TURN, PLACE, SIZES[name]), ConvexHull(PLACE + kind.outline(SIZES[name]) @ TURN.T)
    for x in PLACE + 0.02 * rng.normal(size=(50, 3)):
        distance, normal = kind.distance(body, x)
        inside = (hull.equations[:, :3] @ x + hull.equations[:, 3]).max()
        assert distance == pytest.approx(inside, abs=2e-3)
        ahead, behind = (kind.distance(body, x + s * np.asarray(normal))[0] for s in (1e-6, -1e-6))
        assert (ahead - behind) / 2e-6 == pytest.approx(1.0, abs=1e-6)


def test_distances_from_ellipsoids_are_those_of_coal():
    """Eggs, needles and plates; points far away, near, inside, on axes and in the centre."""
    rng, count = np.random.default_rng(2), 3000
    halves = 10 ** rng.uniform(-2, 0, (count, 3))
    x = rng.normal(size=(count, 3)) * halves * 10 ** rng.uniform(-2, 1, (count, 1))
    x *= rng.random((count, 3)) > 0.2
    gap, normal = distances_from_ellipsoids(None, halves, x)
    assert np.all(np.isfinite(gap)) and np.abs(np.linalg.norm(normal, axis=1) - 1.0).max() < 1e-12
    foot = x - gap[:, None] * normal
    assert np.abs(np.sum((foot / halves) ** 2, 1) - 1.0).max() < 1e-9  # on the surface, along its normal
    along = foot / halves**2
    np.testing.assert_allclose(normal, along / np.linalg.norm(along, axis=1)[:, None], atol=1e-6)
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-10
    request.gjk_max_iterations = 1000
    for k in np.flatnonzero(gap > 0.0):
        egg, ball = coal.Ellipsoid(*halves[k]), coal.Sphere(1e-9)
        poses = coal.Transform3s.Identity(), coal.Transform3s(np.eye(3), x[k])
        wanted = coal.distance(egg, poses[0], ball, poses[1], request, coal.DistanceResult()) + 1e-9
        assert gap[k] == pytest.approx(wanted, rel=1e-6, abs=1e-7)


def test_points_inside_of_an_ellipsoid_leave_it_by_the_nearest_way():
    halves, turn = np.array([0.3, 0.2, 0.1]), np.linspace(0.0, 2.0 * math.pi, 721)
    rim = np.stack(np.meshgrid(turn, np.linspace(0.0, math.pi, 361), indexing="ij"), -1).reshape(-1, 2)
    across = np.sin(rim[:, 1])
    surface = halves * np.stack([np.cos(rim[:, 0]) * across, np.sin(rim[:, 0]) * across, np.cos(rim[:, 1])], 1)
    x = 0.5 * halves * np.random.default_rng(3).uniform(-1, 1, (50, 3))
    x[:10, 2], x[0] = 0.0, 0.0
    gap, _ = distances_from_ellipsoids(None, np.tile(halves, (50, 1)), x)
    nearest = [np.linalg.norm(surface - one, axis=1).min() for one in x]
    np.testing.assert_allclose(-gap, nearest, atol=1e-4)


def test_the_documentation_lists_all_pairs():
    rows = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text().splitlines()
    start = next(k for k, row in enumerate(rows) if row.startswith("| | sphere |"))
    columns = [cell.strip() for cell in rows[start].split("|")[2:-1]]
    listed = set()
    for row in rows[start + 2 :]:
        if not row.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        listed |= {frozenset((name, other)) for other, cell in zip(columns, cells, strict=True) if cell}
    assert listed == {frozenset(kinds) for kinds in PAIRS}


def test_a_refusal_names_the_pairs_that_exist():
    model = body("plane", (), 1.0, (0.01,) * 3)
    model = model.attach(body("plane", (), 1.0, (0.01,) * 3), "world", prefix="a_")
    with pytest.raises(dl.DelassusError, match=r"a plane with a plane are.*box with box, capsule"):
        dl.Simulation(model, touching=[], colliding=[("plane", "a_plane")])
    assert "plane" in partners("box") and "plane" not in partners("plane")
    assert "mesh" in describe_pairs()


@pytest.mark.parametrize(
    ("shape", "size", "words"),
    [("torus", (0.1, 0.2), "'torus' is a torus; supported are box"), ("capsule", (0.1,), "it must have 2 lengths")],
)
def test_bodies_that_the_table_does_not_know_are_refused(shape, size, words):
    with pytest.raises(dl.DelassusError, match=words):
        dl.Simulation(body(shape, size, 1.0, (0.01,) * 3))


def test_shapes_and_pairs_are_registered_once():
    with pytest.raises(ValueError, match="'sphere' is registered already"):
        register_shape("sphere")(ShapeKind)
    with pytest.raises(ValueError, match="no shape 'torus'"):
        pair("sphere", "torus", points=1)
    with pytest.raises(ValueError, match="capsule and box is registered already"):
        pair("box", "capsule", points=1)


SLOPE = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom name="slope" type="plane" size="1 1 1" pos="0 0 0.5" euler="0 -0.3 0"/>
    <body><freejoint/>{}</body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize(
    ("geom", "lowest"),
    [
        ('type="sphere" size="0.1"', 0.1),
        ('type="capsule" size="0.05 0.1"', 0.05),
        ('type="box" size="0.1 0.1 0.05"', 0.05),
        ('type="cylinder" size="0.1 0.05"', 0.05),
        ('type="ellipsoid" size="0.1 0.1 0.05"', 0.05),
    ],
)
def test_shapes_rest_on_a_sloping_plane_of_the_model(geom, lowest):
    """With the friction of MuJoCo's default, 1, and a slope of tan 0.3."""
    model = dl.load(
        SLOPE.format(f'<geom name="body" {geom} mass="1"/>').replace("<mujoco>", '<mujoco><compiler angle="radian"/>')
    )
    sim = dl.Simulation(model, touching=[], colliding=[("body", "slope")])
    normal = np.array([-math.sin(0.3), 0.0, math.cos(0.3)])
    turn = Rotation.from_euler("y", -0.3)
    if "capsule" in geom:  # across the slope it would roll: along it, it lies
        turn = turn * Rotation.from_euler("y", math.pi / 2)
    q0 = np.concatenate([[0.0, 0.0, 0.5] + lowest * normal, turn.as_quat()])
    log = sim.run(q0, steps=200)
    found = sim.contacts(q0)
    assert found.gap.min() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found.normal[found.gap.argmin()], normal, atol=1e-12)
    if "sphere" in geom or "ellipsoid" in geom:  # down the slope
        assert log.q[-1, 0] < -1e-3
    else:
        assert np.abs(log.v).max() < 1e-8
        np.testing.assert_allclose(log.normal_force("body on slope")[-1], G * math.cos(0.3), rtol=1e-6)


def test_patterns_leave_planes_out():
    model = dl.load(SLOPE.format('<geom name="body" type="sphere" size="0.1" mass="1"/>'))
    with pytest.raises(dl.DelassusError, match="matches"):
        dl.Simulation(model, colliding=[("body", "slop*")])
