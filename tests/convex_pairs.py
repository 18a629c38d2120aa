"""Pairs of convex shapes in random poses: touches by the table of pairs, distances by coal, supports in plain NumPy."""

from functools import cache
from typing import NamedTuple

import coal
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.geometry.pairs.registry import PAIRS
from delassus.geometry.shapes.registry import SHAPES, Placed

KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "mesh")


def _unit(points):
    return points / np.linalg.norm(points, axis=1)[:, None]


HULLS = (
    0.2 * _unit(np.random.default_rng(7).normal(size=(24, 3))) * (1.0, 0.7, 0.4),
    0.15 * np.random.default_rng(8).normal(size=(12, 3)),
)
"""Vertices of the mesh that stands first in a pair, and of the other one."""


class Poses(NamedTuple):
    """Rotations (n, 3, 3), centres (n, 3) and three lengths (n, 3) of both shapes; kinds take as many as they need."""

    R: np.ndarray
    p: np.ndarray
    size: np.ndarray
    B: np.ndarray
    c: np.ndarray
    other: np.ndarray


def random_poses(count, seed, spread=0.6, orders=(-1.3, -0.3)):
    """Sizes over a decade; half of the poses overlap or so."""
    rng = np.random.default_rng(seed)
    size, other = 10 ** rng.uniform(*orders, (2, count, 3))
    R, B = (Rotation.random(count, rng=rng).as_matrix() for _ in range(2))
    p = spread * rng.normal(size=(count, 3)) * (size.mean(1) + other.mean(1))[:, None]
    return Poses(R, p, size, B, np.zeros((count, 3)), other)


def lengths_of(kind, size, hull):
    if kind == "mesh":
        return tuple(map(tuple, (size if hull is None else hull).tolist()))
    return size[: SHAPES[kind].lengths]


@cache
def touch_kernel(one, other, hulls=(0, 1), swapped=False):
    """Gaps (k,), points and normals (k, 3) and features (k,) of one state; `swapped` gives the shapes in turn."""
    entry = PAIRS[one, other][0]
    k = entry.points(())

    def touches(_, R, p, size, B, c, other_size):
        first = Placed(R, p, lengths_of(one, size, HULLS[hulls[0]]))
        second = Placed(B, c, lengths_of(other, other_size, HULLS[hulls[1]]))
        found = entry.touches(*((second, first) if swapped else (first, second)))
        return tuple(dl.numpy.stack([dl.numpy.array(touch[i]) for touch in found]) for i in range(4))

    return dl.kernel(f"(3,3),(3),(3),(3,3),(3),(3)->({k}),({k},3),({k},3),({k})")(touches)


class Deepest(NamedTuple):
    """Of each pose the gap, the point, the normal and the feature of the touch with the least gap."""

    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    feature: np.ndarray


def deepest(one, other, poses, **options):
    found = touch_kernel(one, other, **options)(None, *poses)
    return Deepest(*(x[np.arange(len(poses.p)), found[0].argmin(1)] for x in found))


def support_height(kind, size, hull, directions):
    """max n · x over a shape about its centre, for directions (n, 3) in its axes and lengths (n, 3)."""
    n = directions
    if kind == "sphere":
        return size[:, 0]
    if kind == "capsule":
        return size[:, 0] + 0.5 * size[:, 1] * np.abs(n[:, 2])
    if kind == "box":
        return 0.5 * np.sum(np.abs(n) * size, 1)
    if kind == "cylinder":
        return size[:, 0] * np.hypot(n[:, 0], n[:, 1]) + 0.5 * size[:, 1] * np.abs(n[:, 2])
    if kind == "ellipsoid":
        return np.linalg.norm(n * size, axis=1)
    return (n @ HULLS[hull].T).max(1)


