"""Argument checks of trajectories: indices of environments, times, rates and angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import short
from delassus.output.errors import TrajectoryError


def item_number(item: Any, batch: tuple[int, ...]) -> int:
    """The flat index of an environment, given by it or by indices along the batch axes."""
    count = math.prod(batch)
    indices = item if isinstance(item, tuple) else (item,)
    are_integers = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in indices)
    if are_integers and isinstance(item, tuple):
        if len(item) == len(batch) and all(0 <= k < n for k, n in zip(item, batch, strict=True)):
            return int(np.ravel_multi_index(item, batch)) if batch else 0
    elif are_integers and 0 <= item < count:
        return int(item)
    axes = f" in {batch}" if len(batch) > 1 else ""
    raise TrajectoryError(
        f"item is {short(repr(item))}; there are {count}{axes}, numbered from 0.", code="index-out-of-range"
    )


def check_items(index: tuple[Any, ...], batch: tuple[int, ...]) -> None:
    """Raise an error unless these indices, slices or arrays, one for each axis, select environments of a batch."""
    try:
        np.broadcast_to(False, batch)[index]
    except (IndexError, TypeError, ValueError, OverflowError):
        raise TrajectoryError(
            f"{short(repr(index))} does not select environments; the batch of this trajectory is {batch}.",
            code="index-out-of-range",
        ) from None


def item_numbers(items: Any, count: int, most: int) -> NDArray[np.int64]:
    """Indices of several environments; by default the first ones."""
    if items is None:
        return np.arange(min(count, most))
    try:
        indices = np.atleast_1d(np.asarray(items))
    except ValueError:  # rows of different lengths
        indices = np.array([None])
    is_integer_array = indices.dtype.kind in "iu" and indices.ndim == 1
    if not is_integer_array or np.any(indices < 0) or np.any(indices >= count):
        raise TrajectoryError(
            f"items are {short(repr(items))}; there are {count}, numbered from 0; pass one or more.",
            code="index-out-of-range",
        )
    return indices.astype(np.int64)


def real(label: str, x: Any, least: float, most: float, hint: str) -> float:
    """A number within bounds."""
    try:
        value = math.nan if isinstance(x, (bool, str, bytes)) else float(x)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not least <= value <= most:
        raise TrajectoryError(f"{label} is {short(repr(x))}; it must be {hint}.", code="out-of-range")
    return value


def moments(label: str, times: Any, first: float, last: float, slack: float = 0.0) -> NDArray[np.float64]:
    """Times [s] of a trajectory, one or an array, at most `slack` outside its range."""
    try:
        requested = np.asarray(times)
        if requested.dtype.kind not in "iuf":
            raise TypeError
        requested = requested.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise TrajectoryError(
            f"{label} is {short(repr(times))}; it must be a time [s], or an array of them.", code="not-a-number"
        ) from None
    outside = ~((requested >= first - slack) & (requested <= last + slack))
    if np.any(outside):
        raise TrajectoryError(
            f"the time is {np.atleast_1d(requested)[np.atleast_1d(outside)][0]:g} s; it must be between {first:g} and "
            f"{last:g} s, the times of the trajectory.",
            code="out-of-range",
        )
    return requested
