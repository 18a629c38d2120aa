"""Finishes a graph under construction: keeps what its results need and drops the rest."""

from collections.abc import Iterable, Sequence

from delassus.compiler.graph.program import SPECIAL, Loop, Node, Operand, Program, arguments, with_arguments


def finish_program(
    made: Sequence[Node],
    numbers: Sequence[float],
    loops: Sequence[Loop],
    inputs: tuple[Operand, ...],
    outputs: tuple[Operand, ...],
    results: tuple[tuple[int, ...], ...],
) -> Program:
    """The program that computes `results`, in the order in which its operations were made, renumbered.

    `made`, `numbers` and `loops` are the operations, constants and loops of a builder, those that nobody needs too.
    """
    alive = _mark_needed(made, results)
    # Operations are renumbered before they are used, constants when they are met for the first time.
    renumbered = {0: 0}
    constants: list[float] = [0.0]

    def constant(value: int) -> int:
        renumbered[value] = -len(constants)
        constants.append(numbers[-value])
        return renumbered[value]

    def new(values: Iterable[int]) -> list[int]:
        return [renumbered[v] if v in renumbered else constant(v) for v in values]

    nodes: list[Node] = [made[0]]
    loop_numbers: dict[int, int] = {}
    for value in range(1, len(made)):
        if alive[value]:
            node = made[value]
            renumbered[value] = len(nodes)
            if node[0] not in SPECIAL:
                nodes.append((node[0], *[renumbered[v] if v in renumbered else constant(v) for v in node[1:]]))
            elif node[0] == "loop":
                number = loop_numbers.setdefault(node[1], len(loop_numbers))
                nodes.append(("loop", number, *new(node[2:])))
            else:
                nodes.append(with_arguments(node, new(arguments(node))))
    final = tuple(tuple(new(values)) for values in results)
    return Program(tuple(nodes), tuple(constants), inputs, outputs, final, tuple(loops[k] for k in loop_numbers))


def _mark_needed(nodes: Sequence[Node], results: tuple[tuple[int, ...], ...]) -> bytearray:
    """Which operations the results need: 1 for these."""
    alive = bytearray(len(nodes))
    for values in results:
        for value in values:
            if value > 0:
                alive[value] = 1
    for value in range(len(nodes) - 1, 0, -1):
        if alive[value]:
            node = nodes[value]
            for argument in node[1:] if node[0] not in SPECIAL else arguments(node):
                if argument > 0:
                    alive[argument] = 1
    return alive
