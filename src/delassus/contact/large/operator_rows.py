"""A batch of contact problems whose matrices are operators.

    σ' = D^-½ (G + R) D^-½ λ' + g',    (G' + ρ)⁻¹ b' = D^½ (G + R + ρ D)⁻¹ D^½ b'

D is the mean response of each contact, so that masses of 10⁻³ and 10³ kg are scaled alike. The second equation needs an
operator with `solve(b, damping)`: one recursion over a robot, whatever the number of rows. Contacts have three rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from delassus.contact.cones.layout import Layout
from delassus.contact.large.rows import Array, Rows, scale_by_response
from delassus.contact.systems.protocol import BATCH, SHIFT


@dataclass(frozen=True, eq=False)
class OperatorRows(Rows):
    """Rows of an operator that takes arrays of shape (*batch, m); `compliance` is (B, m), in the user's order.

    G is empty. Problems of the batch cannot be separated: the operator works on all of them.
    """

    operator: Any
    batch: tuple[int, ...]
    compliance: Array

    @classmethod
    def of(
        cls, layout: Layout, convex: bool, operator: Any, response: Array, g: Array, parameters: dict[str, Array]
    ) -> OperatorRows:
        """Create from the responses of rows to their own impulses and g, (*batch, m), and parameters (B, …) by name."""
        batch, m = g.shape[:-1], g.shape[-1]
        compliance = parameters.get("compliance", np.zeros((1, m)))
        rows, _ = scale_by_response(layout, convex, response.reshape(-1, m) + compliance, g.reshape(-1, m), parameters)
        values = {field.name: getattr(rows, field.name) for field in fields(rows)}
        return cls(**values, operator=operator, batch=batch, compliance=compliance)

    def __getitem__(self, problems: Any) -> OperatorRows:
        return self

    @property
    def capabilities(self) -> frozenset[str]:
        """Products, and damped solutions if the operator has them."""
        return operator_capabilities(self.operator)

    @property
    def selectable(self) -> bool:
        """False: an operator has no rows that could be selected."""
        return False

    def velocity(self, impulse: Array) -> Array:
        """σ = G λ + g (B, m)."""
        impulses = self.user_impulse(impulse)
        response = self.operator.apply(impulses.reshape(*self.batch, -1)).reshape(impulses.shape)
        return np.asarray(self.scaled_velocity(response + self.compliance * impulses) + self.g)

    def factor_shifted(self) -> OperatorRows:  # type: ignore[override]  # the operator has the factors
        """(G + ρ)⁻¹ for all ρ."""
        return self

    def solve(self, b: Array, shift: Array) -> Array:
        """(G + shift)⁻¹ b (B, m), for shifts (B, 1)."""
        right = self._user_order(self.root * b)
        damping = self.compliance + shift * self._user_order(self.root**2)
        shape = (*self.batch, right.shape[-1])
        solution = np.asarray(self.operator.solve(right.reshape(shape), damping.reshape(shape))).reshape(right.shape)
        return np.asarray(solution[:, self.layout.order] * self.root)


def operator_capabilities(operator: Any) -> frozenset[str]:
    """Of an operator: products alone, or damped solutions as well."""
    return frozenset({BATCH, SHIFT}) if hasattr(operator, "solve") else frozenset({BATCH})
