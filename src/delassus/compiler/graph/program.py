"""The finished expression graph: frozen data for passes, back ends and the interpreter."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

Node: TypeAlias = tuple[Any, ...]  # (operation, *values)
Shape: TypeAlias = tuple[int, ...]

LOGICAL: Final = frozenset({"lt", "le", "eq", "ne", "and", "or", "xor", "not", "bit0", "bit1"})
"""Operations whose value is a boolean; all others give a float."""

WHOLE: Final = frozenset({"floor", "ceil", "rint", "trunc"})
"""Operations that give integers (or infinities, or NaN)."""

SPECIAL: Final = frozenset({"input", "loop", "part", "lookup", "scatter", "custom"})
"""Operations whose nodes hold more than the values they read; see `arguments`."""

ARITHMETIC: Final = frozenset({"add", "sub", "mul", "div", "sqrt", "fma", "fms", "fnma", "lt", "le", "eq", "ne"})
"""Operations of a lowered program to which a subnormal argument is zero."""


@dataclass(frozen=True, repr=False)
class Operand:
    """An array that goes in or out of a program: its name in messages and its core shape.

    A `shared` one goes in, is the same for all states of a batch, and is read where it lies. One with `fields`, names
    and shapes, holds these one after the other, each flattened.
    """

    name: str
    shape: Shape
    shared: bool = False
    fields: tuple[tuple[str, Shape], ...] = ()

    def __repr__(self) -> str:
        shared, fields = ", shared=True" if self.shared else "", f", fields={self.fields!r}" if self.fields else ""
        return f"Operand(name={self.name!r}, shape={self.shape!r}{shared}{fields})"

    @property
    def slots(self) -> int:
        """Number of slots that it takes in a frame: a shared one those of an address, which may be twice a float."""
        return 2 if self.shared else self.size

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


def field_name(group: str, field: str) -> str:
    """What a field of a structure is called in messages, in `inputs=` and in C."""
    return f"{group}.{field}"


def output_name(k: int) -> str:
    """What an output is called that has no name."""
    return f"output {k}"


@dataclass(frozen=True)
class Program:
    """A finished graph.

    `nodes[i]` defines value `i`; `nodes[0]` is a placeholder. `constants[k]` is value `-k`. An input node is `("input",
    operand, flat index)`. A loop is `("loop", number, *values)`, its number one of `loops`, and gives several values:
    `("part", loop, index)`. `("lookup", source, index)` reads a table, see `tables`, and `("gather", index, *values)`
    gives one of the values. `("scatter", rows, index, *row, *values)` gives as many parts as there are values, rows of
    them one after the other: those of one row are replaced. For `("custom", rule, *values)` see `rules`. Every other
    node is `(operation, *values)`. `results` holds, for each output, its values in C order.
    """

    nodes: tuple[Node, ...]
    constants: tuple[float, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    results: tuple[tuple[int, ...], ...]
    loops: tuple[Loop, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, independent of process, platform and date."""
        sha = hashlib.sha256(b"delassus program 1\n")
        sha.update(repr((self.inputs, self.outputs)).encode())
        sha.update("\n".join(map(repr, self.nodes)).encode())
        sha.update(b"".join(b"?" + bytes([c]) if isinstance(c, bool) else struct.pack("<d", c) for c in self.constants))
        sha.update(repr(self.results).encode())
        sha.update(repr([(p.body.digest, p.count, p.reverse, p.conditional) for p in self.loops]).encode())
        return sha.hexdigest()

    @cached_property
    def tables(self) -> tuple[Any, ...]:
        """The tables of constants that it reads, in its loops as well, each once."""
        direct = [node[1].table for node in self.nodes if node[0] == "lookup" and not isinstance(node[1].table, int)]
        return tuple(dict.fromkeys([*direct, *(table for loop in self.loops for table in loop.body.tables)]))

    @cached_property
    def bit_exact_values(self) -> frozenset[int]:
        """Values whose bits count: results, and arguments of all but arithmetic, which takes subnormals as zero."""
        values = {a for node in self.nodes if node[0] not in ARITHMETIC for a in arguments(node)}
        return frozenset(values.union(*self.results))

    def is_logical(self, value: int) -> bool:
        """Whether a value is a boolean."""
        return self.nodes[value][0] in LOGICAL if value > 0 else isinstance(self.constants[-value], bool)

    def depends_on(self, operand: int, output: int) -> bool:
        """Whether an output depends on an input, both given by their numbers; a loop depends on all it is given."""
        visited: set[int] = set()
        waiting = list(self.results[output])
        while waiting:
            value = waiting.pop()
            if value > 0 and value not in visited:
                visited.add(value)
                waiting += arguments(self.nodes[value])
        return any(self.nodes[value][:2] == ("input", operand) for value in visited)

    def count(self) -> dict[str, int]:
        """Operations by kind, inputs not included; the bodies of loops count once, as they are in the code."""
        kinds: dict[str, int] = {}
        for node in self.nodes[1:]:
            kinds[node[0]] = kinds.get(node[0], 0) + 1
            if node[0] == "loop":
                for kind, number in self.loops[node[1]].body.count().items():
                    kinds[kind] = kinds.get(kind, 0) + number
        for silent in ("input", "part", "custom"):
            kinds.pop(silent, None)
        return dict(sorted(kinds.items()))


