"""Solves again, as a smaller batch, the states that an attempt has flagged.

States of a batch that are computed together wait for the slowest of them. So a batch is tried quickly first; the items
whose results ask for more are gathered, solved by the next attempt, and their results put in place:

    attempts = (Attempt(quick), Attempt(thorough, when=flagged(UNSOLVED)))
    x, status = retry(attempts, Batch(q.shape[:-1], {"q": q, "scale": scale}, {"q": 1, "scale": 0}))

What an item gets does not depend on the others. An attempt that no item asks for costs one comparison. One item alone
is a batch of the shape (). Arrays that are handed in change at the very end, or, if an attempt raises, not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Results: TypeAlias = tuple[NDArray[Any], ...]
"""Arrays whose first axes are those of the batch."""


@dataclass(frozen=True)
class Attempt:
    """One way to solve items of a batch.

    Attributes:
        solve: Gives the results of some items, of their inputs by name and their results so far, None if there are
            none yet.
        when: Which items need it, (…) booleans, of the results of all; None for all of them.
        merge: Gives the results to keep, of those so far and the new ones; None for the new ones.
    """

    solve: Callable[[dict[str, Any], Results | None], Sequence[Any]]
    when: Callable[[Results], Any] | None = None
    merge: Callable[[Results, Results], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Batch:
    """The inputs of items.

    Attributes:
        shape: The batch axes.
        inputs: Arrays by name. Their leading axes broadcast to those of the batch; those without any are the same for
            all items.
        cores: How many axes each of them has for one item.
    """

    shape: tuple[int, ...]
    inputs: Mapping[str, Any]
    cores: Mapping[str, int]

    def select(self, items: NDArray[np.bool_]) -> dict[str, Any]:
        """The inputs of the items that a mask (…) selects, one batch axis for all of them."""
        return {name: self._select(np.asarray(x), self.cores[name], items) for name, x in self.inputs.items()}

    def _select(self, x: NDArray[Any], axes: int, items: NDArray[np.bool_]) -> NDArray[Any]:
        core = x.shape[x.ndim - axes :]
        return x if x.ndim == axes else np.broadcast_to(x, (*self.shape, *core))[items]


def has_flag(flag: float) -> Callable[[Results], Any]:
    """The condition that an item's last result is a flag."""
    return lambda results: results[-1] == flag


def select_where(condition: Any, new: Results, old: Results) -> Results:
    """The new results of the items (…) that a condition holds for, the old ones of the others."""
    chosen = np.asarray(condition)
    return tuple(
        np.where(chosen.reshape(chosen.shape + (1,) * (np.ndim(b) - chosen.ndim)), a, b)
        for a, b in zip(new, old, strict=True)
    )


def retry(
    attempts: Sequence[Attempt], batch: Batch, *, results: Results | None = None, out: Results | None = None
) -> Results:
    """The results of a batch after all attempts that its items need.

    Args:
        attempts: One after the other; the first gets all items unless `results` are given.
        batch: The inputs.
        results: What is known of the items beforehand, for the first attempt's condition.
        out: Arrays to hold the results, instead of new ones.
    """
    copied = False  # whether nobody else has the arrays of the results
    for attempt in attempts:
        items = None if results is None or attempt.when is None else np.asarray(attempt.when(results))
        if items is not None and not items.any():
            continue
        if results is None or items is None or items.all():
            results, copied = _solve(attempt, dict(batch.inputs), results), False
            continue
        new = _solve(attempt, batch.select(items), tuple(x[items] for x in results))
        results, copied = results if copied else tuple(np.array(x) for x in results), True
        for every, part in zip(results, new, strict=True):
            every[items] = part
    if results is None:
        raise ValueError("retry needs an attempt, or results.")
    return results if out is None else _write(results, out)


def _solve(attempt: Attempt, inputs: dict[str, Any], old: Results | None) -> Results:
    new = tuple(np.asarray(x) for x in attempt.solve(inputs, old))
    return new if attempt.merge is None or old is None else tuple(np.asarray(x) for x in attempt.merge(old, new))


def _write(results: Results, out: Results) -> Results:
    """Write all results, or none."""
    shapes, given = [x.shape for x in results], [x.shape for x in out]
    if shapes != given:
        raise ValueError(f"the arrays for results have the shapes {given}; the results have {shapes}.")
    for x, result in zip(out, results, strict=True):
        x[...] = result
    return out
