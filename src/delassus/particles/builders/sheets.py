"""Grids of particles: nets and cloth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import check_integer
from delassus.common.options import Options, Shortcuts
from delassus.common.types import ArrayLike
from delassus.particles.builders.ropes import _alive
from delassus.particles.description.checks import ParticlesError, check_indices, finite, positive
from delassus.particles.description.elements import Elements
from delassus.particles.description.library import bend, stretch
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def grid(size: Any, cells: Any, center: Any) -> tuple[Array, Ints]:
    """Points (rows · columns, 3) on a horizontal rectangle, and their indices (rows, columns)."""
    wide, deep = finite("size", size, (2,), least=0.0, above=True)
    columns, rows = (check_integer("cells", k) for k in ((cells, cells) if np.ndim(cells) == 0 else cells))
    x, y = np.linspace(-0.5, 0.5, columns + 1) * wide, np.linspace(-0.5, 0.5, rows + 1) * deep
    X, Y = np.meshgrid(x, y)
    points = np.stack([X, Y, np.zeros_like(X)], -1).reshape(-1, 3) + finite("center", center, (3,))
    return points, np.arange(len(points)).reshape(X.shape)


def pinned_on_grid(pinned: Any, number: Ints) -> Ints:
    """The pinned particles of a grid, by names of edges and corners or by indices."""
    edges = {"left": number[:, 0], "right": number[:, -1], "front": number[0], "back": number[-1]}
    corners = number[[0, 0, -1, -1], [0, -1, 0, -1]]
    names = edges | {"corners": corners, "edges": np.concatenate(list(edges.values())), "none": number[:0, 0]}
    names_given = [pinned] if isinstance(pinned, str) else pinned
    if not np.size(names_given) or not any(isinstance(name, str) for name in names_given):
        return check_indices("pinned", names_given, number.size)
    for name in names_given:
        if name not in names:
            raise ParticlesError(
                f"pinned has {name!r}; it must be one of {', '.join(names)}, or indices of particles.",
                code="unknown-option",
            )
    return np.unique(np.concatenate([names[name] for name in names_given]))


def net(
    size: ArrayLike = (1.0, 1.0),
    cells: ArrayLike = (10, 10),
    *,
    center: ArrayLike = (0.0, 0.0, 0.0),
    density: float = 0.5,
    stiffness: float | None = None,
    pinned: str | ArrayLike = "edges",
    **others: Any,
) -> Particles:
    """A net: particles on a grid, with rods or springs along its lines and no shear stiffness.

    Args:
        size: Width and depth [m].
        cells: Number of meshes in each direction.
        center: Center [m].
        density: Mass per area [kg/m²].
        stiffness: EA of a cord [N]; None for inextensible cords.
        pinned: "left", "right", "front", "back", "edges", "corners", "none", several of these, or indices of particles.
        **others: Other arguments of `Particles`.

    >>> dl.particles.net(cells=(3, 3)).n
    16
    """
    points, number = grid(size, cells, center)
    positive(density=density, stiffness=1.0 if stiffness is None else stiffness)
    pinned_particles = pinned_on_grid(pinned, number)
    edges = np.concatenate([_pairs(number[:, :-1], number[:, 1:]), _pairs(number[:-1], number[1:])])
    edges = _alive(edges, pinned_particles, len(points), stiffness is None)
    rest_lengths = np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1)
    C = None if stiffness is None else rest_lengths / stiffness
    cords = Elements(stretch, edges, rest_lengths[:, None], C)
    return Particles(points, _masses(number, size, density), [cords], pinned_particles, **({"name": "net"} | others))


@dataclass(frozen=True, eq=False)
class Fabric(Options):
    """Material of a cloth.

    Attributes:
        density: Mass per area [kg/m²].
        stretching: Force per width and strain [N/m].
        shearing: Likewise along diagonals [N/m].
        bending: Moment per width and curvature [N·m]; 0 for none.
        damping: Time constant of stretching and shearing [s].

    >>> dl.particles.Fabric(density=0.3).density
    0.3
    """

    density: float = 0.2
    stretching: float = 500.0
    shearing: float = 50.0
    bending: float = 1e-5
    damping: float = 0.0


_FABRIC: Final = Shortcuts("cloth", "size cells center pinned", fabric=Fabric())


def cloth(
    size: ArrayLike = (1.0, 1.0),
    cells: ArrayLike = (20, 20),
    *,
    center: Any = (0.0, 0.0, 0.0),
    fabric: Fabric | None = None,
    pinned: Any = "none",
    **others: Any,
) -> Particles:
    """A cloth: springs along warp and weft and along diagonals, and bending elements.

    Args:
        size: Width and depth [m].
        cells: Number of cells in each direction.
        center: Center [m].
        fabric: A `Fabric`: density, stretching, shearing, bending, damping.
        pinned: As for `net`.
        **others: Fields of the fabric, and other arguments of `Particles`.

    >>> dl.particles.cloth(cells=(3, 3)).n
    16
    """
    fabric_fields = {name: others.pop(name) for name in _FABRIC.names & others.keys()}
    (fabric,) = _FABRIC.fill(fabric_fields, fabric=fabric)
    density, stretching, shearing = fabric.density, fabric.stretching, fabric.shearing
    bending, damping = fabric.bending, fabric.damping
    points, number = grid(size, cells, center)
    positive(density=density, stretching=stretching, shearing=shearing)
    finite("bending", bending, (), least=0.0)
    (wide, deep), (rows, columns) = np.broadcast_to(size, 2), np.array(number.shape) - 1
    dx, dy = wide / columns, deep / rows
    straight = [(_pairs(number[:, :-1], number[:, 1:]), dy / dx), (_pairs(number[:-1], number[1:]), dx / dy)]
    diagonal = [_pairs(number[:-1, :-1], number[1:, 1:]), _pairs(number[:-1, 1:], number[1:, :-1])]
    elements = []
    edges = np.concatenate([pairs for pairs, _ in straight] + diagonal)
    k = np.concatenate(
        [np.full(len(p), stretching * share) for p, share in straight] + [np.full(len(p), shearing) for p in diagonal]
    )
    rest_lengths = np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1)
    B = None if damping == 0.0 else damping * k
    elements.append(Elements(stretch, edges, rest_lengths[:, None], 1.0 / k, B))
    if bending > 0.0:
        lines = [(number, dx, dy), (number.T, dy, dx)]
        for lattice, step, spacing in lines:
            threes = np.stack([lattice[:, :-2], lattice[:, 1:-1], lattice[:, 2:]], -1).reshape(-1, 3)
            if len(threes):
                parameters = np.tile([step, step, 0.0, 0.0, 0.0], (len(threes), 1))
                elements.append(Elements(bend, threes, parameters, np.full(len(threes), step / (bending * spacing))))
    quads = np.stack([number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]], -1).reshape(-1, 4)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    pinned_particles = pinned_on_grid(pinned, number)
    options: dict[str, Any] = {"faces": faces, "name": "cloth"} | others
    return Particles(points, _masses(number, size, density), elements, pinned_particles, **options)


def _pairs(a: Ints, b: Ints) -> Ints:
    return np.stack([a.reshape(-1), b.reshape(-1)], 1)


def _masses(number: Ints, size: Any, density: float) -> Array:
    """Masses [kg]: a quarter of each cell at each corner."""
    rows, columns = np.array(number.shape) - 1
    one = density * float(np.prod(np.broadcast_to(size, 2))) / (rows * columns)
    share = np.full(number.shape, one)
    share[[0, -1]] *= 0.5
    share[:, [0, -1]] *= 0.5
    return share.reshape(-1)
