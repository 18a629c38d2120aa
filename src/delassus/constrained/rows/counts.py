"""Iteration counts and statuses, which compiled code returns as floats."""

from __future__ import annotations

from typing import Any

import numpy

from delassus.compiler.tracing.array import Array


def as_integer(count: Any) -> Any:
    """Convert counts to integers; traced values inside a kernel are returned unchanged."""
    return count if isinstance(count, Array) else numpy.asarray(count, int)
