"""Finds values that are equal in all lanes because they do not depend on a state.

Examples are items of a loop over constants, and indices computed from them. Selecting by such an index loads a whole
row of lanes; an index that differs between lanes needs a gather.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from delassus.compiler.graph.program import Program, arguments

_VARYING: Final = frozenset({"input", "loop", "part", "gather", "scatter", "custom"})
"""Operations whose values may differ between lanes, even if their arguments do not."""


def uniform_values(program: Program, inputs: Set[int]) -> frozenset[int]:
    """The values of a program, or of the body of a loop, that are the same in all lanes if these inputs are."""
    uniform = set(inputs)
    for value, node in enumerate(program.nodes):
        if node[0] not in _VARYING and all(a <= 0 or a in uniform for a in arguments(node)):
            uniform.add(value)
    return frozenset(uniform)
