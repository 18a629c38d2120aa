"""The finished expression graph: frozen data that passes, back ends and the interpreter read."""

import hashlib
import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

Node: TypeAlias = tuple[Any, ...]  # (operation, *values)
Shape: TypeAlias = tuple[int, ...]

LOGICAL: Final = frozenset({"lt", "le", "eq", "ne", "and", "or", "xor", "not", "bit0", "bit1"})
"""Operations whose value is a truth value; all others give a float."""


@dataclass(frozen=True)
class Operand:
    """An array that goes in or out of a program: its name in messages and its core shape."""

    name: str
    shape: Shape

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Program:
    """A finished graph.

    `nodes[i]` defines value `i`; `nodes[0]` is a placeholder. `constants[k]` is value `-k`. An input node is
    `("input", operand, flat index)`, every other one `(operation, *values)`. `results` holds, for each output,
    its values in C order.
    """

    nodes: tuple[Node, ...]
    constants: tuple[float, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    results: tuple[tuple[int, ...], ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, independent of process, platform and date."""
        sha = hashlib.sha256(b"delassus program 1\n")
        sha.update(repr((self.inputs, self.outputs)).encode())
        sha.update("\n".join(map(repr, self.nodes)).encode())
        sha.update(b"".join(b"?" + bytes([c]) if isinstance(c, bool) else struct.pack("<d", c) for c in self.constants))
        sha.update(repr(self.results).encode())
        return sha.hexdigest()

    def is_logical(self, value: int) -> bool:
        """Whether a value is a truth value."""
        return self.nodes[value][0] in LOGICAL if value > 0 else isinstance(self.constants[-value], bool)

    def count(self) -> dict[str, int]:
        """Operations by kind, inputs not included."""
        kinds: dict[str, int] = {}
        for node in self.nodes[1:]:
            kinds[node[0]] = kinds.get(node[0], 0) + 1
        kinds.pop("input", None)
        return dict(sorted(kinds.items()))


def arguments(node: Node) -> tuple[int, ...]:
    """The values an operation reads."""
    return () if node[0] == "input" else node[1:]
