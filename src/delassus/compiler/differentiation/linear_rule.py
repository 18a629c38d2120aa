"""The differential of a function with a custom tangent: the custom rule forward, its transpose in reverse."""

from collections.abc import Collection, Sequence

from delassus.compiler.differentiation.linear_loop import MakeTape
from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.graph.rules import Rule


def push(g: Builder, rule: Rule, values: Sequence[int], tangents: dict[int, int]) -> dict[int, int]:
    """Tangents of the results from tangents of the arguments, both by position."""
    primal_tangents = [tangents.get(rule.values + k, ZERO) for k in range(rule.primals)]
    return {k: tangent for k, tangent in enumerate(rule.tangents(g, values, primal_tangents)) if tangent != ZERO}


def pull(
    make: MakeTape,
    g: Builder,
    rule: Rule,
    values: Sequence[int],
    active: Collection[int],
    cotangents: dict[int, int],
) -> dict[int, int]:
    """Cotangents of active arguments from cotangents of the results, both by position; the rule is transposed."""
    tape = make(g, lambda tangents: rule.tangents(g, values, tangents), [ZERO] * rule.primals)
    cotangent_values = tape.pull([cotangents.get(k, ZERO) for k in range(rule.values)])
    return {rule.values + k: part for k, part in enumerate(cotangent_values) if rule.values + k in active}
