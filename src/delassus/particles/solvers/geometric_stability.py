"""Stability of explicit geometric stiffness: whether element forces may rotate explicitly.

A rope of tension T has the transverse stiffness T/l. If it is explicit, a step h with particles of mass m is stable for
h² T/(l m) < 1 if positions are implicit, and never otherwise: oscillations then grow by a fraction 1 - β of it in each
step. For general elements, the stiffness is the product of forces and second derivatives of rows; sums of their
magnitudes over the elements of a particle bound all frequencies. They are evaluated at the initial positions, for rows
that tension makes stiffer, such as rods, springs and strains; others rotate little.

Compression makes the stiffness negative, and is dropped if the rotation is implicit. In a truss, whose tension and
compression balance, the remaining part would resist motions that have no stiffness: such particles do not count.
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
"""Largest h² k/m of explicit forces; the bound is stable up to 4."""

_TRUSS: Final = 0.3
"""Ratio of compression to tension from which a particle counts as part of a truss."""

_GAIN: Final = 1e-2
"""Largest relative growth of an oscillation per step for β < 1."""

_CHUNK: Final = 50_000
"""Number of elements processed together: their second derivatives take much memory."""


class GeometricStiffness:
    """Bounds of the geometric stiffness of the rows' impulses."""

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
        """Whether a step with impulses like those (m,) of the previous step [N·s] needs implicit rotation of forces."""
        tension, compression = (self.bounds @ np.maximum(sign * impulse, 0.0) for sign in (-1.0, 1.0))
        most = float(blend.h * np.max(tension, where=compression <= _TRUSS * tension, initial=0.0))
        return most > _LARGEST or (1.0 - blend.beta) * most > _GAIN


def _sizes(group: Elements, positions: Array) -> Array:
    """(elements, rows, points) the largest row sum of |∇²g| at each point [1/m]; 0 where ∇²g is not positive."""
    kind, count = group.kind, len(group)
    sizes = np.zeros((count, kind.rows, kind.points))
    for start in range(0, count, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        x, parameters = positions[group.points[chunk]], group.numbers[chunk]
        for r in range(kind.rows):
            force = np.broadcast_to(np.eye(kind.rows)[r], (len(x), kind.rows))
            H = np.asarray(curvature(kind, x, parameters, force))
            sums = np.abs(H).sum(2)
            stiffer = np.trace(H, axis1=1, axis2=2) > 0.1 * sums.max(1)
            sizes[chunk, r] = np.where(stiffer[:, None], sums.reshape(-1, kind.points, 3).max(2), 0.0)
    return sizes
