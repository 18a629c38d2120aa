"""Values, gradients and stiffness blocks of elements, computed in SIMD lanes over elements.

    energy          V, ∇V and K = ∇²V
    deformation     g, J = ∇g, and the geometric stiffness K̃ = Σ f ∇²g of forces f that turn with their rows
    rows            Jᵀ E⁻¹ J

The stiffness is part of W, which has to be positive definite: negative eigenvalues of an element's stiffness are
dropped (`clamp_eigenvalues`). The signs of the pivots, computed in the lanes, tell whether there are any: most elements
are positive or negative semidefinite. The few indefinite ones are treated one by one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.differentiation.derivatives import grad, jacobian
from delassus.compiler.host.kernel import kernel
from delassus.particles.description.kinds import ElementKind

_SHIFT: Final = 1e-9
"""Tolerance of indefiniteness, relative to the size of a stiffness."""


class EnergyParts(NamedTuple):
    """V (), ∇V (points, 3), K (points, points, 3, 3) and whether it is indefinite ()."""

    value: Any
    gradient: Any
    stiffness: Any
    mixed: Any


class DeformationParts(NamedTuple):
    """g (rows) and J (rows, points, 3)."""

    value: Any
    rows: Any


@kernel("(points,3),(p)->(),(points,3),(points,points,3,3),()", result=EnergyParts)
def energy_parts(kind: ElementKind, x: Any, p: Any) -> EnergyParts:
    """An energy with its first and second derivatives; negative semidefinite stiffness is dropped."""
    value, gradient, K = _second(kind, lambda y: kind.function(y, p)[0], x)
    definite, mixed = _definite(K)
    return EnergyParts(value, gradient, _blocks(kind, definite), mixed)


@kernel("(points,3),(p)->(m),(m,points,3)", result=DeformationParts)
def deformation_parts(kind: ElementKind, x: Any, p: Any) -> DeformationParts:
    """A deformation and its Jacobian."""
    return DeformationParts(kind.function(x, p)[0], jacobian(lambda y: kind.function(y, p)[0])(x))


@kernel("(m,points,3),(m)->(points,points,3,3)")
def weighted_square(kind: ElementKind, rows: Any, weight: Any) -> Any:
    """Jᵀ diag(weight) J of the rows of a deformation."""
    flat = rows.reshape(kind.m, kind.k3)
    return _blocks(kind, flat.T @ (weight[:, None] * flat))


@kernel("(points,3),(p),(m)->(points,points,3,3),()")
def turning_stiffness(kind: ElementKind, x: Any, p: Any, force: Any) -> tuple[Any, Any]:
    """K̃ = Σ f ∇²g of forces f = ∂V/∂g (m,) [N], and whether it is indefinite; negative semidefinite ones are
    dropped.
    """
    definite, mixed = _definite(_second(kind, lambda y: force @ kind.function(y, p)[0], x)[2])
    return _blocks(kind, definite), mixed


@kernel("(points,3),(p)->(m)")
def deformation_value(kind: ElementKind, x: Any, p: Any) -> Any:
    """The deformations g of all elements, without derivatives."""
    return kind.function(x, p)[0]


@kernel("(points,3),(p)->()")
def energy_value(kind: ElementKind, x: Any, p: Any) -> Any:
    """The energies V of all elements, without derivatives."""
    return kind.function(x, p)[0]


@kernel("(points,3),(p),(m)->(k3,k3)")
def curvature(kind: ElementKind, x: Any, p: Any, force: Any) -> Any:
    """∇²V of an energy, or Σ f ∇²g of a deformation, without changes."""
    if not kind.rows:
        return _second(kind, lambda y: kind.function(y, p)[0], x)[2]
    return _second(kind, lambda y: force @ kind.function(y, p)[0], x)[2]


def clamp_eigenvalues(kind: ElementKind, K: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The stiffness (e, points, points, 3, 3) of matrices (e, k3, k3) without their negative eigenvalues; NaN is
    kept.
    """
    finite = numpy.isfinite(K).all((1, 2))
    values, vectors = numpy.linalg.eigh(0.5 * (K + K.mT)[finite])
    clamped = numpy.full_like(K, numpy.nan)
    clamped[finite] = (vectors * numpy.maximum(values, 0.0)[:, None, :]) @ vectors.mT
    k = kind.points
    return numpy.ascontiguousarray(clamped.reshape(-1, k, 3, k, 3).transpose(0, 1, 3, 2, 4))


def _second(kind: ElementKind, function: Any, x: Any) -> tuple[Any, Any, Any]:
    """A scalar function of the points, its gradient (points, 3) and its second derivative (k3, k3)."""
    slope = grad(function)
    H = jacobian(slope)(x).reshape(kind.k3, kind.k3)
    return function(x), slope(x), H


def _blocks(kind: ElementKind, K: Any) -> Any:
    k = kind.points
    return K.reshape(k, 3, k, 3).transpose(0, 2, 1, 3)


def _definite(K: Any) -> tuple[Any, Any]:
    """K if it is positive semidefinite, 0 if it is negative semidefinite; and 1 if it is indefinite."""
    size = np.sum(np.abs(K)) * _SHIFT
    positive, negative = _least_pivot(K, size) >= 0.0, _least_pivot(-K, size) >= 0.0
    return np.where(positive, K, 0.0), np.where(positive | negative, 0.0, 1.0)


def _least_pivot(K: Any, shift: Any) -> Any:
    """The smallest pivot of K + shift 1, by elimination without exchanges; its sign tells whether the matrix is
    definite.
    """
    n = len(K)
    A = [[K[i, j] + (shift if i == j else 0.0) for j in range(i + 1)] for i in range(n)]
    least = A[0][0]
    for c in range(n):
        pivot = A[c][c]
        least = np.minimum(least, pivot)
        inverse = np.where(pivot > 0.0, 1.0 / np.where(pivot > 0.0, pivot, 1.0), 0.0)
        for i in range(c + 1, n):
            l = A[i][c] * inverse
            for j in range(c + 1, i + 1):
                A[i][j] = A[i][j] - l * A[j][c]
    return least
