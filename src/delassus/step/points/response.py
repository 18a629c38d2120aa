"""How the velocities of a robot answer to impulses of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.elimination import free_tree
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.mass.factor import udu_solve
from delassus.model.links import links_of


def responding(mechanism: Mechanism, q: Any, time: Any) -> Callable[[Any], Any]:
    """How velocities (nv,) answer to impulses (m,) of the rows: M⁻¹ Jᵀ x."""
    if links_of(mechanism.model).mimics:
        J = constraint_jacobian.function(mechanism, q, time=time)
        return lambda x: udu_solve.function(mechanism.model, q, J.T @ x)
    body, rows = free_tree(mechanism, q, time=time)

    def response(x: Any) -> Any:
        push = np.zeros(mechanism.nv)
        for i, (_, own) in body.pushes(rows, x).items():
            push[body.joints[i].at] = own
        return body.accelerations(push, range(len(body.tree.links)))[1]

    return response
