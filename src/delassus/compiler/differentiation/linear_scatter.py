"""The differential of a scatter, which is a scatter itself.

Forwards, the tangents of the row replace those of what was there. Backwards, the cotangents at the position belong to
the row, and what was there before has none.
"""

from collections.abc import Collection, Sequence

from delassus.compiler.graph.graph import ZERO, Builder


def push(g: Builder, rows: int, values: Sequence[int], tangents: dict[int, int]) -> dict[int, int]:
    """The tangents of the parts for those of the values (index, row, array), by position; the index has none."""
    columns = (len(values) - 1) // (rows + 1)
    value_tangents = [tangents.get(k, ZERO) for k in range(1, len(values))]
    if all(tangent == ZERO for tangent in value_tangents):
        return {}
    return dict(enumerate(g.scatter(rows, values[0], value_tangents[:columns], value_tangents[columns:])))


def pull(
    g: Builder, rows: int, values: Sequence[int], active: Collection[int], cotangents: dict[int, int]
) -> dict[int, int]:
    """The cotangents of active values, by position, for those of the parts, by number."""
    index, columns = values[0], (len(values) - 1) // (rows + 1)
    part_cotangents = [cotangents.get(k, ZERO) for k in range(rows * columns)]
    of_row = [g.gather(index, *part_cotangents[k::columns]) for k in range(columns)]
    of_array = g.scatter(rows, index, [ZERO] * columns, part_cotangents)
    return {k: part for k, part in enumerate([*of_row, *of_array], 1) if k in active}
