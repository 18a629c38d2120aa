"""Statuses of quadratic programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.common.outcomes import sentence_with_count, worst_of
from delassus.errors import Sentences


class QPStatus(Sentences):
    """Why a QP solver ended; `sentence` describes the status.

    >>> all(status.sentence for status in dl.control.QPStatus)
    True
    """

    SOLVED = 0, "The answer is the best one that meets all rows."
    INFEASIBLE = 1, "No answer meets all rows; this one breaks them least."
    ITERATIONS = 2, "The iterations ended before the tolerance was met; the answer is approximate."
    NOT_FINITE = 3, "A number is not finite or too large, or the cost has no least value; the answer is zero."


def describe_worst(status: Any, items: str) -> str:
    """A sentence about the worst status of a batch."""
    if not np.size(status):
        return f"There are no {items}."
    return sentence_with_count(worst_of(QPStatus, status), status, items)
