"""Generated mechanisms for tests and benchmarks: trees of revolute joints with boxes as links."""

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument
from delassus.model.joints import Revolute
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Joint
from delassus.model.placement import Inertia, Placement


def chain(n: int, seed: int = 0) -> Model:
    """A chain of n links with random placements and inertias; its frame "tip" is at the last one's end."""
    return _generate(f"chain of {n}", [i - 1 for i in range(n)], seed)


def balanced_tree(n: int, branching: int = 2, seed: int = 0) -> Model:
    """A tree of n links in which every link carries `branching` others."""
    return _generate(f"tree of {n}", [(i - 1) // branching if i else WORLD for i in range(n)], seed)


def random_tree(n: int, seed: int = 0) -> Model:
    """A tree of n links, each on a random one of those before it."""
    rng = np.random.default_rng(seed)
    return _generate(f"random tree of {n}", [int(rng.integers(WORLD, i)) if i else WORLD for i in range(n)], seed)


def _generate(name: str, parents: list[int], seed: int) -> Model:
    if not parents:
        raise BadArgument(
            "a generated mechanism must have at least one link; increase the number of links.", code="out-of-range"
        )
    rng = np.random.default_rng(seed)
    joints = tuple(_random_joint(rng, i, parent) for i, parent in enumerate(parents))
    leaves = sorted(set(range(len(parents))) - set(parents))
    names = ["tip"] if len(leaves) == 1 else [f"tip{k}" for k in range(len(leaves))]
    frames = [Frame(f"link{i}", i, role="link") for i in range(len(parents))]
    tips = [Frame(n, i, Placement.of(p=rng.uniform(-0.3, 0.3, 3))) for n, i in zip(names, leaves, strict=True)]
    return Model(name, joints, (*frames, *tips))


def _random_joint(rng: np.random.Generator, index: int, parent: int) -> Joint:
    """A joint whose link is a box of 0.1 to 0.5 m, of density 400 kg/m³."""
    size = rng.uniform(0.1, 0.5, 3)
    mass = 400.0 * float(np.prod(size))
    moments = mass / 12 * (np.sum(size**2) - size**2)
    axes = _random_rotation(rng)
    return Joint(
        name=f"joint{index}",
        kind=Revolute(continuous=True),
        parent=parent,
        placement=Placement.of(_random_rotation(rng), rng.uniform(-0.4, 0.4, 3)),
        inertia=Inertia.of(mass, rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T),
    )


def _random_rotation(rng: np.random.Generator) -> NDArray[np.float64]:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q *= np.sign(np.diag(R))
    Q *= np.sign(np.linalg.det(Q))
    return Q
