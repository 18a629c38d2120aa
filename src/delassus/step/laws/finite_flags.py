"""Flags states that contain a value that is not finite."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.solvers.status import Status


def flag_not_finite(status: Any, *known: Any) -> Any:
    """The status, or `NOT_FINITE` if one of the arrays is not finite; arrays that are None are ignored."""
    finite = np.array(True)
    for x in known:
        finite = finite if x is None else finite & np.all(np.isfinite(x))
    return np.where(finite, status, float(Status.NOT_FINITE))
