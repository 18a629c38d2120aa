"""Cost of the deviation of a row from its reference velocity, under MuJoCo's contact law.

A row with the velocity error x [m/s] and the stiffness D = 1/R [kg] has the cost s(x) and the impulse λ = -s'(x):

    constraints       ½ D x²
    limits            ½ D min(x, 0)²
    joint friction    ½ D x² up to |D x| = b, linear beyond

A contact with friction coefficients f_j of its rows has D_j = D_n impratio (f_j/f₁)². With μ = f₁/√impratio, N = μ x_n
and T = ‖(f_j x_j)‖, its cost is

    0                              N ≥ μ T           the contact opens
    ½ Σ D x²                       μ N + T ≤ 0       it sticks
    ½ D_n (N - μ T)²/(μ² (1 + μ²))  between           it slides, with λ on its cone

so λ is the point of the elliptic cone nearest to -D x in the metric 1/D. The cost is convex with a continuous first
derivative; Newton's method uses its second derivative.

Reference: E. Todorov, Convex and analytically-invertible dynamics with contacts and constraints (2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.contact.systems.smooth import tiny


class ContactCost(NamedTuple):
    """The cost of a contact with rows t1, t2, n, and optionally spin and roll: friction coefficients (rows,), 1 for n,
    stiffnesses (rows,), and μ."""

    friction: Any
    stiffness: Any
    mu: Any

    @classmethod
    def of(cls, coefficients: list[Any], stiffness: Any, impratio: float) -> ContactCost:
        """The cost of a contact from the stiffness [kg] of its normal and the coefficients of its other rows, in order.

        Without sliding friction, torsional and rolling friction are zero, too.
        """
        first = coefficients[0]
        slides = first > 0.0
        share = [np.where(slides, f / np.where(slides, first, 1.0), 0.0) for f in coefficients]
        own = [np.array(stiffness * (impratio * s * s)) for s in share]
        factors = [np.array(np.where(slides, f, 0.0)) for f in coefficients]
        friction = np.stack([*factors[:2], np.array(1.0), *factors[2:]])
        mu = np.where(slides, first, 1.0) * impratio**-0.5
        return cls(friction, np.stack([*own[:2], np.array(stiffness), *own[2:]]), mu)

    def _scaled(self, x: Any) -> tuple[Any, Any, Any, Any]:
        """f² x (rows,) with zero for n, T, N, and the stiffness of the sliding regime."""
        mu, n = self.mu, x[2]
        across = [k for k in range(len(x)) if k != 2]
        scaled = np.array(self.friction * self.friction * x)
        scaled[2] = 0.0
        T = np.sqrt(np.sum(np.stack([scaled[k] * x[k] for k in across])))
        return scaled, T, mu * n, self.stiffness[2] / (mu * mu * (1.0 + mu * mu))

    def slope(self, x: Any) -> Any:
        """s'(x) (rows,), at x (rows,)."""
        scaled, T, N, Dm = self._scaled(x)
        mu = self.mu
        r = N - mu * T
        between = np.array((-Dm * mu * r / (T + tiny())) * scaled)
        between[2] = Dm * mu * r
        sticks = mu * N + T <= 0.0
        return np.where(r >= 0.0, 0.0, np.where(sticks, self.stiffness * x, between))

    def curvature(self, x: Any) -> Any:
        """s''(x) (rows, rows) at x (rows,), symmetric and positive semidefinite."""
        scaled, T, N, Dm = self._scaled(x)
        mu, rows = self.mu, len(x)
        r, inverse = N - mu * T, 1.0 / (T + tiny())
        opens, sticks = r >= 0.0, mu * N + T <= 0.0
        direction = np.array((-mu * inverse) * scaled)  # r'(x)
        direction[2] = mu
        turning = -Dm * mu * r * inverse
        W = np.zeros((rows, rows))
        for i in range(rows):
            for j in range(i + 1):
                value = Dm * direction[i] * direction[j]
                if 2 not in (i, j):
                    value = value - turning * (inverse * scaled[i]) * (inverse * scaled[j])
                if i == j != 2:
                    value = value + turning * self.friction[i] * self.friction[i]
                stuck = self.stiffness[i] if i == j else 0.0
                W[i, j] = W[j, i] = np.where(opens, 0.0, np.where(sticks, stuck, value))
        return W
