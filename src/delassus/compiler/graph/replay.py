"""Rebuilds the operations of a graph on other values, with the builder's constant folding."""

from collections.abc import Sequence
from typing import Final

from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.program import WHOLE, Loop, Node, Program, arguments, with_arguments

_RENAMED: Final = {"min": "minimum", "max": "maximum", "and": "logical_and", "xor": "logical_xor", "not": "logical_not"}
_PLAIN: Final = ("add", "sub", "mul", "div", "neg", "sqrt", "abs", "lt", "le", "eq", "ne", "select")
_MAKERS: Final = _RENAMED | {kind: kind for kind in (*_PLAIN, *WHOLE)}
"""The builder's own methods, which fold; any other kind is emitted as it is."""


def remake(g: Builder, node: Node, values: Sequence[int], loops: Sequence[Loop]) -> int:
    """An operation on other values; `loops` are those of the graph that the operation comes from."""
    maker = _MAKERS.get(node[0])
    if maker is not None:
        value: int = getattr(g, maker)(*values)
        return value
    if node[0] == "loop":
        node = ("loop", g.loop_number(loops[node[1]]))
    return g.emit(with_arguments(node, values))


def replay(g: Builder, program: Program, inputs: Sequence[Sequence[int]]) -> list[list[int]]:
    """The results of a program, made in another graph from values for its inputs."""
    made = [-1] * len(program.nodes)
    constants = [g.constant(c) for c in program.constants]

    def map_operands(values: Sequence[int]) -> list[int]:
        return [made[v] if v > 0 else constants[-v] for v in values]

    for value, node in enumerate(program.nodes):
        if node[0] == "input":
            made[value] = inputs[node[1]][node[2]]
        elif value:
            made[value] = remake(g, node, map_operands(arguments(node)), program.loops)
    return [map_operands(values) for values in program.results]
