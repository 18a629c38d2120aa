"""Arrays, and tuples of arrays, and tuples of those: what functions take and give."""

from collections.abc import Iterator
from typing import Any


def leaves(x: Any) -> list[Any]:
    """The arrays in a nest of tuples, in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def like(structure: Any, parts: Iterator[Any]) -> Any:
    """A nest of tuples as `structure`, with other leaves."""
    return tuple(like(part, parts) for part in structure) if isinstance(structure, tuple) else next(parts)
