"""Free rows taken out of a problem: what their impulses must be, whatever those of the other rows are."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.contact.solvers.scaled import small


def without_free(G: Any, g: Any, free: int) -> tuple[Any, Any, Any]:
    """G and g of the other rows, and W (free, others + 1): the first rows' impulses are -W (λ, 1).

    They are the smallest ones that stop the free rows, or come as near to that as possible: rows may be redundant,
    or contradict each other.
    """
    if not free:
        return G, g, None
    asked = np.concatenate([G[:free, free:], g[:free, None]], 1)
    W = least_norm(G[:free, :free], asked)
    return G[free:, free:] - G[free:, :free] @ W[:, :-1], g[free:] - G[free:, :free] @ W[:, -1], W


def least_norm(A: Any, B: Any) -> Any:
    """A⁺ B of a symmetric A that is not indefinite, with a diagonal of about one.

    With E = (A + ε)⁻¹, E A E lets nothing pass that A cannot reach, and is A⁺ but for shares 2ε/s, s a singular value.
    Each repetition on what is left squares them away.
    """
    E = np.linalg.inv(A + small() * np.eye(len(A)), assume_a="pos")
    X = E @ (A @ (E @ B))
    for _ in range(2):
        X = X + E @ (A @ (E @ (B - A @ X)))
    return X
