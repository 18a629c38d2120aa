"""Cuts the operations of a program into pieces; each becomes a step of code."""

from collections.abc import Iterable
from typing import Final

from delassus.compiler.graph.program import Program

APART: Final = ("loop", "scatter")
"""Operations that are separate steps."""


def cut_into_pieces(program: Program, chunk: int) -> list[tuple[int, ...]]:
    """The operations in order, in pieces of at most `chunk`. Operations of `APART` are pieces by themselves.

    The last piece contains no operation of `APART`. A gather is in a later piece than the values that it selects from.
    """
    pieces: list[tuple[int, ...]] = []
    run: list[int] = []
    for value, node in enumerate(program.nodes):
        if not value or node[0] in ("input", "part"):
            continue
        reads_run = node[0] == "gather" and not set(run).isdisjoint(node[2:])
        if node[0] in APART or len(run) == chunk or reads_run:
            pieces += [tuple(run)] if run else []
            run = []
        if node[0] in APART:
            pieces.append((value,))
        else:
            run.append(value)
    return [*pieces, tuple(run)]


def ranges(positions: Iterable[int]) -> tuple[range, ...]:
    """Ascending positions as ranges of consecutive ones."""
    result: list[range] = []
    for k in positions:
        is_adjacent = bool(result) and result[-1].stop == k
        result.append(range(result.pop().start if is_adjacent else k, k + 1))
    return tuple(result)


def frozen(places: dict[int, list[int]]) -> dict[int, tuple[int, ...]]:
    """Slots by value, as tuples."""
    return {value: tuple(slots) for value, slots in places.items()}
