"""Residuals of a solution: the equation of motion and the rows, recomputed from the solution and scaled.

    M a = h + Jᵀ λ,   h = tau - c,          J a + γ + C λ = 0.

All scales are free of units. The residual of a row is compared with the accelerations that cancel in it: those of the
joints that move the row, with and without constraints. Joints that do not move it, however fast, do not count. Rows of
one constraint and one unit share a scale, so that the choice of axes does not matter. Generalized forces are compared
with the forces that meet at the same joint.

Forces that cancel leave rounding errors, which accelerate the whole tree; a resting row can be met only up to these.
For errors δf of the generalized forces, with G = J M⁻¹ Jᵀ,

    |J M⁻¹ δf|_r ≤ √G_rr √(δfᵀ M⁻¹ δf) ≤ √G_rr Σ_j √(M⁻¹)_jj |δf_j|.

The bound depends on rounding, not on the tolerance: large forces in one limb hide no error in another.
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
"""Allowed relative imbalance of the equation of motion at a joint: the error of penalties, with a margin."""

_ROUNDING: Final = 1e-6
"""Joints without significant forces are compared with this fraction of the largest forces, scaled by inertia:
multiplied by a tolerance of 1e-10 it is the size of rounding errors.
"""

_COUPLED: Final = 1e-4
"""Before the solution is known, rows are compared with at least this fraction of other rows, scaled by mobility."""

_DIGITS: Final = 16.0
"""Rounding error of sums over a tree, in units in the last place."""

_TURNED: Final = 128.0
"""Rounding error of algorithms that rotate pairs of vectors, as for singular values."""


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
        """Create from a problem, with the weights of its rows."""
        problem = weighted.problem
        model, q, v, tau = problem.model, problem.motions.q, problem.motions.v, problem.tau
        c = bias_torques(model, q, v)
        free = aba(model, q, v, tau)
        return cls(mechanism, weighted, jacobian_of(problem), bias_of(problem), c, tau - c, free)

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.weighted.problem

    def residual(self, a: Any, force: Any) -> Any:
        """J a + γ + C λ (m,), zero in inactive rows."""
        return self.J @ a + self.gamma + self.problem.active(self.problem.rows.compliance * force)

    def imbalance(self, a: Any, force: Any) -> Any:
        """M a - h - Jᵀ λ (nv,), M a + c by inverse dynamics."""
        motions = self.problem.motions
        return rnea(motions.model, motions.q, motions.v, a) - self.problem.tau - self.J.T @ force

    def expected_scale(self) -> Any:
        """Scale of each row (m,) before the solution is known: free accelerations, and a fraction of those of other
        rows.
        """
        free = self._shared(np.abs(self.J) @ np.abs(self.free) + np.abs(self.gamma))
        return _at_least(_COUPLED, free, self.row_unit)

    def row_scale(self, a: Any) -> Any:
        """Scale of each row (m,): free accelerations, the solution's, velocity products and references."""
        return self._shared(np.abs(self.J) @ (np.abs(self.free) + np.abs(a)) + np.abs(self.gamma))

    def rounding(self, force: Any) -> Any:
        """Rounding error in each row (m,) of forces that cancel."""
        driven = np.abs(self.problem.tau) + np.abs(self.c) + np.abs(self.J).T @ np.abs(force)
        return (_DIGITS * 2.0 ** -computing_in().digits * (driven @ (1.0 / self.joint_unit))) * self.row_unit

    def _shared(self, size: Any) -> Any:
        """The maximum (m,) over the rows of one constraint and one unit."""
        groups = row_groups(self.mechanism)
        # In the order of the rows; that of a set would differ between processes.
        largest = {
            group: np.max(np.stack([size[r] for r in _members(groups, group)])) for group in dict.fromkeys(groups)
        }
        return np.stack([largest[group] for group in groups])

    def force_scale(self, force: Any) -> Any:
        """The forces that meet at each joint (nv,): constraint forces and h; at least a fraction of the largest."""
        return _at_least(_ROUNDING, np.abs(self.J).T @ np.abs(force) + np.abs(self.h), self.joint_unit)

    @property
    def row_unit(self) -> Any:
        """Units (m,) that make accelerations of rows comparable."""
        return numpy.sqrt(row_mobilities(self.mechanism))

    @property
    def joint_unit(self) -> Any:
        """Units (nv,) that make generalized forces of joints comparable."""
        return 1.0 / numpy.sqrt(joint_mobilities(self.mechanism))

    def is_least(self, residual: Any, tolerance: Any) -> Any:
        """Whether a residual (m,) is certainly one of least squares: Jᵀ E⁻¹ r = 0.

        Every joint is compared with what it could remove from the residuals that it moves. Near a singular pose, a
        small residual has a slope as small as an infeasible one, but is not; if its slope is a rounding error, that
        error is not small compared with the residual.
        """
        weighted = 1.0 / self.weighted.epsilon * residual
        return np.all(np.abs(self.J.T @ weighted) <= np.abs(self.J).T @ (tolerance * np.abs(weighted)))

    def is_balanced(self, a: Any, force: Any, imbalance: Any) -> Any:
        """Whether the equation of motion holds at every joint.

        The scale of a joint is the forces that meet there. Forces that pass it, and accelerations, also leave rounding
        errors: |J_rk| ≤ √G_rr √M_kk, and |M_kj| ≤ √M_kk √M_jj.
        """
        tau, driven = np.abs(self.problem.tau), self.J.T @ force
        size = tau + np.abs(self.c) + np.abs(self.J).T @ np.abs(force) + np.abs(imbalance + self.problem.tau + driven)
        root = numpy.sqrt(joint_inertias(self.mechanism))
        passing = np.abs(force) @ self.row_unit + np.abs(a) @ root
        rounding = (_TURNED * 2.0 ** -computing_in().digits * passing) * root
        return np.all(np.abs(imbalance) <= _BALANCE[computing_in().name] * size + rounding)


def _at_least(share: float, size: Any, unit: Any) -> Any:
    """Values, at least a fraction of the largest, each in its unit."""
    return np.maximum(size, share * np.max(size / unit) * unit)


def _members(groups: tuple[Any, ...], group: Any) -> list[int]:
    return [r for r, other in enumerate(groups) if other == group]
