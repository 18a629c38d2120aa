"""Hulls of meshes: quickhull to a bound against SciPy's, tables of faces, and the vertices that touch a plane."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.geometry.hulls.ground_faces import hull_tables
from delassus.geometry.hulls.meshes import MOST_VERTICES, mesh_hull
from delassus.geometry.hulls.plane_contacts import choose_points, choose_vertices
from delassus.geometry.hulls.quickhull import convex_hull
from delassus.geometry.hulls.tables import Hull, as_hull
from delassus.geometry.shapes.sphere import unit_sphere
from delassus.model.parts import Geometry
from delassus.model.placement import HERE


def cloud(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    if kind == "ball":
        return 0.2 * x / np.linalg.norm(x, axis=1)[:, None]
    if kind == "cube of float32 with points in its faces":
        grid = np.linspace(-0.1, 0.1, 9)
        cube = np.stack(np.meshgrid(grid, grid, grid), -1).reshape(-1, 3)
        return (cube @ Rotation.random(rng=rng).as_matrix().T).astype(np.float32).astype(float)
    if kind == "needle":
        return rng.uniform(-1.0, 1.0, (500, 3)) * [1.0, 1e-4, 1e-4]
    return 0.1 * x


KINDS = ["cloud", "ball", "cube of float32 with points in its faces", "needle"]
"""Clouds of points."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_complete_hull_is_that_of_scipy(kind):
    points = cloud(kind)[:400]
    hull, wanted = convex_hull(points), ConvexHull(points)
    a, b, c = np.moveaxis(hull.points[hull.triangles], 1, 0)
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0 == pytest.approx(wanted.volume, rel=1e-6)
    np.testing.assert_allclose(np.cross(b - a, c - a).sum(0), 0.0, atol=1e-12)  # areas of a closed surface
    beyond = wanted.equations[:, :3] @ hull.points.T + wanted.equations[:, 3:]
    assert np.abs(beyond.max(0)).max() < 1e-7  # its points are on the surface


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bound", [1e-2, 2e-3])
def test_the_error_of_a_simplified_hull_is_the_largest_error_of_supports(kind, bound):
    points = cloud(kind)
    hull = convex_hull(points, bound)
    directions = np.random.default_rng(1).normal(size=(20000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    short = (directions @ points.T).max(1) - (directions @ hull.points.T).max(1)
    assert hull.error <= bound and short.max() <= hull.error + 1e-9
    assert short.max() > 0.5 * hull.error or hull.error < 1e-4


def test_a_hull_with_too_few_vertices_has_the_error_that_they_leave():
    points = cloud("ball")
    errors = [convex_hull(points, 1e-5, most).error for most in (8, 16, 32, 64)]
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))
    assert len(convex_hull(points, 1e-5, 16).points) == 16