def separation_along(one, other, poses, normal, hulls=(0, 1)):
    """How far the shapes are apart along unit vectors (n, 3) that point to the first."""
    first = support_height(one, poses.size, hulls[0], np.einsum("nij,ni->nj", poses.R, -normal))
    second = support_height(other, poses.other, hulls[1], np.einsum("nij,ni->nj", poses.B, normal))
    return np.sum(normal * (poses.p - poses.c), 1) - first - second


def coal_shape(kind, size, hull=0):
    if kind == "mesh":
        return _coal_hull(hull)
    make = {"sphere": coal.Sphere, "capsule": coal.Capsule, "box": coal.Box, "cylinder": coal.Cylinder,
            "ellipsoid": coal.Ellipsoid}  # fmt: skip
    return make[kind](*size[: SHAPES[kind].lengths])


@cache
def _coal_hull(number):
    x = HULLS[number]
    hull = ConvexHull(x)
    place = {vertex: k for k, vertex in enumerate(hull.vertices.tolist())}
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in x[hull.vertices]:
        points.append(vertex)
    for (a, b, c), plane in zip(hull.simplices.tolist(), hull.equations, strict=True):
        outward = np.cross(x[b] - x[a], x[c] - x[a]) @ plane[:3] > 0.0
        triangles.append(coal.Triangle(*(place[v] for v in ((a, b, c) if outward else (a, c, b)))))
    return coal.Convex(points, triangles)


def coal_distances(one, other, poses, hulls=(0, 1)):
    """(n,) signed distances; where coal gives up, NaN."""
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    distances = []
    for R, p, size, B, c, other_size in zip(*poses, strict=True):
        shapes = coal_shape(one, size, hulls[0]), coal_shape(other, other_size, hulls[1])
        placed = shapes[0], coal.Transform3s(R, p), shapes[1], coal.Transform3s(B, c)
        distances.append(coal.distance(*placed, request, coal.DistanceResult()))
    return np.where(np.abs(distances) < 1e6, distances, np.nan)


def least_translations(one, other, poses, seed=0):
    """(n,) upper bounds of the least translations that part the shapes, by a search over all directions.

    Directions are spread over the sphere and, stretched and squeezed, over the shapes; axes and their products are
    among them. From the best forty, random steps go on that grow with success.
    """
    rng, bounds = np.random.default_rng(seed), []
    around = _unit(rng.normal(size=(1500, 3)))
    for R, p, size, B, c, other_size in zip(*poses, strict=True):
        starts = [around, *(_unit(around * stretch) @ A.T for A, x in ((R, size), (B, other_size))
                            for stretch in (x, 1.0 / np.maximum(x, 1e-6)))]  # fmt: skip
        across = np.cross(R.T[:, None], B.T[None]).reshape(-1, 3)
        axes = _unit(np.concatenate([R.T, B.T, across[np.linalg.norm(across, axis=1) > 1e-9]]))
        normal = np.concatenate([*starts, axes, -axes])

        def gaps(n, pose=(R, p, size, B, c, other_size)):
            return separation_along(one, other, Poses(*(np.broadcast_to(x, (len(n), *x.shape)) for x in pose)), n)

        gap = gaps(normal)
        best = np.argsort(-gap)[:40]
        normal, gap, step = normal[best], gap[best], np.full(40, 0.05)
        for _ in range(80):
            sizes = step[:, None, None] * 10.0 ** -np.linspace(0.0, 2.5, 8)[:, None]
            trials = _unit((normal[:, None] + sizes * rng.normal(size=(40, 8, 3))).reshape(-1, 3))
            values = gaps(trials).reshape(40, 8)
            chosen = values.argmax(1)
            value, better = values.max(1), values.max(1) > gap
            normal = np.where(better[:, None], trials.reshape(40, 8, 3)[np.arange(40), chosen], normal)
            gap, step = np.maximum(gap, value), np.where(better, np.minimum(1.6 * step, 0.2), 0.75 * step)
        bounds.append(-gap.max())
    return np.array(bounds)
