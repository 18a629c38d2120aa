"""Delassus matrices as operators: products G x and, for some methods, (G + E)⁻¹ b.

With a damped solve, ADMM needs no factorization: each iteration costs one recursion over the robot, whatever the number
of rows. With products alone, accelerated projected gradients work, more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.delassus.delassus_operator import delassus_apply, delassus_solve
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import expect

Array = NDArray[np.float64]


@runtime_checkable
class Operator(Protocol):
    """A symmetric matrix (m, m) represented by its products."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, m), or (…, m, m) for a batch."""

    def apply(self, x: Array) -> Array:
        """G x (…, m) [m/s]."""


@dataclass(frozen=True, eq=False)
class DelassusOperator:
    """The Delassus matrix of a mechanism's rows at given configurations, as an operator: O(n + m) a product.

    Attributes:
        mechanism: The robot and the rows, three for each contact along t1, t2, n: `Point(frame, axes="world")` for
            contacts with the ground.
        q: (…, nq) configurations.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.contact.DelassusOperator(loop, loop.model.posture("home")).apply(np.ones(3)).shape
    (3,)
    """

    mechanism: Mechanism
    q: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape (…, m, m) of the matrices."""
        return (*np.shape(self.q)[:-1], self.mechanism.m, self.mechanism.m)

    def __post_init__(self) -> None:
        expect("the mechanism", self.mechanism, Mechanism, "Mechanism(model, [Point('foot', axes='world')])")

    def apply(self, x: Array) -> Array:
        """J M⁻¹ Jᵀ x (…, m)."""
        return np.asarray(delassus_apply(self.mechanism, self.q, x))

    def solve(self, b: Array, damping: Array) -> Array:
        """(J M⁻¹ Jᵀ + diag(damping))⁻¹ b (…, m)."""
        return np.asarray(delassus_solve(self.mechanism, self.q, b, proximal=damping))


@dataclass(frozen=True, eq=False)
class _Matvec:
    """Adapts an operator with SciPy's interface (`shape`, `matvec`)."""

    linear: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.linear.shape)

    def apply(self, x: Array) -> Array:
        return np.reshape([self.linear.matvec(row) for row in np.reshape(x, (-1, x.shape[-1]))], x.shape)


def operator_of(G: Any) -> Operator | None:
    """G as an operator, of this interface or SciPy's; None if it is an array."""
    if isinstance(G, np.ndarray):
        return None
    if hasattr(G, "matvec") and hasattr(G, "shape"):
        return _Matvec(G)
    return G if isinstance(G, Operator) else None


def diagonal(operator: Operator) -> Array:
    """The diagonal (…, m): the operator's own `diagonal()`, or m products with unit vectors."""
    method = getattr(operator, "diagonal", None)
    if method is not None:
        return np.asarray(method())
    m, entries = operator.shape[-1], []
    for k in range(m):
        unit = np.zeros(m)
        unit[k] = 1.0
        entries.append(operator.apply(np.broadcast_to(unit, operator.shape[:-1]))[..., k])
    return np.stack(entries, -1)