def test_points_in_a_plane_have_a_hull_of_two_sides():
    angle = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    disk = 0.1 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], 1)
    turned = disk @ Rotation.random(rng=np.random.default_rng(2)).as_matrix().T
    hull = convex_hull(turned, 2e-3)
    assert len(hull.points) < 30 and hull.error < 2e-3
    a, b, c = np.moveaxis(hull.points[hull.triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    assert np.linalg.norm(normals, axis=1).sum() == pytest.approx(4.0 * np.pi * 0.01, rel=0.05)
    np.testing.assert_allclose(normals.sum(0), 0.0, atol=1e-12)


# --- meshes -----------------------------------------------------------------------------------------------------------


def mesh_file(folder, points: np.ndarray) -> Geometry:
    path = folder / "mesh.obj"
    path.write_text("".join("v {} {} {}\n".format(*x) for x in points.tolist()))
    return Geometry("part", 0, HERE, "mesh", (1.0, 1.0, 1.0), "collision", str(path))


def test_a_mesh_is_simplified_to_one_percent_of_its_size_and_five_millimetres(tmp_path):
    for scale in (0.1, 1.0, 10.0):
        hull = mesh_hull(mesh_file(tmp_path, scale * cloud("ball")))
        full = scale * 0.4 * np.sqrt(3.0)
        assert len(hull.points) <= MOST_VERTICES
        assert hull.error <= min(5e-3, 0.01 * full) or len(hull.points) == MOST_VERTICES


def test_the_error_of_a_hull_can_be_asked_for_and_is_told(tmp_path):
    part = mesh_file(tmp_path, cloud("cloud"))
    fine, coarse = mesh_hull(part, 1e-4), mesh_hull(part, 0.05)
    assert fine.error < coarse.error <= 0.05 and len(coarse.points) < len(fine.points)


def test_a_plate_without_thickness_is_a_mesh(tmp_path):
    grid = np.linspace(-0.1, 0.1, 5)
    plate = np.stack([*np.meshgrid(grid, grid), np.zeros((5, 5))], -1).reshape(-1, 3)
    hull = mesh_hull(mesh_file(tmp_path, plate))
    assert len(hull.points) == 4 and hull.error < 1e-9
    touches = choose_vertices(tables(hull.points), np.array([0.0, 0.0, 1.0]), 0.3)
    assert sorted(float(t.gap) for t in touches)[:4] == pytest.approx([0.3] * 4)


# --- contacts with a plane --------------------------------------------------------------------------------------------


def tables(points: np.ndarray):
    return hull_tables(tuple(map(tuple, points.tolist())))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_the_lowest_vertex_is_among_the_touches_and_none_comes_twice(kind):
    hull, rng = tables(convex_hull(cloud(kind), 3e-3, 64).points), np.random.default_rng(3)
    normals = rng.normal(size=(50, 3))
    for m in normals / np.linalg.norm(normals, axis=1)[:, None]:
        touches = [t for t in choose_vertices(hull, m, 1.0) if t.gap < 1.0 + hull.extent]
        assert min(float(t.gap) for t in touches) == pytest.approx(1.0 + (hull.vertices @ m).min(), abs=1e-12)
        numbers = [int(t.number) for t in touches]
        assert len(set(numbers)) == len(numbers) >= 3
        for touch in touches:
            np.testing.assert_array_equal(touch.vertex, hull.vertices[int(touch.number)])


def test_a_box_that_leans_a_little_touches_with_all_corners_of_its_face():
    size = np.array([0.2, 0.3, 0.1])
    hull = tables(convex_hull(0.5 * size * (np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3))).points)
    for turn in Rotation.random(200, rng=np.random.default_rng(4)):
        tilt = Rotation.from_rotvec(np.radians(0.2) * turn.apply([1.0, 0.0, 0.0]))
        for axis in range(3):
            m = tilt.apply(np.eye(3)[axis])
            near = [t for t in choose_vertices(hull, m, 0.5 * size[axis]) if t.gap < 5e-3]
            assert len(near) == 4
            across = np.delete(np.array([t.vertex for t in near]), axis, axis=1)
            assert ConvexHull(across).volume == pytest.approx(np.delete(size, axis).prod())


def rounded_brick() -> np.ndarray:
    """A box of (0.22, 0.14, 0.1) m, its edges rounded by 10 mm."""
    corners = [[a, b, c] for a in (-0.1, 0.1) for b in (-0.06, 0.06) for c in (-0.04, 0.04)]
    return np.concatenate([0.01 * unit_sphere() + corner for corner in corners])


def test_large_flat_sides_stay_flat():
    x = convex_hull(rounded_brick(), 5e-3, 64).points
    for axis, far in enumerate((0.11, 0.07, 0.05)):
        assert all((np.abs(x[:, axis] - side) < 1e-9).sum() >= 4 for side in (far, -far))


def test_the_face_of_a_simplified_part_holds_most_of_the_true_patch():
    """A rounded brick of 4 000 vertices under tilts of 0.2°."""
    rng = np.random.default_rng(5)
    hull = tables(convex_hull(rounded_brick(), 5e-3, 64).points)
    shares = []
    for normal in np.concatenate([np.eye(3), -np.eye(3)]).repeat(10, 0):
        m = Rotation.from_rotvec(np.radians(0.2) * rng.uniform(-1.0, 1.0, 3)).apply(normal)
        height = hull.vertices @ m
        patch = hull.vertices[height < height.min() + 2e-3]
        near = np.array([t.vertex for t in choose_vertices(hull, m, -height.min()) if t.gap < 2e-3])
        plane = np.linalg.svd(m[None])[2][1:].T
        shares.append(ConvexHull(near @ plane).volume / ConvexHull(patch @ plane).volume)
    assert np.mean(shares) > 0.97 and np.percentile(shares, 5) > 0.73


PART = tables(convex_hull(cloud("cloud"), 5e-3, 64).points)


@dl.kernel("(3)->(5),(5)")
def chosen_by_a_kernel(_, m):
    chosen = choose_vertices(PART, m, 0.0)
    return dl.numpy.stack([t.gap for t in chosen]), dl.numpy.stack([t.number for t in chosen])


def test_kernels_choose_the_vertices_that_numpy_does():
    normals = np.random.default_rng(6).normal(size=(20, 3))
    gap, number = chosen_by_a_kernel(None, normals)
    for k, m in enumerate(normals):
        wanted = choose_vertices(PART, m, 0.0)
        np.testing.assert_array_equal(number[k], [float(t.number) for t in wanted])
        np.testing.assert_allclose(gap[k], [float(t.gap) for t in wanted], atol=1e-12)


DATA = as_hull(PART.vertices)


@dl.kernel(f"(3),({len(DATA.vertices)},3),({len(DATA.normals)},3),({len(DATA.normals)},4,3)->(5),(5,3)")
def chosen_of_data(_, m, vertices, normals, quads):
    chosen = choose_points(Hull(vertices, normals, quads), m, 0.0)
    return dl.numpy.stack([t.gap for t in chosen]), dl.numpy.stack([t.vertex for t in chosen])


def test_hulls_that_are_data_touch_with_their_lowest_vertex_and_none_comes_twice():
    normals = np.random.default_rng(7).normal(size=(20, 3))
    gap, vertex = chosen_of_data(None, normals, DATA.vertices, DATA.normals, DATA.quads)
    np.testing.assert_allclose(gap.min(-1), (normals @ PART.vertices.T).min(-1), atol=1e-12)
    for k in range(20):
        near = vertex[k][gap[k] < 2.0 * PART.extent * np.linalg.norm(normals[k])]
        assert len(np.unique(near, axis=0)) == len(near) >= 3
