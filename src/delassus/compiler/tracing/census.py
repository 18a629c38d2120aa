"""Counts the operations of a kernel by the source line that creates them.

A Python loop in a kernel is unrolled: the operations of all iterations are compiled. Beyond `LIMIT` operations this
takes minutes and megabytes, mostly unintended, so a warning names the source lines with the most operations. For this
the kernel is traced once more with a builder that inspects the call stack; normal tracing does not pay for it.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Final, NamedTuple

from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.program import Node, Program
from delassus.compiler.tracing.trace import builder_type
from delassus.errors import warn

LIMIT = 300_000
"""Number of operations above which a kernel causes a warning."""

_NAMED: Final = 5  # source lines in a warning

_SKIPPED: Final = ("delassus.compiler", "delassus.numpy", "numpy")
"""Modules that make operations on behalf of whoever calls them."""


class Line(NamedTuple):
    """A line of source code."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number} in {self.function}"


def warn_if_large(name: str, program: Program, trace: Callable[[], Program]) -> None:
    """Warn if a kernel's program, traced again by `trace`, has more than `LIMIT` operations; says where from."""
    operations = sum(program.count().values())
    if operations <= LIMIT:
        return
    lines = census(trace)
    most = "\n".join(f"  {n} ({n / operations:.0%}) {line}" for line, n in lines.most_common(_NAMED))
    warn(
        f"{name} has {operations} operations of straight-line code, more than {LIMIT}, and compiles slowly: a Python "
        "loop is unrolled. Use scan, map or while_loop of delassus.compiler for what repeats itself, or split the "
        f"kernel into several, called one after the other. The source lines with the most operations:\n{most}"
    )


def census(trace: Callable[[], Program]) -> Counter[Line]:
    """Operations of the program that `trace` records, by the source lines that made them."""
    token = builder_type.set(_Watching)
    try:
        program = trace()
    finally:
        builder_type.reset(token)
    return _count_lines(program)


def _count_lines(program: Program) -> Counter[Line]:
    silent = ("input", "part")
    lines = Counter(kind.line for kind, *_ in program.nodes if isinstance(kind, _Kind) and kind not in silent)
    for loop in program.loops:
        lines += _count_lines(loop.body)
    return lines


class _Kind(str):
    """The kind of an operation, which remembers the line that made it on its way through the graph."""

    __slots__ = ("line",)
    line: Line


class _Watching(Builder):
    """A builder that looks who asks for a new operation."""

    def emit(self, node: Node) -> int:
        expected = len(self.nodes)
        value = super().emit(node)
        if value == expected:
            kind = _Kind(node[0])
            kind.line = _line(sys._getframe(1))
            self.nodes[value] = (kind, *node[1:])
        return value


def _line(frame: FrameType | None) -> Line:
    """The innermost line outside of what makes operations for others."""
    while frame is not None and frame.f_back is not None and _is_skipped(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    assert frame is not None
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


@cache
def _is_skipped(module: str) -> bool:
    return any(module == skipped or module.startswith(skipped + ".") for skipped in _SKIPPED)
