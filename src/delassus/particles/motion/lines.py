"""The lines and isolated particles of a drawing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from delassus.particles.description.particles import Particles

Ints = NDArray[np.int64]


def lines_of(particles: Particles) -> tuple[Ints, Ints]:
    """Lines (e, 2), and isolated particles (k,): the elements of two points, or, without any, the sides of the
    others.
    """
    twos = [group.points for group in particles.elements if group.kind.points == 2]
    if not twos:
        bodies = [particles.faces, *(group.points for group in particles.elements if group.kind.points > 2)]
        twos = [points[:, list(pair)] for points in bodies for pair in combinations(range(points.shape[1]), 2)]
    edges = np.unique(np.sort(np.concatenate([np.zeros((0, 2), np.int64), *twos]), 1), axis=0)
    loose = np.ones(particles.n, bool)
    loose[edges.reshape(-1)] = False
    return edges, np.flatnonzero(loose)
