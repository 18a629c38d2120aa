"""Nested tuples of arrays: inputs and outputs of functions.

A tuple may be a named one (`typing.NamedTuple`): a nest rebuilt from it has its type and fields. Two nests are alike if
they have the same tuples in the same places. A plain tuple matches a named one of the same length; two named ones match
only if they have the same type, since swapped fields would go unnoticed.
"""

from collections.abc import Iterator
from typing import Any


def leaves(x: Any) -> list[Any]:
    """The arrays in a nest of tuples, in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def like(structure: Any, parts: Iterator[Any]) -> Any:
    """A nest of tuples as `structure`, with other leaves; named tuples stay named."""
    if not isinstance(structure, tuple):
        return next(parts)
    rebuilt = tuple(like(part, parts) for part in structure)
    return type(structure)._make(rebuilt) if is_named(structure) else rebuilt  # type: ignore[attr-defined]


def is_named(x: Any) -> bool:
    """Whether something is a named tuple."""
    return isinstance(x, tuple) and hasattr(x, "_fields")


def labels(x: Any) -> list[str]:
    """A label of each leaf for messages, by the fields that lead to it: "`best.impulse`", or else "array 3"."""
    return [f"`{path}`" if named else f"array {k}" for k, (path, named) in enumerate(_paths(x, "", False))]


def _paths(x: Any, path: str, named: bool) -> Iterator[tuple[str, bool]]:
    """The way to each leaf, and whether it leads through a field."""
    if not isinstance(x, tuple):
        yield path, named
    elif is_named(x):
        for field, part in zip(x._fields, x, strict=True):  # type: ignore[attr-defined]
            yield from _paths(part, f"{path}.{field}" if path else field, True)
    else:
        for k, part in enumerate(x):
            yield from _paths(part, f"{path}[{k}]", named)


def find_difference(a: Any, b: Any, path: str = "") -> tuple[str, str, str] | None:
    """Where two nests are not alike: the way there and a description of each; None if they are alike."""
    if not (isinstance(a, tuple) or isinstance(b, tuple)):
        return None
    are_tuples = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
    if not are_tuples or (is_named(a) and is_named(b) and type(a) is not type(b)):
        return path, describe(a), describe(b)
    fields = a._fields if is_named(a) else getattr(b, "_fields", None)
    for k, (one, other) in enumerate(zip(a, b, strict=True)):
        step = f"[{k}]" if fields is None else f".{fields[k]}" if path else fields[k]
        difference = find_difference(one, other, path + step)
        if difference is not None:
            return difference
    return None


def describe(x: Any) -> str:
    """A nest of arrays, in words."""
    if is_named(x):
        return f"{type(x).__name__}({', '.join(x._fields)})"
    return f"a tuple of {len(x)}" if isinstance(x, tuple) else "one array"
