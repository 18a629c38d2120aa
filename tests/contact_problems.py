"""Random contact problems with known parts: rigid bodies that touch each other and the ground."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones import Free, Friction

Array = NDArray[np.float64]


class Problems(NamedTuple):
    """A batch of problems σ = G λ + g, with G = J M⁻¹ Jᵀ and g = J v, so that impulses exist that stop all motion."""

    G: Array
    """(count, m, m)"""
    g: Array
    """(count, m)"""
    friction: Array
    """(count, contacts)"""
    J: Array
    """(count, m, n)"""
    Minv: Array
    """(count, n, n)"""
    v: Array
    """(count, n)"""


def random_problems(
    seed: int,
    count: int,
    contacts: int,
    bodies: int | None = None,
    mass_ratio: float = 1e6,
    free: int = 0,
    friction: tuple[float, float] = (0.0, 2.0),
) -> Problems:
    """A batch of problems whose first rows are contacts (t1, t2, n) and whose last ones are bilateral.

    Args:
        seed: Of the random numbers.
        count: How many problems.
        contacts: How many each has, between two bodies or a body and the ground, with random points and normals.
        bodies: How many bodies, of six velocities each; by default between one and `contacts`, so that some problems
            have few velocities for many rows and a singular G. The velocities of missing bodies are there, and unused.
        mass_ratio: Of the heaviest body that may occur to the lightest one.
        free: How many bilateral rows.
        friction: Between what the coefficients lie.
    """
    rng = np.random.default_rng(seed)
    drawn = (_one(rng, contacts, bodies, mass_ratio, free, friction) for _ in range(count))
    return Problems(*map(np.array, zip(*drawn, strict=True)))


def sphere_pile(seed: int, size: tuple[int, int, int], mass_ratio: float = 1e3, friction: float = 0.5) -> Problems:
    """One problem: spheres on a crooked lattice that touch their neighbours and, in the lowest layer, the ground.

    They fall by a centimetre per second and tumble a little. There are more rows than the six velocities of each sphere
    can meet one by one, so that G is singular.
    """
    rng = np.random.default_rng(seed)
    places = np.array(list(np.ndindex(size)), int)
    centers = places + rng.uniform(-0.1, 0.1, places.shape)
    number = {tuple(place): k for k, place in enumerate(places)}
    rows, n = [], 6 * len(places)
    for k, place in enumerate(places):
        for axis in range(3):
            lower = place - np.eye(3, dtype=int)[axis]
            other = number.get(tuple(lower))
            if other is None and axis < 2:
                continue
            apart = np.array([0.0, 0.0, 1.0]) if other is None else centers[k] - centers[other]
            rows.append(_touching(n, k, other, apart))
    J = np.concatenate(rows)
    masses = np.exp(rng.uniform(0.0, np.log(mass_ratio), len(places)))
    Minv = np.diag(np.repeat(np.stack([1.0 / masses, 1.0 / (0.1 * masses)], 1), 3, axis=1).ravel())
    v = 1e-2 * rng.normal(size=n)
    v[2::6] -= 0.1
    G = J @ Minv @ J.T
    found = G, J @ v, np.full(len(J) // 3, friction), J, Minv, v
    return Problems(*(x[None] for x in found))


def _touching(n: int, first: int, second: int | None, apart: Array) -> Array:
    """The rows t1, t2, n (3, n) of two spheres, or of one and the ground, whose centres are `apart`."""
    normal = apart / np.linalg.norm(apart)
    tangent = np.cross(normal, [0.3, 0.5, -0.8])
    tangent /= np.linalg.norm(tangent)
    axes = np.stack([tangent, np.cross(normal, tangent), normal])
    found = np.zeros((3, n))
    for body, sign in ((first, 1.0), (second, -1.0)):
        if body is not None:
            found[:, 6 * body : 6 * body + 3] = sign * axes
            found[:, 6 * body + 3 : 6 * body + 6] = sign * np.cross(-sign * 0.5 * apart, axes)
    return found


def cones_of(contacts: int, free: int = 0) -> list[Friction | Free]:
    """The cones of such problems."""
    return [Friction()] * contacts + ([Free(free)] if free else [])


def rotation(rng: np.random.Generator) -> Array:
    """A rotation, all of which are equally likely."""
    quaternion = rng.normal(size=4)
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _one(
    rng: np.random.Generator,
    contacts: int,
    bodies: int | None,
    mass_ratio: float,
    free: int,
    friction: tuple[float, float],
) -> tuple[Array, ...]:
    there = bodies or int(rng.integers(1, max(contacts, 2) + 1))
    n = 6 * (bodies or max(contacts, 2))
    Minv = np.zeros((n, n))
    for b in range(there):
        Minv[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = _inverse_inertia(rng, mass_ratio)
    rows = [_relative(rng, there, n) for _ in range(contacts)]
    bilateral = [_relative(rng, there, n) for _ in range(-(-free // 3))]
    J = np.vstack([*rows, *bilateral])[: 3 * contacts + free]
    v = rng.normal(size=n)
    return J @ Minv @ J.T, J @ v, rng.uniform(*friction, contacts), J, Minv, v


def _inverse_inertia(rng: np.random.Generator, mass_ratio: float) -> Array:
    """(6, 6) of a body, linear first, with a radius of gyration of 3 cm to 1 m."""
    mass = np.sqrt(mass_ratio) ** rng.uniform(-1.0, 1.0)
    radius = 10.0 ** rng.uniform(-1.5, 0.0)
    R = rotation(rng)
    result = np.zeros((6, 6))
    result[:3, :3] = np.eye(3) / mass
    result[3:, 3:] = R / (mass * radius**2 * rng.uniform(0.3, 1.0, 3)) @ R.T
    return result


def _relative(rng: np.random.Generator, bodies: int, n: int) -> Array:
    """(3, n) the velocity of a point of one body against one of another body, or of the ground, in turned axes."""
    first, second = int(rng.integers(bodies)), int(rng.integers(-1, bodies))
    R, J = rotation(rng), np.zeros((3, n))
    J[:, 6 * first : 6 * first + 6] = R.T @ _point(rng)
    if second not in (-1, first):
        J[:, 6 * second : 6 * second + 6] = -R.T @ _point(rng)
    return J


def _point(rng: np.random.Generator) -> Array:
    """(3, 6) the velocity of a point of a body."""
    x, y, z = 0.3 * rng.normal(size=3)
    return np.hstack([np.eye(3), -np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])])
