"""What a solution is held against: the equation of motion and the rows, recomputed from it, each to its own scale.

    M a = h + Jᵀ λ,   h = tau - c,          J a + γ + C λ = 0.

Nothing here has a unit of its own. A residual of a row is compared with the accelerations that cancel in it, those of
the joints that move the row, with and without constraints; a joint far away, however fast, is not among them. Rows of
one constraint and one unit share a scale, so that axes do not matter. Generalised forces are compared with those that
meet at the same joint, and each of these counts as an acceleration, too: where they cancel, a joint rests as well as
rounding lets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.scales import joint_mobilities, row_groups, row_mobilities
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.forces.rnea import bias_torques, rnea

_BALANCE: Final = {"float64": 1e-9, "float32": 1e-3}
"""The share of the forces at a joint by which its equation of motion may be off: what penalties cost, and a reserve."""

_ROUNDING: Final = 1e-6
"""Rows and joints that nothing but rounding accelerates are compared with this share of the others, mass for mass:
times a tolerance of 1e-10 it is what rounding is."""

_COUPLED: Final = 1e-4
"""The same for rows before accelerations are known, which others may yet accelerate."""


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

    def row_scale(self, a: Any = None, force: Any = None) -> Any:
        """The accelerations that cancel in each row (m,): free ones, those found, velocity products and references."""
        driven = np.abs(self.problem.tau) + np.abs(self.c)
        joints = np.abs(self.free) if a is None else np.abs(self.free) + np.abs(a)
        driven = driven if force is None else driven + np.abs(self.J).T @ np.abs(force)
        joints = joints + numpy.array(joint_mobilities(self.mechanism)) * driven
        size = np.abs(self.J) @ joints + np.abs(self.gamma)
        groups = row_groups(self.mechanism)
        # In the order of the rows: that of a set would be another one in every process.
        largest = {
            group: np.max(np.stack([size[r] for r in _members(groups, group)])) for group in dict.fromkeys(groups)
        }
        unit = numpy.sqrt(row_mobilities(self.mechanism))
        share = _COUPLED if a is None else _ROUNDING
        return _at_least(share, np.stack([largest[group] for group in groups]), unit)

    def force_scale(self, force: Any, *others: Any) -> Any:
        """The forces that meet at each joint (nv,): those of constraints, and others, h if none are given."""
        size = np.abs(self.J).T @ np.abs(force)
        for other in others or (self.h,):
            size = size + np.abs(other)
        return _at_least(_ROUNDING, size, self.joint_unit)

    @property
    def joint_unit(self) -> Any:
        """What generalised forces of joints are to be divided by to compare them (nv,)."""
        return 1.0 / numpy.sqrt(joint_mobilities(self.mechanism))

    def met(self, residual: Any, scale: Any, tolerance: float) -> Any:
        """Whether every row is met."""
        return np.all(np.abs(residual) <= tolerance * scale)

    def is_least(self, residual: Any, scale: Any, tolerance: float) -> Any:
        """Whether a residual is one of least squares: Jᵀ E⁻¹ r = 0, to the tolerance.

        All joints are compared with the one that could move rows most: a joint that hardly moves them, and so cannot
        make their residuals smaller without moving fast, does not count.
        """
        weight = 1.0 / self.weighted.epsilon
        slope = self.J.T @ (weight * residual)
        most = np.max(np.abs(self.J).T @ (weight * scale) / self.joint_unit)
        return np.all(np.abs(slope) <= tolerance * most * self.joint_unit)

    def is_balanced(self, a: Any, force: Any, imbalance: Any) -> Any:
        """Whether the equation of motion holds at every joint."""
        scale = self.force_scale(force, self.problem.tau, self.c, imbalance + self.problem.tau + self.J.T @ force)
        return np.all(np.abs(imbalance) <= _BALANCE[computing_in().name] * scale)


def _at_least(share: float, size: Any, unit: Any) -> Any:
    """Sizes, at least a share of the largest, each in its unit."""
    return np.maximum(size, share * np.max(size / unit) * unit)


def _members(groups: tuple[Any, ...], group: Any) -> list[int]:
    return [r for r, other in enumerate(groups) if other == group]
