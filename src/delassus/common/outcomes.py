"""Statuses of the states of a batch, and a summary that names the worst of them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np

from delassus.errors import Sentences

S = TypeVar("S", bound=Sentences)


class Outcome:
    """What results derive from to say how they ended; `status_type` is what their `status` (…) are numbers of."""

    status_type: ClassVar[type[Sentences]]
    status: Any

    @property
    def statuses(self) -> Any:
        """The status of one item, or an array of them."""
        return members_of(self.status_type, self.status)


def members_of(kind: Any, numbers: Any) -> Any:
    """The members of an enumeration that have these numbers (…): one, or an array of them."""
    members = np.vectorize(kind, otypes=[object])(numbers)
    return members.item() if members.ndim == 0 else members


def worst_of(kind: type[S], status: Any) -> S:
    """The worst of some."""
    return next(member for member in kind.worst_first() if np.any(status == member))


def summary(worst: Sentences, status: Any, items: str) -> str:
    """The sentence of the worst status, with how many items ended so, where there are several."""
    several = np.size(status) > 1
    return sentence_with_count(worst, status, items) if several else worst.sentence


def sentence_with_count(worst: Sentences, status: Any, items: str) -> str:
    """The sentence of a status, with how many of the items have it."""
    return f"{worst.sentence[:-1]}, in {np.sum(status == worst)} of {np.size(status)} {items}."


def summary_of_worst(kind: type[S], status: Any, item: str) -> tuple[S | None, str]:
    """The worst status of some items and its summary; None where there is no item."""
    if not np.size(status):
        return None, f"There is no {item}."
    worst = worst_of(kind, status)
    return worst, summary(worst, status, f"{item}s")


def name_of_row(slices: Any, row: int) -> Any:
    """What a row belongs to, by the slices of all rows."""
    return next(name for name, rows in slices.items() if rows.start <= row < rows.stop)
