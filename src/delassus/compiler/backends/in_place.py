"""Selects the carried arrays of a loop that can be updated in place.

A scatter replaces a row of an array at a run-time position. If a loop carries the array and its old values are not read
later, the row is written in place: the cost of an iteration does not depend on the length of the array.
"""

from __future__ import annotations

from typing import NamedTuple

from delassus.compiler.backends.frame import find_table
from delassus.compiler.graph.program import Program, arguments


class InPlace(NamedTuple):
    """Scatters in the body of a loop that update carried values in place.

    Attributes:
        scatters: These scatters.
        settled: Positions of carried results that need no copy at the end of an iteration.
    """

    scatters: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()

    @classmethod
    def of(cls, body: Program) -> InPlace:
        """Analyze the body of a loop, whose first input and first output are the carried values."""
        nodes = body.nodes
        scatters = [value for value, node in enumerate(nodes) if node[0] == "scatter"]
        if not scatters:
            return cls()
        last_use = {argument: value for value, node in enumerate(nodes) for argument in arguments(node)}
        results = {value for result in body.results for value in result}
        parts: dict[int, dict[int, int]] = {value: {} for value in scatters}
        for value, node in enumerate(nodes):
            if node[0] == "part" and node[1] in parts:
                parts[node[1]][node[2]] = value
        position = {value: node[2] for value, node in enumerate(nodes) if node[:2] == ("input", 0)}
        in_place = []
        for value in scatters:
            rows, targets = nodes[value][1], scatter_targets(nodes[value])
            positions = [position[v] for v in targets if v in position and last_use[v] == value and v not in results]
            if len(positions) < len(targets) or len(set(positions)) < len(positions):
                continue
            if find_table([{k} for k in positions], rows, len(targets) // rows) is not None:
                in_place.append(value)
                position |= {part: positions[k] for k, part in parts[value].items()}
        settled = {k for k, v in enumerate(body.results[0]) if position.get(v) == k and nodes[v][0] == "part"}
        return cls(frozenset(in_place), frozenset(settled))


def scatter_targets(node: tuple[int, ...]) -> tuple[int, ...]:
    """The values of a scatter that a row is written into."""
    _, rows, _, *values = node
    return tuple(values[len(values) // (rows + 1) :])