@dataclass(frozen=True)
class Loop:
    """A part of a program that is executed several times.

    Every execution of the body has three inputs: the values carried over from the one before, an item of its own, and
    the captured values, which stay the same. It has two outputs: the values to carry on, and something to keep. The
    loop's values are, in this order, the first carried ones, the items one after the other, and the captured ones; its
    parts are the carried values in the end, then what was kept, one after the other.

    Attributes:
        body: The program that is repeated.
        count: How many times; how many at most, if the loop is conditional.
        reverse: Whether the last item comes first; what is kept stays next to its item.
        conditional: Whether the loop ends, or does not start, when the first of its carried values is zero for all
            states that run together. The body has to leave the carried values of a state alone from then on. What
            such a loop keeps is not defined for executions that are left out. With a count of one it is a branch.
    """

    body: Program
    count: int
    reverse: bool = False
    conditional: bool = False

    @property
    def carry_count(self) -> int:
        """Number of values carried over."""
        return self.body.inputs[0].size

    @property
    def item(self) -> int:
        """Number of values in an item."""
        return self.body.inputs[1].size

    @property
    def stored_count(self) -> int:
        """Number of values kept by each execution."""
        return self.body.outputs[1].size

    @property
    def parts(self) -> int:
        """Number of values that the loop gives."""
        return self.carry_count + self.count * self.stored_count

    @cached_property
    def is_map(self) -> bool:
        """Whether its executions know nothing of each other, and are straight-line code: they can be side by side."""
        if self.carry_count or self.conditional or self.body.loops:
            return False
        return all(node[0] != "scatter" for node in self.body.nodes)

    def split(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Sequence[Any]], Sequence[Any]]:
        """The values of a loop: first carried ones, items, captured ones."""
        size, first = self.item, self.carry_count
        end = first + self.count * size
        items = [values[k : k + size] for k in range(first, end, size)] if size else [values[:0]] * self.count
        return values[:first], items, values[end:]


def arguments(node: Node) -> tuple[int, ...]:
    """The values an operation reads."""
    kind = node[0]
    if kind in ("loop", "lookup", "scatter", "custom"):
        return node[2:]
    if kind == "part":
        return node[1:2]
    return () if kind == "input" else node[1:]


def with_arguments(node: Node, values: Iterable[int]) -> Node:
    """The operation with other arguments."""
    kind = node[0]
    if kind in ("loop", "lookup", "scatter", "custom"):
        return (kind, node[1], *values)
    if kind == "part":
        return (kind, *values, node[2])
    return node if kind == "input" else (kind, *values)
