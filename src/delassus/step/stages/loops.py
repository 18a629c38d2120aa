"""Rows of closed loops taken out of a step's contact problem: what their impulses must be, whatever the others are.

With f the free rows and c all other motions, λ_f = -(S_ff + ε)⁻¹ (S_fc μ_c + g_f) for the impulses μ_c = P_cᵀ λ_c on
motions, so motions respond by the Schur complement S_cc - S_cf (S_ff + ε)⁻¹ S_fc. It is made once in a step, and
iterations have fewer rows. ε is a share of rows' own responses that is far below the tolerance: redundant rows share
their impulses, and loops stay as open as ε λ_f, until they are projected.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.dynamics.tree.ldl import Ldl, ldl
from delassus.dynamics.tree.poses import mirrored

_EPSILON: Final = 1e-11


class Eliminated(NamedTuple):
    """The response (c, c) of the other motions, what they do without any impulse of theirs (c,), and the impulses of
    loops: -(`X` μ + `x`)."""

    S: Any
    moves: Any
    X: Any
    x: Any

    def impulses(self, others: Any) -> Any:
        """Of loops (free,), of the impulses (c,) on other motions."""
        return -(self.X @ others) - self.x


def without_loops(S: Any, g: Any) -> Eliminated:
    """The problem without the first of the motions, of which g (free,) has the velocities."""
    free = len(g)
    asked = np.concatenate([S[:free, free:], g[:, None]], 1)
    found = factors_of(S[:free, :free], _EPSILON).solve(asked)
    X, x = found[:, :-1], found[:, -1]
    return Eliminated(mirrored(S[free:, free:] - S[free:, :free] @ X), -(S[free:, :free] @ x), X, x)


def factors_of(S: Any, epsilon: float) -> Ldl:
    """The factors of the response S (n, n) of rows that may repeat each other, with a share ε of each row's own."""
    own = np.stack([S[k, k] for k in range(len(S))])
    # A row that nothing moves has no response of its own.
    own = np.where(own > 0.0, own, np.where(np.max(own) > 0.0, np.max(own), 1.0))
    return ldl(S + epsilon * np.diag(own))
