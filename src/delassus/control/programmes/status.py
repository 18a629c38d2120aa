"""How a programme was solved."""

from __future__ import annotations

from typing import Any

from delassus.errors import Sentences


class ProgrammeStatus(Sentences):
    """How a programme was solved; `sentence` says it in words."""

    SOLVED = 0, "The answer is the best one that meets all rows."
    INFEASIBLE = 1, "No answer meets all rows; this one breaks them least."
    ITERATIONS = 2, "The iterations ended before the tolerance was met; the answer is approximate."
    NOT_FINITE = 3, "A number of the programme is not finite, or too large; the answer is zero."


def worst_of(status: Any) -> ProgrammeStatus:
    """That with the largest of some numbers."""
    return list(ProgrammeStatus)[int(status.max(initial=0))]
