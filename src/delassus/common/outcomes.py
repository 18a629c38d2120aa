"""Statuses of the states of a batch, and a summary that names the worst of them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np

from delassus.errors import Sentences

S = TypeVar("S", bound=Sentences)


class Outcome:
    """Base class of results with a `status` (…), whose values are those of the enumeration `status_type`."""

    status_type: ClassVar[type[Sentences]]
    status: Any

    @property
    def statuses(self) -> Any:
        """The status of one state, or an array of statuses (…)."""
        return members_of(self.status_type, self.status)


def members_of(kind: Any, numbers: Any) -> Any:
    """The member of an enumeration with a value, or an array (…) of members."""
    members = np.vectorize(kind, otypes=[object])(numbers)
    return members.item() if members.ndim == 0 else members


def worst_of(kind: type[S], status: Any) -> S:
    """The worst status (…) of a batch."""
    return next(member for member in kind.worst_first() if np.any(status == member))


def summary(worst: Sentences, status: Any, items: str) -> str:
    """The sentence of the worst status; for a batch, with the number of states that have it."""
    several = np.size(status) > 1
    return sentence_with_count(worst, status, items) if several else worst.sentence


def sentence_with_count(worst: Sentences, status: Any, items: str) -> str:
    """The sentence of a status, with the number of states that have it; `items` is the plural noun for these."""
    return f"{worst.sentence[:-1]}, in {np.sum(status == worst)} of {np.size(status)} {items}."


def summary_of_worst(kind: type[S], status: Any, item: str) -> tuple[S | None, str]:
    """The worst status of a batch and its summary; None for an empty batch. `item` is the noun for a state."""
    if not np.size(status):
        return None, f"There is no {item}."
    worst = worst_of(kind, status)
    return worst, summary(worst, status, f"{item}s")


def name_of_row(slices: Any, row: int) -> Any:
    """The name of the constraint or contact of a row, from the slices of all rows."""
    return next(name for name, rows in slices.items() if rows.start <= row < rows.stop)
