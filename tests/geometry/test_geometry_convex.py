"""Pairs of convex shapes by their supports: depths by coal, MuJoCo and Qhull, certificates, degenerate poses."""

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from convex_pairs import (
    HULLS,
    Poses,
    coal_distances,
    deepest,
    least_translations,
    lengths_of,
    random_poses,
    separation_along,
    touch_kernel,
)
from delassus.geometry.pairs.convex import CONVEX_PAIRS
from delassus.geometry.pairs.registry import PAIRS
from delassus.geometry.shapes.box import corners
from delassus.geometry.shapes.registry import SHAPES, Placed

pairs = pytest.mark.parametrize(("one", "other"), CONVEX_PAIRS, ids=lambda kind: kind)


def check_against_coal(one, other, count, seed):
    """A normal proves that shapes are no closer than the separation along it; coal, that they are no farther apart.

    Deep inside of curved shapes coal's polytopes give up, or stop at another face: its depths are upper bounds.
    """
    poses = random_poses(count, seed)
    found = deepest(one, other, poses)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(found.gap, separation_along(one, other, poses, found.normal), atol=1e-9)
    error = found.gap - coal_distances(one, other, poses)
    assert np.nanmin(error) > -1e-6
    apart = found.gap > 1e-3
    assert apart.mean() > 0.2 and np.nanquantile(np.abs(error[apart]), 0.99) < 1e-6


@pairs
def test_depths_are_those_of_coal_and_proved_by_normals(one, other):
    check_against_coal(one, other, 300, 0)


@pytest.mark.slow
@pairs
def test_depths_of_many_poses_are_those_of_coal(one, other):
    check_against_coal(one, other, 100_000, 1)


def outline(kind, size, hull):
    return HULLS[hull] if kind == "mesh" else corners(size) if kind == "box" else np.array([[0, 0, z] for z in size])


@pytest.mark.parametrize(("one", "other"), [("box", "mesh"), ("mesh", "mesh")])
def test_depths_of_polyhedra_are_those_of_the_convex_hull_of_the_minkowski_sum(one, other):
    poses = random_poses(300, 2, spread=0.3)
    found, seen = deepest(one, other, poses), 0
    for k in np.flatnonzero(found.gap < 0.0):
        R, p, size, B, c, other_size = (x[k] for x in poses)
        first, second = p + outline(one, size, 0) @ R.T, c + outline(other, other_size, 1) @ B.T
        planes = ConvexHull((second[None] - first[:, None]).reshape(-1, 3)).equations
        assert found.gap[k] == pytest.approx(planes[:, 3].max(), abs=1e-12)
        seen += 1
    assert seen > 100


def test_shallow_depths_beside_edges_are_those_of_the_nearer_face():
    """The origin beside an edge of the difference of two hulls, at depths from 1e-5 to 1e-2 m below both of its
    faces."""
    rng, count = np.random.default_rng(3), 200
    poses = random_poses(count, 3, spread=0.0)
    depths = []
    for k in range(count):
        first, second = HULLS[0] @ poses.R[k].T, HULLS[1] @ poses.B[k].T
        hull = ConvexHull((first[:, None] - second[None]).reshape(-1, 3))
        while True:
            face, edge = rng.integers(len(hull.simplices)), rng.integers(3)
            planes = hull.equations[[face, hull.neighbors[face, edge]]]
            along = np.cross(planes[0, :3], planes[1, :3])
            if np.linalg.norm(along) > 1e-3:
                break
        middle = hull.points[np.delete(hull.simplices[face], edge)].mean(0)
        sides = np.vstack([planes[:, :3], along])
        depth = 10 ** rng.uniform(-5, -2, 2)
        poses.p[k] = -np.linalg.solve(sides, [*(-depth - planes[:, 3]), along @ middle])
        depths.append(-(hull.equations[:, :3] @ -poses.p[k] + hull.equations[:, 3]).max())
    touches = deepest("mesh", "mesh", poses)
    inside = np.array(depths) > 0.0
    assert inside.mean() > 0.9
    np.testing.assert_allclose(-touches.gap[inside], np.array(depths)[inside], rtol=1e-3)


def check_depths(one, other, poses):
    """No direction parts the shapes sooner than the one that is found, and that one does."""
    found = deepest(one, other, poses)
    np.testing.assert_allclose(found.gap, separation_along(one, other, poses, found.normal), atol=1e-9)
    assert np.max(-found.gap - least_translations(one, other, poses)) < 1e-6


