"""Stability of explicit geometric stiffness: whether element forces may rotate explicitly.

A rope of tension T has the transverse stiffness T/l. Taken explicitly, a step h of particles of mass m is stable for
h² T/(l m) < 1 where positions are implicit, and never where they are not: a share 1 - β of it is gained in each step.
Of any element, the stiffness is that of its forces times the second derivatives of its rows; sums of their sizes over
the elements of a particle bound all frequencies. They are taken of the system as it is built, and of rows that tension
makes stiffer, such as those of rods, springs and strains; others turn little.

Compression makes stiffness negative, which is left out where turning is implicit. In a truss, whose tension and
compression are in balance, what remains would hold back motions that nothing holds: such particles do not count.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.description.elements import Elements
from delassus.particles.description.lanes import curvature
from delassus.particles.description.particles import Particles
from delassus.particles.solvers.rows import Rows
from delassus.step.scheme.blend import Blend

Array = NDArray[np.float64]

_LARGEST: Final = 1.0
"""The largest h² k/m of forces that stay explicit; 4 is the limit of the bound."""

_TRUSS: Final = 0.3
"""The share of compression beside tension from which on a particle is one of a truss."""

_GAIN: Final = 1e-2
"""The largest share by which a step may let an oscillation grow where β < 1."""

_CHUNK: Final = 50_000
"""So many elements are looked at together: their second derivatives take much memory."""


class GeometricStiffness:
    """Bounds of the stiffness that impulses of rows have by turning."""

    def __init__(self, p: Particles, deformations: Rows) -> None:
        nodes, rows, sizes = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
        for _, group, at in deformations.groups:
            if not group.kind.steady:
                k = group.kind.rows
                shape = (len(group), k, group.kind.points)
                row = at.start + np.arange(group.rows).reshape(-1, k, 1)
                nodes.append(np.broadcast_to(group.points[:, None, :], shape).reshape(-1))
                rows.append(np.broadcast_to(row, shape).reshape(-1))
                sizes.append(_sizes(group, p.positions).reshape(-1))
        light = np.zeros(p.nodes)
        light[: p.n][~p.is_prescribed] = 1.0 / p.masses[~p.is_prescribed]
        node = np.concatenate(nodes)
        shares = np.concatenate(sizes) * light[node]
        self.bounds = sparse.csr_matrix((shares, (node, np.concatenate(rows))), shape=(p.nodes, deformations.m))

    def unstable(self, impulse: Array, blend: Blend) -> bool:
        """Whether a step with impulses like those (m,) of the step before [N·s] needs their turning implicit."""
        tension, compression = (self.bounds @ np.maximum(sign * impulse, 0.0) for sign in (-1.0, 1.0))
        most = float(blend.h * np.max(tension, where=compression <= _TRUSS * tension, initial=0.0))
        return most > _LARGEST or (1.0 - blend.beta) * most > _GAIN


def _sizes(group: Elements, positions: Array) -> Array:
    """(elements, rows, points) the largest sum of a row of |∇²g| at each point [1/m]; 0 where ∇²g is not positive."""
    kind, count = group.kind, len(group)
    found = np.zeros((count, kind.rows, kind.points))
    for start in range(0, count, _CHUNK):
        here = slice(start, start + _CHUNK)
        x, numbers = positions[group.points[here]], group.numbers[here]
        for r in range(kind.rows):
            force = np.broadcast_to(np.eye(kind.rows)[r], (len(x), kind.rows))
            H = np.asarray(curvature(kind, x, numbers, force))
            sums = np.abs(H).sum(2)
            stiffer = np.trace(H, axis1=1, axis2=2) > 0.1 * sums.max(1)
            found[here, r] = np.where(stiffer[:, None], sums.reshape(-1, kind.points, 3).max(2), 0.0)
    return found
