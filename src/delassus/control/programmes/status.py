"""How a programme was solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.common.types import Objects
from delassus.errors import Sentences


class ProgrammeStatus(Sentences):
    """How a programme was solved; `sentence` says it in words."""

    SOLVED = 0, "The answer is the best one that meets all rows."
    INFEASIBLE = 1, "No answer meets all rows; this one breaks them least."
    ITERATIONS = 2, "The iterations ended before the tolerance was met; the answer is approximate."
    NOT_FINITE = 3, "A number is not finite or too large, or the cost has no least value; the answer is zero."


def programme_statuses(numbers: Any) -> ProgrammeStatus | Objects:
    """The `ProgrammeStatus` of one programme, or an array of them."""
    found = np.vectorize(ProgrammeStatus, otypes=[object])(numbers)
    return found.item() if found.ndim == 0 else found


def counted(status: Any, what: str) -> str:
    """A sentence about the worst of some, which are so many."""
    if not np.size(status):
        return f"There are no {what}."
    worst = list(ProgrammeStatus)[int(np.max(status))]
    return f"{worst.sentence[:-1]}, in {int(np.sum(status == worst))} of {np.size(status)} {what}."
