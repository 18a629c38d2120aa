"""The impulses of the rows: (J W⁻¹ Jᵀ + R) λ + b + J v_f = 0, or complementary to it where rows push alone.

The Schur complement of the KKT matrix [W, -Jᵀ; -J, -R]: positive definite but for rows that repeat each other.
Bilateral rows are solved at once, in units of their own response, by L D Lᵀ; contacts, limits and dry friction by the
contact solver.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Free
from delassus.contact.robots.scene import Scene
from delassus.contact.solvers.solve import solve_contacts
from delassus.dynamics.tree.ldl import ldl

_LEFT: Final = 1e-9
"""What rows may leave of the largest velocity in them and still count as met."""


RUBBING: Final = ("friction", "torsional", "rolling")


class Cones(NamedTuple):
    """Friction of the contacts, and how their problem is solved: inputs of `solve_contacts`."""

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    start: Any = None
    tolerance: Any = None
    iterations: Any = None

    @property
    def frictionless(self) -> Cones:
        """Of the correction phase, in which nothing rubs."""
        slip = {name: None if x is None else np.zeros(x.shape) for name, x in self._asdict().items() if name in RUBBING}
        return self._replace(**slip, start=None)


class Solved(NamedTuple):
    """Impulses (m,), what rows leave of J v⁺ + R λ + b (m,), iterations, and the number of a `Status`."""

    impulse: Any
    residual: Any
    count: Any
    status: Any


def solve_rows(scene: Scene, G: Any, g: Any, R: Any, cones: Cones, bounds: Any, method: str = "auto") -> Solved:
    """G = J W⁻¹ Jᵀ (m, m), g = J v_f + b (m,), R (m,); `bounds` of dry friction as impulses."""
    if is_bilateral(scene) and method == "auto":
        return bilateral(G, g, R)
    impulse, _, residual, count, status = solve_contacts(
        scene.layout,
        G,
        g,
        friction=cones.friction,
        torsional=cones.torsional,
        rolling=cones.rolling,
        lower=None if bounds is None else -bounds,
        upper=bounds,
        compliance=R,
        start=cones.start,
        tolerance=cones.tolerance,
        iterations=cones.iterations,
        method=method,
    )
    return Solved(impulse, residual, count, status)


def is_bilateral(scene: Scene) -> bool:
    """Whether all rows act in both directions, without bounds."""
    return all(isinstance(cone, Free) for cone in scene.layout.cones)


def bilateral(G: Any, g: Any, R: Any) -> Solved:
    """The smallest impulses that rows are met with, or come nearest to it."""
    m = len(g)
    if not m:
        return Solved(np.zeros(0), np.zeros(0), np.array(0.0), np.array(float(Status.CONVERGED)))
    A = G + np.diag(R)
    diagonal = np.stack([A[k, k] for k in range(m)])
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    A = A * (unit[:, None] * unit[None, :])
    epsilon = 1e-9 if computing_in().name == "float64" else 1e-5
    factors = ldl(A + epsilon * np.eye(m))
    b = contradiction = -unit * g
    for _ in range(3):  # ε (A + ε)⁻¹ leaves what no impulse reaches, and nearly nothing else
        contradiction = epsilon * factors.solve(contradiction)
    reachable, x = b - contradiction, np.zeros(m)
    for _ in range(4):
        x = x + factors.solve(reachable - A @ x)
    impulse = unit * x
    left = G @ impulse + R * impulse + g
    scale = np.max(np.abs(b)) / unit
    met = np.all(np.abs(left) <= _LEFT * scale)
    status = np.where(met, float(Status.CONVERGED), float(Status.LEAST_SQUARES))
    finite = np.isfinite(np.sum(impulse) + np.sum(left))
    return Solved(impulse, left, np.array(1.0), np.where(finite, status, float(Status.NOT_FINITE)))