def deep_poses(one, other, count, aspect, seed):
    """Shapes with lengths from 0.3 m down to 0.3 m/aspect, up to all the way in each other."""
    rng, poses = np.random.default_rng(seed), random_poses(count, seed, spread=0.0)
    size, other_size = (0.3 * aspect ** -rng.random((count, 3)) for _ in range(2))
    poses = poses._replace(size=size, other=other_size)
    way = rng.normal(size=(count, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    inside = -separation_along(one, other, poses, way) * rng.uniform(0.0, 0.9, count)
    return poses._replace(p=way * inside[:, None])


@pytest.mark.parametrize("count", [3, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("aspect", [10.0, 1e2, 1e4])
@pairs
def test_depths_are_least_translations_however_thin_shapes_are(one, other, aspect, count):
    check_depths(one, other, deep_poses(one, other, count, aspect, 14))


def test_depths_of_a_leg_in_another_one_are_least_translations():
    """Poses of a falling quadruped where MuJoCo's polytope ends early: it says 3.1 and 0.5 mm for 6.8 and 3.2 mm, with
    normals that part the shapes after 24 and 19 mm."""
    turns = [[0.5518291602625227, -1.8411933634784037, 1.9927617986597204],
             [-0.4484344277633182, 2.077405361222529, -2.032370018832274]]  # fmt: skip
    centres = [[-0.056157116272314185, -0.14818600752391295, 0.038803529067069534],
               [-0.04530668157326911, -0.10712742220772417, -0.02239326372519702]]  # fmt: skip
    box, shank = np.array([[0.114998, 0.0675, 0.038]] * 2), np.array([[0.0175, 0.282504, 0.0]] * 2)
    R, B = np.stack([np.eye(3)] * 2), Rotation.from_rotvec(turns).as_matrix()
    poses = Poses(R, np.zeros((2, 3)), box, B, np.array(centres), shank)
    check_depths("box", "cylinder", poses)
    np.testing.assert_allclose(deepest("box", "cylinder", poses).gap, [-6.8305e-3, -3.2186e-3], atol=1e-7)


MUJOCO = {"capsule": (1.0, 0.5), "cylinder": (1.0, 0.5), "box": (0.5, 0.5, 0.5), "ellipsoid": (1.0, 1.0, 1.0)}


@pytest.mark.parametrize(("one", "other"), [pair for pair in CONVEX_PAIRS if set(pair) <= set(MUJOCO)])
def test_gaps_and_normals_of_shapes_that_are_apart_are_those_of_mujoco(one, other):
    bodies = "".join(f'<body><freejoint/><geom type="{shape}" size="1 1 1"/></body>' for shape in (one, other))
    options = '<option ccd_tolerance="1e-10" ccd_iterations="500"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{options}<worldbody>{bodies}</worldbody></mujoco>")
    data, ends, seen = mujoco.MjData(model), np.zeros(6), 0
    poses = random_poses(400, 3)
    found = deepest(one, other, poses)
    for k in np.flatnonzero(found.gap > 1e-3):
        R, p, size, B, c, other_size = (x[k] for x in poses)
        for geom, (kind, lengths) in enumerate(((one, size), (other, other_size))):
            scale = MUJOCO[kind]
            model.geom_size[geom] = [*(lengths[: len(scale)] * scale), *[0.0] * (3 - len(scale))]
        model.geom_rbound[:] = 10.0
        data.geom_xpos[:], data.geom_xmat[:] = (p, c), (R.ravel(), B.ravel())
        wanted = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, ends)
        if wanted == 100.0:
            continue
        seen += 1
        assert found.gap[k] == pytest.approx(wanted, abs=1e-6)
        away = (ends[:3] - ends[3:]) / np.linalg.norm(ends[:3] - ends[3:])
        np.testing.assert_allclose(found.normal[k], away, atol=2e-3)
    assert seen > 50


@pairs
def test_gaps_change_by_no_more_than_bodies_move(one, other):
    rng, poses = np.random.default_rng(5), random_poses(1000, 4, spread=0.3)
    move = rng.normal(size=poses.p.shape)
    move *= 10.0 ** rng.uniform(-9, -1, (len(move), 1)) / np.linalg.norm(move, axis=1)[:, None]
    before, after = deepest(one, other, poses).gap, deepest(one, other, poses._replace(p=poses.p + move)).gap
    excess = np.abs(after - before) - np.linalg.norm(move, axis=1)
    assert excess.max() < 1e-6


@pairs
def test_results_do_not_depend_on_place_in_the_batch(one, other):
    poses = random_poses(64, 6, spread=0.3)
    whole = touch_kernel(one, other)(None, *poses)
    part = touch_kernel(one, other)(None, *(x[17:38] for x in poses))
    for a, b in zip(whole, part, strict=True):
        assert np.array_equal(a[17:38], b)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize(("one", "other"), [pair for pair in CONVEX_PAIRS if "mesh" not in pair])
def test_gaps_scale_with_units(one, other, scale):
    poses = random_poses(300, 7, spread=0.3)
    R, p, size, B, c, other_size = poses
    found = deepest(one, other, poses)
    scaled = deepest(one, other, Poses(R, scale * p, scale * size, B, c, scale * other_size))
    np.testing.assert_allclose(scaled.gap / scale, found.gap, atol=1e-7)


@pytest.mark.parametrize(("one", "other"), [pair for pair in CONVEX_PAIRS if "mesh" not in pair])
def test_mirror_images_have_the_same_gaps(one, other):
    poses, flip = random_poses(300, 8, spread=0.3), np.diag([1.0, 1.0, -1.0])
    R, p, size, B, c, other_size = poses
    mirrored = Poses(flip @ R @ flip, p @ flip, size, flip @ B @ flip, c, other_size)
    np.testing.assert_allclose(deepest(one, other, mirrored).gap, deepest(one, other, poses).gap, atol=1e-7)


@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid", "mesh"])
def test_a_swap_of_shapes_changes_the_sign_of_the_normal_alone(kind):
    poses = random_poses(300, 9, spread=0.3)
    R, p, size, B, c, other_size = poses
    swapped = deepest(kind, kind, Poses(B, c, other_size, R, p, size), hulls=(1, 0))
    found = deepest(kind, kind, poses)
    np.testing.assert_allclose(swapped.gap, found.gap, atol=1e-7)
    alone = np.linalg.norm(swapped.normal + found.normal, axis=1) < 1e-3
    assert alone.mean() > 0.97  # deep inside, two directions may be equally good


# --- degenerate poses -------------------------------------------------------------------------------------------------


@pairs
def test_coincident_centres_have_finite_answers(one, other):
    poses = random_poses(200, 10, spread=0.0)
    found = deepest(one, other, poses)
    assert all(np.all(np.isfinite(x)) for x in found)
    np.testing.assert_allclose(found.gap, separation_along(one, other, poses, found.normal), atol=1e-9)


@pytest.mark.parametrize(("one", "other"), [pair for pair in CONVEX_PAIRS if "mesh" not in pair])
def test_needles_and_plates_have_finite_answers_that_their_normals_prove(one, other):
    rng, poses = np.random.default_rng(11), random_poses(300, 11, spread=0.3)
    size, other_size = (10.0 ** rng.choice([-4.0, 0.0], (300, 3)) for _ in range(2))
    poses = poses._replace(size=size, other=other_size, p=0.2 * rng.normal(size=(300, 3)))
    found = deepest(one, other, poses)
    assert all(np.all(np.isfinite(x)) for x in found)
    np.testing.assert_allclose(found.gap, separation_along(one, other, poses, found.normal), atol=1e-9)
    error = found.gap - coal_distances(one, other, poses)
    assert np.nanmin(error[found.gap > 1e-6]) > -1e-6


@pairs
def test_distances_from_nothing_to_a_metre_are_exact(one, other):
    """Shapes are moved along the normal at which they touch: each gap is the distance of the move."""
    poses = random_poses(17, 12, spread=0.6)
    found = deepest(one, other, poses)
    touching = poses._replace(p=poses.p - found.gap[:, None] * found.normal)
    gaps = 10.0 ** np.arange(-16.0, 1.0)
    moved = deepest(one, other, touching._replace(p=touching.p + gaps[:, None] * found.normal))
    shallow = found.gap > -1e-3  # elsewhere, another direction may be better after the move
    assert shallow.any()
    np.testing.assert_allclose(moved.gap[shallow], gaps[shallow], atol=2e-9)


@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS if pair != ("mesh", "plane")])
def test_lengths_and_vertices_may_be_traced(one, other):
    """The same touches, as a loop over pairs needs them whose sizes are data."""
    poses, entry = random_poses(20, 13), PAIRS[one, other][0]
    R, p, size, B, c, _ = poses
    sizes = [HULLS[1] if kind == "mesh" else np.abs(size[0])[: SHAPES[kind].lengths] for kind in (one, other)]
    shapes = ",".join("(12,3)" if kind == "mesh" else f"({max(SHAPES[kind].lengths, 1)})" for kind in (one, other))
    given = [x if np.size(x) else np.zeros(1) for x in sizes]

    @dl.kernel(f"(3,3),(3),(3,3),(3),{shapes}->()")
    def traced(_, R, p, B, c, first, second):
        found = entry.touches(Placed(R, p, first), Placed(B, c, second))
        return dl.numpy.min(dl.numpy.stack([dl.numpy.array(touch.gap) for touch in found]))

    @dl.kernel("(3,3),(3),(3,3),(3)->()")
    def constant(_, R, p, B, c):
        first, second = (tuple(map(tuple, x.tolist())) if x.ndim == 2 else tuple(x.tolist()) for x in sizes)
        found = entry.touches(Placed(R, p, first), Placed(B, c, second))
        return dl.numpy.min(dl.numpy.stack([dl.numpy.array(touch.gap) for touch in found]))

    np.testing.assert_allclose(traced(None, R, p, B, c, *given), constant(None, R, p, B, c), atol=1e-9)


# --- patches ----------------------------------------------------------------------------------------------------------


def upright(one, other, size, other_size, p, turn):
    """Gaps, points, normals and features of a shape that stands on another one, near touches alone."""
    first = Placed(Rotation.from_rotvec(turn).as_matrix(), np.array(p, float), lengths_of(one, size, None))
    found = PAIRS[one, other][0].touches(first, Placed(np.eye(3), np.zeros(3), lengths_of(other, other_size, None)))
    gap, point, normal, feature = (np.array([np.asarray(touch[k], float) for touch in found]) for k in range(4))
    return gap[gap < 0.1], point[gap < 0.1], normal[gap < 0.1], feature[gap < 0.1]


CUBE = corners((0.2, 0.2, 0.2))
STANDING = {
    "box on mesh": ("box", "mesh", np.array([0.1, 0.1, 0.1]), CUBE, 0.05),
    "cylinder on mesh": ("cylinder", "mesh", np.array([0.05, 0.1, 0.0]), CUBE, 0.05 * np.sqrt(0.5)),
    "mesh on mesh": ("mesh", "mesh", corners((0.1, 0.1, 0.1)), CUBE, 0.05),
    "cylinder on cylinder": ("cylinder", "cylinder", np.array([0.05, 0.1, 0]), np.array([0.2, 0.2, 0]), 0.035),
}


@pytest.mark.parametrize("case", STANDING)
@pytest.mark.parametrize("tilt", [1e-9, 1e-4])
def test_bodies_stand_on_four_points_that_small_turns_do_not_change(case, tilt):
    one, other, size, other_size, reach = STANDING[case]
    straight = upright(one, other, size, other_size, (0.01, 0.02, 0.15), np.zeros(3))
    gap, point, normal, feature = upright(one, other, size, other_size, (0.01, 0.02, 0.15), tilt * np.array([3, -2, 5]))
    assert len(gap) == 4 and np.array_equal(feature, straight[3])
    np.testing.assert_allclose(gap, 0.0, atol=tilt + 1e-12)
    np.testing.assert_allclose(point, straight[1], atol=5 * tilt + 1e-9)
    np.testing.assert_allclose(normal, [[0, 0, 1]] * 4, atol=5 * tilt + 1e-9)
    assert np.all(np.ptp(point[:, :2], axis=0) > 1.9 * reach)


def test_edges_that_cross_touch_along_their_product():
    turn = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    one = Placed(Rotation.from_euler("z", 90, degrees=True).as_matrix() @ turn, np.array([0.0, 0.0, 0.2]), (0.1,) * 3)
    other = Placed(turn, np.zeros(3), lengths_of("mesh", CUBE, None))
    found = PAIRS["box", "mesh"][0].touches(one, other)
    nearest = min(found, key=lambda touch: float(touch.gap))
    height = 0.2 - 0.05 * np.sqrt(2) - 0.1 * np.sqrt(2)
    assert float(nearest.gap) == pytest.approx(height, abs=1e-12)
    np.testing.assert_allclose(nearest.normal, [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(nearest.point, [0, 0, 0.2 - 0.05 * np.sqrt(2)], atol=1e-9)


def test_every_shape_has_a_pair_with_every_other_one():
    for one in SHAPES:
        for other in SHAPES:
            assert {one, other} == {"plane"} or (one, other) in PAIRS or (other, one) in PAIRS
