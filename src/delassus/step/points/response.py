"""The response of a robot's velocities to impulses of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.elimination import free_tree
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.mass.factor import udu_solve
from delassus.model.links import links_of
from delassus.step.scheme.response import ArticulatedResponse


def responding(mechanism: Mechanism, q: Any, time: Any) -> Callable[[Any], Any]:
    """The function that maps row impulses x (m,) to velocity changes M⁻¹ Jᵀ x (nv,)."""
    if links_of(mechanism.model).mimics:
        J = constraint_jacobian.function(mechanism, q, time=time)
        return lambda x: udu_solve.function(mechanism.model, q, J.T @ x)
    body, rows = free_tree(mechanism, q, time=time)
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
    return ArticulatedResponse(body, rows, motions).respond
