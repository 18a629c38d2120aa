"""How well accelerations meet the constraints.

Constraints may contradict each other. Then J a + γ + C λ = r cannot vanish, and the best that can be had is the least
squares, Jᵀ r = 0: the residual of iterations that run on, and the measure to stop them by.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import compliance_of


@kernel("(nq),(nv),(nv),(m)->(m),(nv)", inputs={"time": "()"})
def constraint_residual(
    mechanism: Mechanism, q: Any, v: Any, a: Any, force: Any, *, time: Any = None
) -> tuple[Floats, Floats]:
    """r = J a + γ + C λ (m,) and Jᵀ r (nv,) of accelerations a (nv,) and forces λ (m,)."""
    J = constraint_jacobian(mechanism, q, time=time)
    compliance = np.array(compliance_of(mechanism))
    r = J @ a + constraint_bias(mechanism, q, v, time=time) + compliance * force
    return r, J.T @ r
