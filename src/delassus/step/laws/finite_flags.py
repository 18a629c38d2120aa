"""Flags states that contain a value that is not finite."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.solvers.status import Status


def flag_not_finite(status: Any, *known: Any) -> Any:
    """A status, or `NOT_FINITE` where one of some arrays is not finite; None for those that are not given."""
    finite = np.array(True)
    for x in known:
        finite = finite if x is None else finite & np.all(np.isfinite(x))
    return np.where(finite, status, float(Status.NOT_FINITE))
