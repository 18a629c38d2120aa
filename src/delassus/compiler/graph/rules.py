"""Custom tangents of functions, which replace the derivatives of their operations.

("custom", rule, *values, *primals, *captured) returns the values again, as parts. Lowering removes it; a derivative
follows its rule instead of the operations that computed the values.
"""

from __future__ import annotations

from collections.abc import Sequence

from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.program import Program
from delassus.compiler.graph.replay import replay


class Rule:
    """A program for the tangents of values; compared by content.

    Its inputs are the values and primals in a row, the tangents of the primals, and what it captures.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values, self.primals = program.outputs[0].size, program.inputs[1].size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.program.digest == other.program.digest

    def __hash__(self) -> int:
        return hash(self.program.digest)

    def __repr__(self) -> str:
        return f"<rule {self.program.digest}>"

    def primals_of(self, arguments: Sequence[int]) -> Sequence[int]:
        """The primals among the arguments of an operation with this rule."""
        return arguments[self.values : self.values + self.primals]

    def tangents(self, g: Builder, arguments: Sequence[int], tangents: Sequence[int]) -> list[int]:
        """The tangents of the values for those of the primals, made in a graph."""
        count = self.values + self.primals
        return replay(g, self.program, [arguments[:count], tangents, arguments[count:]])[0]
