"""Matrices of constraints: Delassus matrix, operational inertia, and the sparse factors of `prox_ltl`.

K = [-E - C, J; Jᵀ, M] with E = diag(ε) the `proximal` parameter. M⁻¹ itself is `inverse_mass_matrix`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.common.checks import one_of
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.caba_osim import caba_osim
from delassus.constrained.delassus.delassus_methods import TREE_METHODS, lower_delassus
from delassus.constrained.delassus.exact_inverse import exact_blocks
from delassus.constrained.delassus.proximal import Proximal, proximal_rows
from delassus.constrained.elimination.tree_factor import TreeFactor, tree_factor
from delassus.constrained.rows.inputs import PROXIMAL, TIME
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import compliance_of
from delassus.dynamics.mass.factor import forward, inverse_mass_matrix
from delassus.dynamics.tree.check import check_inertias
from delassus.errors import BadArgument
from delassus.linalg.ldl import Ldl, ldl, ldl_semidefinite
from delassus.linalg.products import mirror


@dataclass(frozen=True)
class KktFactor:
    """K = U D Uᵀ with U = [U_Λ  Y; 0  U_M] and D = (-D_Λ, D_M); `corner` holds U_Λ and D_Λ with rows reversed."""

    tree: TreeFactor
    corner: Ldl

    def damped(self, damping: Any) -> KktFactor:
        """The factors for another diagonal E + C (m,): m³/6 operations; the part of the tree is reused."""
        return KktFactor(self.tree, _corner(self.tree.delassus, damping))

    def solve_rows(self, b: Any) -> Any:
        """(J M⁻¹ Jᵀ + E + C)⁻¹ b for b (m,) or (m, k)."""
        return self.corner.solve(b[::-1])[::-1]


def factor(mechanism: Mechanism, q: Any, proximal: Proximal, time: Any = None, exact: bool = False) -> KktFactor:
    """Factor K in a configuration, inside other kernels; `exact` omits E."""
    check_inertias(mechanism.model)
    tree = tree_factor(mechanism.model, q, constraint_jacobian(mechanism, q, time=time))
    if exact:
        G = mirror(tree.delassus) + np.diag(compliance_of(mechanism))
        return KktFactor(tree, ldl_semidefinite(G[::-1, ::-1])[0])
    return KktFactor(tree, _corner(tree.delassus, damping_rows(mechanism, proximal)))


@kernel("(nq)->(m,m)", inputs={"time": "()"})
def delassus_matrix(mechanism: Mechanism, q: Traced, *, method: str = "auto", time: Traced = None) -> Floats:
    """G = J M⁻¹ Jᵀ (m, m) [1/kg, 1/(kg·m), 1/(kg·m²)], symmetric: the accelerations of the rows per unit of their
    forces.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        method: "pv_osimr" O(n + m²), "efpa" O(n + m d + m²), "ltl" O(n d² + m d² + m² d), or "auto" for the fastest:
            pv_osimr, or ltl for models with mimic joints, which have no recursion over the tree.
        time: () [s] time of moving references, required if there are any (input at run time).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> G = dl.delassus_matrix(loop, loop.model.posture("home"))
    >>> bool(np.array_equal(G, G.T))
    True
    """
    return mirror(lower_delassus(mechanism, q, method, time))


@kernel("(nq)->(m,m)", inputs={"time": TIME, "proximal": PROXIMAL})
def operational_inertia(
    mechanism: Mechanism, q: Traced, *, method: str = "auto", time: Traced = None, proximal: Proximal = None
) -> Floats:
    """Λ = (J M⁻¹ Jᵀ + E + C)⁻¹ (m, m) [kg, kg·m, kg·m²]: the damped operational-space inertia matrix.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one value or one per row; by default a millionth of the mobility of the
            rows.
        method: How J M⁻¹ Jᵀ is computed before it is inverted (as for `delassus_matrix`); or "caba_osim", which
            computes Λ itself in O(n + m²), faster for many rows, but less accurate for small ε (see `caba_osim`).
        time: () [s] time of moving references, required if there are any (input at run time).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.operational_inertia(loop, loop.model.posture("home")).shape
    (3, 3)
    """
    damping = damping_rows(mechanism, proximal)
    one_of("method", method, ("auto", "ltl", *TREE_METHODS, "caba_osim"), code="unknown-method")
    if method == "caba_osim":
        return mirror(caba_osim(mechanism, q, damping, time))
    factors = ldl(lower_delassus(mechanism, q, method, time) + np.diag(damping))
    return mirror(factors.solve(np.eye(mechanism.m)))


class KktFactors(NamedTuple):
    """K = U D Uᵀ with U = [U_Λ Y; 0 U_M], unit upper triangular, and D = (-D_Λ, D_M).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.kkt_factor(loop, loop.model.posture("home")).U_tree.shape
    (3, 3)
    """

    U_rows: Any
    """U_Λ (…, m, m): J M⁻¹ Jᵀ + E + C = U_Λ D_Λ U_Λᵀ."""
    D_rows: Any
    """D_Λ (…, m)."""
    Y: Any
    """J U_Mᵀ⁻¹ D_M⁻¹ (…, m, nv)."""
    U_tree: Any
    """U_M (…, nv, nv): M = U_M D_M U_Mᵀ, zero where two velocities are on different branches of the tree."""
    D_tree: Any
    """D_M (…, nv)."""


class KktInverse(NamedTuple):
    """K⁻¹ = [-Λ, B; Bᵀ, N].

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.kkt_inverse_blocks(loop, loop.model.posture("home")).coupling.shape
    (3, 3)
    """

    corner: Any
    """-Λ (…, m, m), Λ = (J M⁻¹ Jᵀ + E + C)⁻¹ the operational-space inertia [kg, kg·m²]."""
    coupling: Any
    """B = Λ J M⁻¹ (…, m, nv): the transpose of the pseudo-inverse of J weighted by M."""
    free: Any
    """N = M⁻¹ - M⁻¹ Jᵀ Λ J M⁻¹ (…, nv, nv): acceleration per unit of generalized force, under the constraints."""


@kernel("(nq)->(m,m),(m),(m,nv),(nv,nv),(nv)", inputs={"time": TIME, "proximal": PROXIMAL}, result=KktFactors)
def kkt_factor(
    mechanism: Mechanism, q: Traced, *, exact: bool = False, time: Traced = None, proximal: Proximal = None
) -> KktFactors:
    """The sparse factors K = U D Uᵀ of the constrained system, K = [-E - C, J; Jᵀ, M], of one configuration or a batch.

    Rows come first, then velocities from the root to the leaves. The factors then have no fill-in beyond the nonzeros
    of M, J and the Delassus matrix. D has m negative and nv positive entries. O(n d² + m d² + m² d + m³) operations for
    depth d.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        exact: Factor [-C, J; Jᵀ, M], without E. Rows that depend on rows below them have a zero pivot in D_Λ;
            K = U D Uᵀ holds nevertheless.
        time: () [s] time of moving references, required if there are any (input at run time).
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one value or one per row; by default a millionth of the mobility of the
            rows (`natural_proximal`).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> U_rows, D_rows, Y, U_tree, D_tree = dl.constrained.kkt_factor(loop, loop.model.posture("home"))
    >>> bool(np.all(D_tree > 0.0))
    True
    """
    if exact and proximal is not None:
        raise BadArgument(
            "exact=True has no proximal parameter; omit one of the two.",
            code="conflicting-arguments",
        )
    factors = factor(mechanism, q, proximal, time, exact)
    U = np.tril(factors.corner.L, -1)[::-1, ::-1] + np.eye(mechanism.m)
    inverse = factors.corner.inverse[::-1]
    vanished = inverse == 0.0
    D = np.where(vanished, 0.0, 1.0 / np.where(vanished, 1.0, inverse)) if exact else 1.0 / inverse
    return KktFactors(U, D, factors.tree.Y, factors.tree.U, factors.tree.D)


@kernel("(nq)->(m,m),(m,nv),(nv,nv)", inputs={"time": TIME, "proximal": PROXIMAL}, result=KktInverse)
def kkt_inverse_blocks(
    mechanism: Mechanism, q: Traced, *, exact: bool = False, time: Traced = None, proximal: Proximal = None
) -> KktInverse:
    """The blocks of K⁻¹ = [-Λ, B; Bᵀ, N], K = [-E - C, J; Jᵀ, M], of one configuration or a batch.

    Accelerations and forces are linear in the loads: with h = tau - c and J a + γ + C λ = 0,

        a = N h - Bᵀ γ,      λ = -B h - Λ γ.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        exact: Invert [-C, J; Jᵀ, M] by singular values (see `exact_inverse`), accurate also near singular poses.
            For dependent rows this is the pseudo-inverse, whose a and λ are those of `kkt`. About ten times the
            operations.
        time: () [s] time of moving references, required if there are any (input at run time).
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one value or one per row; by default a millionth of the mobility of the
            rows (`natural_proximal`). An exact inverse uses only the ratios of ε, as weights of the norm of forces that
            are not unique; equal values give the Euclidean norm.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> corner, coupling, free = dl.constrained.kkt_inverse_blocks(loop, loop.model.posture("home"))
    """
    M_inverse = inverse_mass_matrix(mechanism.model, q)
    if exact:
        tree = tree_factor(mechanism.model, q, constraint_jacobian(mechanism, q, time=time))
        epsilon = proximal_rows(mechanism, proximal)
        return KktInverse(*exact_blocks(tree, M_inverse, epsilon, compliance_of(mechanism)))
    factors = factor(mechanism, q, proximal, time)
    tree, m = factors.tree, mechanism.m
    # J M⁻¹ = Y U_M⁻¹, a row at a time.
    JM = np.stack([forward(tree.above, tree.U, y) for y in tree.Y]) if m else np.zeros((0, mechanism.nv))
    B = factors.solve_rows(JM)
    return KktInverse(-mirror(factors.solve_rows(np.eye(m))), B, mirror(M_inverse - JM.T @ B))


def damping_rows(mechanism: Mechanism, proximal: Proximal) -> Any:
    """The diagonal E + C (m,)."""
    return proximal_rows(mechanism, proximal) + compliance_of(mechanism)


def _corner(G: Any, damping: Any) -> Ldl:
    """Factor G + damping from the last row up, as the matrix with rows and columns reversed."""
    full = mirror(G) + np.diag(damping)
    return ldl(full[::-1, ::-1])
