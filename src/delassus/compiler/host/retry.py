"""Solves the states flagged by an attempt again, as a smaller batch.

The states of a SIMD vector wait for the slowest of them. So a batch is first solved with few iterations; flagged states
are gathered, solved by the next attempt, and their results are written back:

    attempts = (Attempt(quick), Attempt(thorough, when=flagged(UNSOLVED)))
    x, status = retry(attempts, Batch(q.shape[:-1], {"q": q, "scale": scale}, {"q": 1, "scale": 0}))

The result of a state does not depend on the others. An attempt that no state needs costs one comparison. A single state
is a batch of shape (). Output arrays change only at the end, or, if an attempt raises an error, not at all.
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
    """One attempt to solve states of a batch.

    Attributes:
        solve: Maps inputs by name and previous results (None for the first attempt) to new results.
        when: Maps all results to booleans (…), true for states that need the attempt; None for all states.
        merge: Combines previous and new results; None keeps the new ones.
    """

    solve: Callable[[dict[str, Any], Results | None], Sequence[Any]]
    when: Callable[[Results], Any] | None = None
    merge: Callable[[Results, Results], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Batch:
    """The inputs of a batch.

    Attributes:
        shape: Batch axes.
        inputs: Arrays by name, whose leading axes broadcast to the batch axes.
        cores: The number of axes of each array for one state.
    """

    shape: tuple[int, ...]
    inputs: Mapping[str, Any]
    cores: Mapping[str, int]

    def select(self, items: NDArray[np.bool_]) -> dict[str, Any]:
        """The inputs of the states selected by a mask (…), with a single batch axis."""
        return {name: self._select(np.asarray(x), self.cores[name], items) for name, x in self.inputs.items()}

    def _select(self, x: NDArray[Any], axes: int, items: NDArray[np.bool_]) -> NDArray[Any]:
        core = x.shape[x.ndim - axes :]
        return x if x.ndim == axes else np.broadcast_to(x, (*self.shape, *core))[items]


def has_flag(flag: float, least: int = 1) -> Callable[[Results], Any]:
    """The condition that a state's last result is a flag, and that at least so many states have it.

    An attempt that only separates slow states from slower ones does not pay if all of them fit into one SIMD vector.
    """

    def condition(results: Results) -> Any:
        flagged = results[-1] == flag
        return flagged if least == 1 or np.count_nonzero(flagged) >= least else np.zeros_like(flagged)

    return condition


def select_where(condition: Any, new: Results, old: Results) -> Results:
    """The new results of the states (…) that satisfy a condition, the old ones of the others."""
    mask = np.asarray(condition)
    return tuple(
        np.where(mask.reshape(mask.shape + (1,) * (np.ndim(b) - mask.ndim)), a, b)
        for a, b in zip(new, old, strict=True)
    )


def retry(
    attempts: Sequence[Attempt], batch: Batch, *, results: Results | None = None, out: Results | None = None
) -> Results:
    """Run the attempts that the states of a batch need, and return their results.

    Args:
        attempts: In order; the first solves all states unless `results` are given.
        batch: The inputs.
        results: Known results of all states, for the condition of the first attempt.
        out: Arrays for the results, instead of new ones.
    """
    copied = False  # whether the arrays of the results are copies, which may be changed
    for attempt in attempts:
        items = None if results is None or attempt.when is None else np.asarray(attempt.when(results))
        if items is not None and not items.any():
            continue
        if results is None or items is None or items.all():
            results, copied = _solve(attempt, dict(batch.inputs), results), False
            continue
        new = _solve(attempt, batch.select(items), tuple(x[items] for x in results))
        results, copied = results if copied else tuple(np.array(x) for x in results), True
        for result, part in zip(results, new, strict=True):
            result[items] = part
    if results is None:
        raise ValueError("retry needs at least one attempt, or results.")
    return results if out is None else _write(results, out)


def _solve(attempt: Attempt, inputs: dict[str, Any], old: Results | None) -> Results:
    new = tuple(np.asarray(x) for x in attempt.solve(inputs, old))
    return new if attempt.merge is None or old is None else tuple(np.asarray(x) for x in attempt.merge(old, new))


def _write(results: Results, out: Results) -> Results:
    """Write all results, or none."""
    shapes, out_shapes = [x.shape for x in results], [x.shape for x in out]
    if shapes != out_shapes:
        raise ValueError(f"the arrays for results have the shapes {out_shapes}; the results have {shapes}.")
    for x, result in zip(out, results, strict=True):
        x[...] = result
    return out
