"""The primal program: the admissible velocities that are nearest to the free velocity in kinetic energy.

    min ½ (v - v_f)ᵀ M (v - v_f)  with  J v = 0 in free rows, J v ≥ 0 in half-lines, friction ‖σ_t‖ ≤ σ_n in contacts

(Gauss's principle.) Its multipliers are the impulses, M (v - v_f) = Jᵀ λ, under the law "ccp", and without friction
under all laws. It needs no Delassus matrix, and its solution v is unique for any J.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import elements, real_array
from delassus.common.types import ArrayLike
from delassus.contact.cones.kinds import Cone, ConeError, Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.second_order import contact_residual
from delassus.contact.references.convex_program import ConvexProgram, answers_of_clarabel
from delassus.errors import short

Array = NDArray[np.float64]

_GOOD: Final = 1e-10
"""The error, relative to the free velocity, below which no further attempt is made."""


def primal_impulses(
    cones: Sequence[Cone], M: ArrayLike, J: ArrayLike, free_velocity: ArrayLike, friction: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Velocities v (n,) and impulses λ (m,) of one convex contact problem, by clarabel.

    Args:
        cones: Those of the rows, in their order: free rows, half-lines, contacts of three rows.
        M: (n, n) mass matrix.
        J: (m, n) Jacobian of the rows.
        free_velocity: (n,) v_f, without any impulses.
        friction: (contacts,) coefficients, or one for all.

    >>> dl.contact.primal_impulses([dl.cones.Friction()], np.eye(3), np.eye(3), [0.0, 0.0, -1.0], 0.5)[1].round(6)
    array([0., 0., 1.])
    """
    if not all(isinstance(cone, Free | Friction | NonNegative | Interval) for cone in elements(cones)):
        raise ConeError(
            f"cones is {short(repr(cones))}; it must be a list of cones, such as [dl.cones.Friction()].",
            code="wrong-type",
        )
    layout = Layout(elements(cones))
    if layout.rows(Interval) or layout.torsional:
        raise ConeError(
            "the primal program supports free rows, half-lines and contacts of three rows only.",
            code="not-supported",
        )
    M, J, v_f = (real_array(name, x) for name, x in (("M", M), ("J", J), ("free_velocity", free_velocity)))
    n = v_f.shape[-1] if v_f.ndim == 1 else -1
    if M.shape != (n, n) or J.shape != (layout.m, n) or not layout.m:
        raise ConeError(
            f"M has shape {M.shape}, J {J.shape} and free_velocity {v_f.shape}; with {layout.m} rows they are (n, n), "
            f"({layout.m}, n) and (n,), of one problem.",
            code="wrong-shape",
        )
    mu = real_array("friction", 0.0 if friction is None else friction)
    if mu.shape not in ((), (1,), (layout.contacts,)):
        raise ConeError(
            f"friction has shape {mu.shape}; it must be one number or one for each of {layout.contacts} contacts.",
            code="wrong-shape",
        )
    mu = np.broadcast_to(mu, (layout.contacts,))
    # In units with M = 1 and a free velocity of one: x = Lᵀ v / scale with M = L Lᵀ.
    L = np.linalg.cholesky(M)
    rows = np.linalg.solve(L, J.T).T
    start = L.T @ v_f
    scale = float(np.linalg.norm(start)) or 1.0
    size = np.linalg.norm(rows, axis=-1)
    for contact in layout.friction:
        size[contact.start : contact.stop] = np.linalg.norm(size[contact.start : contact.stop])
    size = np.where(size > 0.0, size, 1.0)
    rows = rows / size[:, None]
    program, parts = ConvexProgram(np.eye(len(M)), -start / scale), []
    for kind, add in ((Free, program.with_equal), (NonNegative, program.with_positive)):
        if layout.rows(kind):
            add(rows[list(layout.rows(kind))])
            parts.append((list(layout.rows(kind)), 1.0))
    for contact, coefficient in zip(layout.friction, mu, strict=True):
        # friction ‖σ_t‖ ≤ σ_n, divided by large friction
        factors = np.array([1.0, coefficient, coefficient]) / max(1.0, coefficient)
        at = [contact[2], contact[0], contact[1]]
        program.with_second_order(factors[:, None] * rows[at])
        parts.append((at, factors))
    best: tuple[Any, Any] = (v_f, np.zeros(layout.m))
    smallest = np.inf
    for candidate in answers_of_clarabel(program):
        impulse = np.zeros(layout.m)
        for (at, factors), multipliers in zip(parts, candidate.multipliers, strict=True):
            impulse[at] = factors * multipliers
        unbalanced = np.abs(candidate.x - start / scale - rows.T @ impulse).max()
        error = max(unbalanced, _residual(layout, mu, impulse, rows @ candidate.x))
        if error < smallest:
            best, smallest = (np.linalg.solve(L.T, scale * candidate.x), scale * impulse / size), error
        if error <= _GOOD:
            break
    return best


def _residual(layout: Layout, friction: Array, impulse: Array, velocity: Array) -> float:
    """The largest entry of λ - P(λ - σ)."""
    free, half = list(layout.rows(Free)), list(layout.rows(NonNegative))
    residuals = [velocity[free], np.minimum(impulse[half], velocity[half])]
    for contact, coefficient in zip(layout.friction, friction, strict=True):
        rows = list(contact)
        residuals.append(np.asarray(contact_residual(impulse[rows], velocity[rows], coefficient, convex=True)))
    return float(np.abs(np.concatenate(residuals)).max(initial=0.0))
