"""Matrices that belong to constraints: Delassus matrix, operational inertia, and the sparse factors of `prox_ltl`.

K = [-E - C, J; Jᵀ, M] with E = diag(ε) the `proximal` parameter. M⁻¹ itself is `inverse_mass_matrix`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.caba_osim import caba_osim
from delassus.constrained.delassus.delassus_methods import TREE_METHODS, lower_delassus
from delassus.constrained.delassus.proximal import Proximal, proximal_rows
from delassus.constrained.elimination.tree_factor import TreeFactor, tree_factor
from delassus.constrained.rows.inputs import PROXIMAL, TIME
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.options import check_method
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import compliance_of
from delassus.dynamics.mass.factor import forward
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.ldl import Ldl, ldl
from delassus.dynamics.tree.poses import mirrored


@dataclass(frozen=True)
class KktFactor:
    """K = U D Uᵀ with U = [U_Λ  Y; 0  U_M] and D = (-D_Λ, D_M); `corner` holds U_Λ and D_Λ with rows reversed."""

    tree: TreeFactor
    corner: Ldl

    def damped(self, damping: Any) -> KktFactor:
        """The factors for another diagonal E + C (m,): m³/6 operations, the tree is not touched."""
        return KktFactor(self.tree, _corner(self.tree.delassus, damping))

    def solve_rows(self, b: Any) -> Any:
        """(J M⁻¹ Jᵀ + E + C)⁻¹ b for b (m,) or (m, k)."""
        return self.corner.solve(b[::-1])[::-1]


def factor(mechanism: Mechanism, q: Any, proximal: Proximal, time: Any = None) -> KktFactor:
    """The factors of K in a configuration, as a part of other kernels."""
    check_inertias(mechanism.model)
    tree = tree_factor(mechanism.model, q, constraint_jacobian(mechanism, q, time=time))
    return KktFactor(tree, _corner(tree.delassus, damping_rows(mechanism, proximal)))


@kernel("(nq)->(m,m)", inputs={"time": "()"})
def delassus_matrix(mechanism: Mechanism, q: Any, *, method: str = "auto", time: Any = None) -> Floats:
    """G = J M⁻¹ Jᵀ (m, m) [1/kg, 1/(kg·m), 1/(kg·m²)], symmetric: the rows' accelerations per unit of their forces.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        method: "pv_osimr" O(n + m²), "efpa" O(n + m d + m²), "ltl" O(n d² + m d² + m² d), or "auto" for the fastest:
            pv_osimr, or ltl where joints share coordinates (mimicry), which has no recursion over the tree.
        time: () [s] what rows move with, needed where they do (input at run time).
    """
    return mirrored(lower_delassus(mechanism, q, method, time))


@kernel("(nq)->(m,m)", inputs={"time": TIME, "proximal": PROXIMAL})
def operational_inertia(
    mechanism: Mechanism, q: Any, *, method: str = "auto", time: Any = None, proximal: Proximal = None
) -> Floats:
    """Λ = (J M⁻¹ Jᵀ + E + C)⁻¹ (m, m) [kg, kg·m, kg·m²]: the damped operational-space inertia matrix.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one number or one per row; by default a millionth of what the rows
            yield.
        method: How J M⁻¹ Jᵀ is formed, to be inverted (as for `delassus_matrix`), or "caba_osim", which forms Λ itself
            in O(n + m²), faster for many rows, and loses digits where ε is small (see `caba_osim`).
        time: () [s] what rows move with, needed where they do (input at run time).
    """
    damping = damping_rows(mechanism, proximal)
    check_method(method, ("auto", "ltl", *TREE_METHODS, "caba_osim"))
    if method == "caba_osim":
        return mirrored(caba_osim(mechanism, q, damping, time))
    factors = ldl(lower_delassus(mechanism, q, method, time) + np.diag(damping))
    return mirrored(factors.solve(np.eye(mechanism.m)))


@kernel("(nq)->(m,m),(m),(m,nv),(nv,nv),(nv)", inputs={"time": TIME, "proximal": PROXIMAL})
def kkt_factor(
    mechanism: Mechanism, q: Any, *, time: Any = None, proximal: Proximal = None
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """U_Λ (m, m), D_Λ (m,), Y (m, nv), U_M (nv, nv), D_M (nv,): K = U D Uᵀ, U = [U_Λ Y; 0 U_M], D = (-D_Λ, D_M)."""
    factors = factor(mechanism, q, proximal, time)
    U = np.tril(factors.corner.L, -1)[::-1, ::-1] + np.eye(mechanism.m)
    return U, 1.0 / factors.corner.inverse[::-1], factors.tree.Y, factors.tree.U, factors.tree.D


@kernel("(nq)->(m,m),(m,nv),(nv,nv)", inputs={"time": TIME, "proximal": PROXIMAL})
def kkt_inverse_blocks(
    mechanism: Mechanism, q: Any, *, time: Any = None, proximal: Proximal = None
) -> tuple[Floats, Floats, Floats]:
    """K⁻¹ = [-Λ, B; Bᵀ, N] as -Λ (m, m), B = Λ J M⁻¹ (m, nv) and N = M⁻¹ - M⁻¹ Jᵀ Λ J M⁻¹ (nv, nv)."""
    factors = factor(mechanism, q, proximal, time)
    tree, n = factors.tree, mechanism.nv
    # Columns of U_Mᵀ⁻¹: M⁻¹ = V D⁻¹ Vᵀ and J M⁻¹ = Y Vᵀ.
    columns = [forward(tree.above, tree.U, np.eye(n)[:, k]) for k in range(n)]
    V = np.stack(columns, axis=1) if columns else np.zeros((0, 0))
    JM = tree.Y @ V.T
    B = factors.solve_rows(JM)
    N = (V / tree.D) @ V.T - JM.T @ B
    return -mirrored(factors.solve_rows(np.eye(mechanism.m))), B, mirrored(N)


def damping_rows(mechanism: Mechanism, proximal: Proximal) -> Any:
    """The diagonal E + C (m,)."""
    return proximal_rows(mechanism, proximal) + compliance_of(mechanism)


def _corner(G: Any, damping: Any) -> Ldl:
    """The factors of G + damping from the last row up, as those of the matrix with rows and columns reversed."""
    full = mirrored(G) + np.diag(damping)
    return ldl(full[::-1, ::-1])
