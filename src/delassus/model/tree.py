"""Generated trees of revolute joints, for tests, benchmarks and first steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError

Matrix = tuple[tuple[float, ...], ...]
Vector = tuple[float, ...]


@dataclass(frozen=True)
class Link:
    """A rigid body and the revolute joint, about its own z axis, that carries it.

    `parent` is the index of the link it hangs on, -1 for the world. `rotation` and `translation` [m] place the
    joint in the parent's frame. `com` [m] and `inertia` [kg·m²], the latter about the centre of mass, are in the
    link's frame.
    """

    parent: int
    rotation: Matrix
    translation: Vector
    mass: float
    com: Vector
    inertia: Matrix


@dataclass(frozen=True)
class Tree:
    """Links in an order where parents come first; hashable by content.

    `gravity` [m/s²] is in the world frame.
    """

    links: tuple[Link, ...]
    gravity: Vector = (0.0, 0.0, -9.81)

    def __post_init__(self) -> None:
        for i, link in enumerate(self.links):
            if not -1 <= link.parent < i:
                raise DelassusError(
                    f"link {i} hangs on link {link.parent}: a parent comes before its children, so it must be "
                    f"between -1 (the world) and {i - 1}."
                )

    @property
    def nq(self) -> int:
        """Number of configuration variables."""
        return len(self.links)

    @property
    def nv(self) -> int:
        """Number of velocity variables."""
        return len(self.links)


def chain(n: int, seed: int = 0) -> Tree:
    """A chain of n links with random placements and inertias."""
    return _generate([i - 1 for i in range(n)], seed)


def balanced_tree(n: int, branching: int = 2, seed: int = 0) -> Tree:
    """A tree of n links in which every link carries `branching` others."""
    return _generate([(i - 1) // branching if i else -1 for i in range(n)], seed)


def random_tree(n: int, seed: int = 0) -> Tree:
    """A tree of n links, each on a random one of those before it."""
    rng = np.random.default_rng(seed)
    return _generate([int(rng.integers(-1, i)) if i else -1 for i in range(n)], seed)


def _generate(parents: list[int], seed: int) -> Tree:
    rng = np.random.default_rng(seed)
    return Tree(tuple(_random_link(rng, parent) for parent in parents))


def _random_link(rng: np.random.Generator, parent: int) -> Link:
    """A link of 0.1 to 0.5 m with the mass and the inertia of a box of that size."""
    size = rng.uniform(0.1, 0.5, 3)
    mass = 400.0 * float(np.prod(size))
    moments = mass / 12 * (np.sum(size**2) - size**2)
    axes = _random_rotation(rng)
    return Link(
        parent=parent,
        rotation=_rows(_random_rotation(rng)),
        translation=tuple(rng.uniform(-0.4, 0.4, 3).tolist()),
        mass=mass,
        com=tuple(rng.uniform(-0.2, 0.2, 3).tolist()),
        inertia=_rows(axes @ np.diag(moments) @ axes.T),
    )


def _random_rotation(rng: np.random.Generator) -> NDArray[np.float64]:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q *= np.sign(np.diag(R))
    Q *= np.sign(np.linalg.det(Q))
    return Q


def _rows(A: NDArray[np.float64]) -> Matrix:
    return tuple(tuple(row) for row in A.tolist())
