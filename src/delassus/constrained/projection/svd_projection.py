"""Taking drift off by one singular value decomposition, J = U Σ Vᵀ, as textbooks do it.

With the pseudo-inverse J⁺ and the columns N of V that J does not see,

    q ⊕ -J⁺ e,      v = N Nᵀ v + J⁺ w,

w the velocities of the references: the least change of q and v in the plain (Euclidean) metric, to first order. Radians
and metres are added up in it, so the result depends on units; J is that of the configuration given, so both equations
are met up to products of e, and rows whose neighbours are left out, whose velocity is not the rate of e, not even that
far (see `Constraint.holonomic`). O(m n min(m, n)) operations in plain NumPy; not compiled. It needs no inertias and any
rank will do. Choose `project_by_mass` for simulations.

Reference: S. Savin, lectures on constrained dynamics (drift of explicit constraints), with N Nᵀ J⁺ = 0 made use of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.record import refuse_inside
from delassus.constrained.elimination.gauss import RANK
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.locked import locked_coordinates
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import integrate

Floats = NDArray[np.float64]


@kernel("(nq)->(m),(m),(m,nv)", inputs={"time": "()"})
def rows_and_references(mechanism: Mechanism, q: Any, *, time: Any = None) -> tuple[Floats, Floats, Floats]:
    """e (m,), w (m,) and J (m, nv)."""
    e = constraint_error.function(mechanism, q, time=time)
    return e, velocities_asked(mechanism, q, time), constraint_jacobian.function(mechanism, q, time=time)


def project_by_svd(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    locked: tuple[int, ...] = (),
    time: ArrayLike | None = None,
    parameters: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Configurations (…, nq) and velocities (…, nv) after one step; arguments as for `project_by_mass`."""
    refuse_inside("project with method='svd'", "take method='mass' there")
    q, v = np.asarray(q, float), np.asarray(v, float)
    if v.shape[-1:] != (mechanism.nv,):
        raise ValueError(f"v has shape {v.shape}; its last axis has one number for each of {mechanism.nv} velocities.")
    given: dict[str, Any] = {name: x for name, x in (("time", time), ("parameters", parameters)) if x is not None}
    e, w, J = rows_and_references(mechanism, q, **given)
    finite = np.isfinite(J).all((-2, -1)) & np.isfinite(e).all(-1)
    moving = np.isfinite(v).all(-1)
    v = np.where(moving[..., None], v, 0.0)
    J = np.where(finite[..., None, None], J, 0.0)
    held = np.isin(np.arange(mechanism.nv), locked)
    if locked:
        w, J = w - np.matvec(J[..., held], v[..., held]), np.where(held, 0.0, J)
    U, inverse, seen = _pseudo_inverse(J)  # N Nᵀ v = v - V₁ V₁ᵀ v, V₁ᵀ the rows that J sees
    along = np.matvec(seen, v) - inverse * np.vecmat(w, U)
    change = np.where(held, 0.0, -np.vecmat(along, seen))
    found_v = np.where((finite & moving)[..., None], v + change, np.nan)
    holding = _rows_that_hold(mechanism)
    if not holding.all():
        U, inverse, seen = _pseudo_inverse(J * holding[:, None])
    found_q = integrate(mechanism.model, q, -np.vecmat(inverse * np.vecmat(e, U), seen))
    if locked:
        kept = list(locked_coordinates(mechanism.model, locked))
        found_q[..., kept] = q[..., kept]
    return found_q, found_v


def _pseudo_inverse(J: Floats) -> tuple[Floats, Floats, Floats]:
    """U, Σ⁺ and the rows of Vᵀ that J sees."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > np.sqrt(RANK) * np.max(s, axis=-1, keepdims=True, initial=0.0)
    return U, np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0), np.where(kept[..., None], Vt, 0.0)


def _rows_that_hold(mechanism: Mechanism) -> NDArray[np.bool_]:
    """Whether each row holds positions (m,), not velocities alone."""
    holding = np.ones(mechanism.m, bool)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        holding[at] = constraint.holds_positions
    return holding
