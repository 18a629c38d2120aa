"""Lowers a graph: expands elementary functions and fuses multiply-adds.

A lowered program contains only: input, add, sub, mul, div, neg, sqrt, abs, floor, ceil, rint, trunc, the fused fma (a·b
+ c), fms (a·b - c) and fnma (c - a·b), lt, le, eq, ne, and, xor, not, bit0, bit1, exponent, scale, select, gather,
lookup, scatter, philox0 to philox3, and those of `words`. Back ends and interpreter support only these, and loops with
their parts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from delassus.compiler.functions.registry import FUNCTIONS
from delassus.compiler.graph import tables
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.compiler.graph.precision import DOUBLE, Precision
from delassus.compiler.graph.program import SPECIAL, Node, Operand, Program, arguments, with_arguments

FLOPS: Final = {"add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "fma": 2, "fms": 2, "fnma": 2}
"""Floating-point operations by kind; kinds that are not here count as none."""


def lower(program: Program, fma: bool, precision: Precision = DOUBLE) -> Program:
    """Expand elementary functions for a precision, then fuse products into sums if the machine can (`fma`)."""
    g = Builder(precision, fma)
    new = [0] * len(program.nodes)
    constants = [g.constant(c) for c in program.constants]
    g.loops += [replace(loop, body=lower(loop.body, fma, precision)) for loop in program.loops]
    for value, node in enumerate(program.nodes):
        if value:
            kind = node[0]
            if kind == "custom":
                continue
            if kind == "part" and program.nodes[node[1]][0] == "custom":
                source = program.nodes[node[1]][2 + node[2]]
                new[value] = new[source] if source > 0 else constants[-source]
                continue
            args = [new[a] if a > 0 else constants[-a] for a in (arguments(node) if kind in SPECIAL else node[1:])]
            if kind in ("gather", "lookup", "scatter"):
                size = len(args) - 1 if kind == "gather" else node[1] if kind == "scatter" else node[1].size
                args[0] = tables.inside(g, args[0], size)
            function = FUNCTIONS.get(kind)
            if function is not None:
                new[value] = function.expand(g, *args)
            else:
                new[value] = g.emit(with_arguments(node, args) if kind in SPECIAL else (kind, *args))
    results = tuple(tuple(new[v] if v > 0 else constants[-v] for v in values) for values in program.results)
    if fma:
        _fuse(g.nodes, {v for values in results for v in values} | _state_independent(g.nodes, program.inputs))
    return g.finish(program.inputs, program.outputs, results)


def flops(program: Program) -> int:
    """Floating-point operations of a lowered program; a loop that may end early counts for three times, if it may."""
    total = sum(FLOPS.get(node[0], 0) for node in program.nodes)
    loops = [program.loops[node[1]] for node in program.nodes if node[0] == "loop"]
    return total + sum((min(loop.count, 3) if loop.conditional else loop.count) * flops(loop.body) for loop in loops)


def _state_independent(nodes: list[Node], inputs: Sequence[Operand]) -> set[int]:
    """What depends on the parameters of a model and on constants alone.

    For a model of constants, the graph has folded it, each product rounded. It is rounded here as well, so that a model
    has the same bits in both forms.
    """
    settled: set[int] = set()
    for value, node in enumerate(nodes):
        if node[0] == "input":
            if inputs[node[1]].name == PARAMETERS:
                settled.add(value)
        elif value:
            for argument in arguments(node):
                if argument > 0 and argument not in settled:
                    break
            else:
                settled.add(value)
    return settled


def _fuse(nodes: list[Node], results: set[int]) -> None:
    """Rewrite sums, in place, so that they absorb the products they add.

    A product is absorbed if every use of it is a sum that can take it: then k sums become k fused operations and
    the product is dead. A sum can take one product only. `kept` are values that stay as they are: results, for one.
    """
    uses: list[list[int]] = [[] for _ in nodes]
    for value, node in enumerate(nodes):
        for argument in arguments(node) if node[0] in SPECIAL else node[1:]:
            if argument > 0:
                uses[argument].append(value)
    for value, node in enumerate(nodes):
        if node[0] != "mul" or value in results:
            continue
        takers = uses[value]
        if not all(nodes[user][0] in ("add", "sub") for user in takers) or len(set(takers)) < len(takers):
            continue
        _, a, b = node
        for user in takers:
            kind, left, right = nodes[user]
            other = right if left == value else left
            nodes[user] = ("fma" if kind == "add" else "fms" if left == value else "fnma", a, b, other)
