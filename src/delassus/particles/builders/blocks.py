"""Soft blocks of rubber, and rubber on tetrahedral meshes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import check_integer
from delassus.common.types import ArrayLike
from delassus.particles.description.checks import ParticlesError, check_indices, finite, positive
from delassus.particles.description.elements import Elements
from delassus.particles.description.library import solid
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def block(
    size: ArrayLike = (0.2, 0.2, 0.2),
    cells: ArrayLike = (4, 4, 4),
    *,
    center: ArrayLike = (0.0, 0.0, 0.0),
    density: float = 1000.0,
    young: float = 1e5,
    poisson: float = 0.3,
    pinned: str | ArrayLike = (),
    **others: Any,
) -> Particles:
    """A soft block: a grid of cells with six neo-Hookean tetrahedra each.

    The strain of a tetrahedron is constant, so bars with few cells across are too stiff in bending.

    Args:
        size: Width, depth and height [m].
        cells: Number of cells in each direction.
        center: Center [m].
        density: Mass density [kg/m³].
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, from 0 to less than ½.
        pinned: "bottom", "top", or indices of particles.
        **others: Other arguments of `Particles`.

    >>> dl.particles.block(cells=(1, 1, 1)).n
    8
    """
    sides, middle = finite("size", size, (3,), least=0.0, above=True), finite("center", center, (3,))
    positive(density=density)
    counts_by_axis: Any = (cells,) * 3 if np.ndim(cells) == 0 else cells
    counts = [check_integer("cells", k) for k in counts_by_axis]
    if len(counts) != 3:
        raise ParticlesError(
            f"cells is {cells!r}; it must be three integers, the numbers of cells in each direction.",
            code="wrong-shape",
        )
    axes = [middle[k] + sides[k] * np.linspace(-0.5, 0.5, counts[k] + 1) for k in range(3)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    number = np.arange(len(x)).reshape([k + 1 for k in counts])
    tetrahedra = _split_cells(number)
    names = {"bottom": number[:, :, 0].reshape(-1), "top": number[:, :, -1].reshape(-1)}
    if isinstance(pinned, str) and pinned not in names:
        raise ParticlesError(
            f"pinned is {pinned!r}; it must be one of {', '.join(names)}, or indices of particles.",
            code="unknown-option",
        )
    pinned_particles = names[pinned] if isinstance(pinned, str) else check_indices("pinned", pinned, len(x))
    share = density * float(np.prod(sides)) / (24.0 * float(np.prod(counts)))  # a quarter of a tetrahedron's
    masses = share * np.bincount(tetrahedra.reshape(-1), minlength=len(x)).astype(float)
    options: dict[str, Any] = {"faces": _outside(tetrahedra), "name": "block"} | others
    return Particles(x, masses, [solids(x, tetrahedra, young, poisson)], pinned_particles, **options)


def solids(positions: ArrayLike, tetrahedra: ArrayLike, young: float, poisson: float) -> Elements:
    """Neo-Hookean elements [Pa] on tetrahedra (e, 4) of particles with rest positions (n, 3) [m].

    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> dl.particles.solids(corners, [[0, 1, 2, 3]], young=1e5, poisson=0.3).kind.name
    'solid'
    """
    x = np.asarray(positions, float)
    points = check_indices("tetrahedra", tetrahedra, len(x), (-1, 4))
    positive(young=young)
    if not 0.0 <= poisson < 0.5:
        raise ParticlesError(
            f"poisson is {poisson!r}; Poisson's ratio must be from 0 to less than 0.5.", code="out-of-range"
        )
    edges = np.swapaxes(x[points[:, 1:]] - x[points[:, :1]], 1, 2)
    flat = np.abs(np.linalg.det(edges)) <= 1e-12 * np.linalg.norm(edges, axis=(1, 2)) ** 3
    if flat.any():
        at = int(np.argmax(flat))
        raise ParticlesError(
            f"tetrahedron {at} of the particles {points[at].tolist()} is flat; it must have a volume.",
            code="degenerate-element",
        )
    shear, bulk = young / (2.0 * (1.0 + poisson)), young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson))
    lame = np.broadcast_to([shear, bulk], (len(points), 2))
    return Elements(solid, points, np.concatenate([lame, np.linalg.inv(edges).reshape(-1, 9)], 1))


def _split_cells(number: Ints) -> Ints:
    """(6 cells, 4) tetrahedra: one for each path along the edges of a cell between opposite corners."""
    tetrahedra = []
    for order in permutations(range(3)):
        at, corners = np.zeros(3, int), []
        for axis in (None, *order):
            if axis is not None:
                at[axis] = 1
            inside = tuple(slice(a, a + k - 1) for a, k in zip(at, number.shape, strict=True))
            corners.append(number[inside].reshape(-1))
        tetrahedra.append(np.stack(corners, 1))
    return np.concatenate(tetrahedra)


def _outside(tetrahedra: Ints) -> Ints:
    """(f, 3) the triangles that belong to a single tetrahedron."""
    sides = np.concatenate([np.delete(tetrahedra, k, 1) for k in range(4)])
    _, first, count = np.unique(np.sort(sides, 1), axis=0, return_index=True, return_counts=True)
    return sides[first[count == 1]]
