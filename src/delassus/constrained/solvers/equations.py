"""Residuals of a solution: the equation of motion and the rows, recomputed from the solution and scaled.

    M a = h + Jᵀ λ,   h = tau - c,          J a + γ + C λ = 0.

Nothing here has a unit of its own. A residual of a row is compared with the accelerations that cancel in it, those of
the joints that move the row, with and without constraints; a joint far away, however fast, is not among them. Rows of
one constraint and one unit share a scale, so that axes do not matter. Generalized forces are compared with those that
meet at the same joint.

Forces that cancel leave their rounding, which accelerates the whole tree: where a row rests, it does so as well as that
lets it. For errors δf of the generalized forces, with G = J M⁻¹ Jᵀ,

    |J M⁻¹ δf|_r ≤ √G_rr √(δfᵀ M⁻¹ δf) ≤ √G_rr Σ_j √(M⁻¹)_jj |δf_j|.

That is a share of rounding, whatever the tolerance: large forces in one limb hide nothing in another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.scales import joint_inertias, joint_mobilities, row_groups, row_mobilities
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.forces.rnea import bias_torques, rnea

_BALANCE: Final = {"float64": 1e-9, "float32": 1e-3}
"""The share of the forces at a joint by which its equation of motion may be off: what penalties cost, and a reserve."""

_ROUNDING: Final = 1e-6
"""Joints that hardly any force acts on are compared with this share of the others, mass for mass: times a tolerance of
1e-10 it is what rounding is."""

_COUPLED: Final = 1e-4
"""Rows that others may yet accelerate are compared with this share of them, mass for mass, before it is known."""

_DIGITS: Final = 16.0
"""What rounding takes from sums over a tree, in units of the last digit."""

_TURNED: Final = 128.0
"""As above, for algorithms that rotate pairs of vectors, as for singular values."""


@dataclass(frozen=True)
class Equations:
    """A problem of a mechanism, with J (m, nv), γ (m,), c and h (nv,), and the free accelerations M⁻¹ h (nv,)."""

    mechanism: Mechanism
    weighted: Weighted
    J: Any
    gamma: Any
    c: Any
    h: Any
    free: Any

    @classmethod
    def of(cls, mechanism: Mechanism, weighted: Weighted) -> Equations:
        """Those of a problem, with the weights of its rows."""
        problem = weighted.problem
        model, q, v, tau = problem.model, problem.motions.q, problem.motions.v, problem.tau
        c = bias_torques(model, q, v)
        free = aba(model, q, v, tau)
        return cls(mechanism, weighted, jacobian_of(problem), bias_of(problem), c, tau - c, free)

    @property
    def problem(self) -> Problem:
        """What is to be solved."""
        return self.weighted.problem

    def residual(self, a: Any, force: Any) -> Any:
        """J a + γ + C λ (m,), zero in rows that are switched off."""
        return self.J @ a + self.gamma + self.problem.active(self.problem.rows.compliance * force)

    def imbalance(self, a: Any, force: Any) -> Any:
        """M a - h - Jᵀ λ (nv,), M a + c by inverse dynamics."""
        motions = self.problem.motions
        return rnea(motions.model, motions.q, motions.v, a) - self.problem.tau - self.J.T @ force

    def expected_scale(self) -> Any:
        """The accelerations that are to cancel in each row (m,), before any are known: free ones, and what may come."""
        free = self._shared(np.abs(self.J) @ np.abs(self.free) + np.abs(self.gamma))
        return _at_least(_COUPLED, free, self.row_unit)

    def row_scale(self, a: Any) -> Any:
        """The accelerations that cancel in each row (m,): free ones, those found, velocity products and references."""
        return self._shared(np.abs(self.J) @ (np.abs(self.free) + np.abs(a)) + np.abs(self.gamma))

    def rounding(self, force: Any) -> Any:
        """What forces that cancel leave in each row (m,), by rounding."""
        driven = np.abs(self.problem.tau) + np.abs(self.c) + np.abs(self.J).T @ np.abs(force)
        return (_DIGITS * 2.0 ** -computing_in().digits * (driven @ (1.0 / self.joint_unit))) * self.row_unit

    def _shared(self, size: Any) -> Any:
        """The largest size (m,) among the rows of one constraint and one unit."""
        groups = row_groups(self.mechanism)
        # In the order of the rows: that of a set would be another one in every process.
        largest = {
            group: np.max(np.stack([size[r] for r in _members(groups, group)])) for group in dict.fromkeys(groups)
        }
        return np.stack([largest[group] for group in groups])

    def force_scale(self, force: Any) -> Any:
        """The forces that meet at each joint (nv,): those of constraints, and h; at least a share of the largest."""
        return _at_least(_ROUNDING, np.abs(self.J).T @ np.abs(force) + np.abs(self.h), self.joint_unit)

    @property
    def row_unit(self) -> Any:
        """What accelerations of rows are to be divided by to compare them (m,)."""
        return numpy.sqrt(row_mobilities(self.mechanism))

    @property
    def joint_unit(self) -> Any:
        """What generalized forces of joints are to be divided by to compare them (nv,)."""
        return 1.0 / numpy.sqrt(joint_mobilities(self.mechanism))

    def is_least(self, residual: Any, tolerance: Any) -> Any:
        """Whether a residual (m,) is surely one of least squares: Jᵀ E⁻¹ r = 0.

        Every joint is compared with what it could take off the residuals that it moves. Near a singular pose, a small
        residual has as small a slope as a contradiction, and is none; where its slope is lost in rounding, it is not
        small beside the residual.
        """
        weighted = 1.0 / self.weighted.epsilon * residual
        return np.all(np.abs(self.J.T @ weighted) <= np.abs(self.J).T @ (tolerance * np.abs(weighted)))

    def is_balanced(self, a: Any, force: Any, imbalance: Any) -> Any:
        """Whether the equation of motion holds at every joint.

        Forces that meet at a joint are its scale. Those that pass it by leave their rounding, too, as do accelerations:
        |J_rk| ≤ √G_rr √M_kk, and |M_kj| ≤ √M_kk √M_jj.
        """
        tau, driven = np.abs(self.problem.tau), self.J.T @ force
        size = tau + np.abs(self.c) + np.abs(self.J).T @ np.abs(force) + np.abs(imbalance + self.problem.tau + driven)
        root = numpy.sqrt(joint_inertias(self.mechanism))
        passing = np.abs(force) @ self.row_unit + np.abs(a) @ root
        rounding = (_TURNED * 2.0 ** -computing_in().digits * passing) * root
        return np.all(np.abs(imbalance) <= _BALANCE[computing_in().name] * size + rounding)


def _at_least(share: float, size: Any, unit: Any) -> Any:
    """Sizes, at least a share of the largest, each in its unit."""
    return np.maximum(size, share * np.max(size / unit) * unit)


def _members(groups: tuple[Any, ...], group: Any) -> list[int]:
    return [r for r, other in enumerate(groups) if other == group]
