"""Row weights of the proximal methods.

They add -E (λ - λ⁻) to J a + γ + C λ = 0 (see `problem`), E = diag(ε) the `proximal` parameters and λ⁻ the previous
iterate, and repeat. The system is then solvable at any rank of J. Written for λ,

    λ = keep λ⁻ - ρ (J a + γ),      ρ = 1/(ε + C),   keep = ε/(ε + C):

a penalty ρ on the residual of each row (1/ε without compliance), and the fraction of the previous force that is kept
(all of it without compliance). An inactive row has ρ = keep = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constrained.rows.problem import Problem


@dataclass(frozen=True)
class Weighted:
    """A problem, with ε, ρ and keep (m,) of its rows."""

    problem: Problem
    epsilon: Any
    rho: Any
    keep: Any

    @classmethod
    def of(cls, problem: Problem, epsilon: Any) -> Weighted:
        """Create from ε (m,), constants or inputs at run time."""
        compliance = problem.rows.compliance
        soft = epsilon + compliance
        keep = np.where(compliance == 0.0, 1.0, epsilon / soft)
        return cls(problem, epsilon, problem.active(1.0 / soft), problem.active(keep))

    @property
    def damping(self) -> Any:
        """E + C (m,)."""
        return self.problem.rows.compliance + self.epsilon

    def update(self, before: Any, residual: Any) -> tuple[Any, Any]:
        """λ = keep λ⁻ - ρ r and J a + γ + C λ, for the residual r = J a + γ (m,)."""
        force = self.keep * before - self.rho * residual
        return force, residual + self.problem.rows.compliance * force
