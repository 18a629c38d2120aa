"""Linearizes a traced function: a list of linear steps that can be swept forward or in reverse.

A `Tape` runs the function in the current trace, on placeholders of its inputs. Then the operations that lead from these
inputs to the outputs are repeated on the real arguments, where they find values that the caller has computed already,
and every operation y = f(a, b) becomes a step dy = ∂f/∂a da + ∂f/∂b db. The partial derivatives are values of the
graph, computed once and shared by all sweeps; operations that do not depend on the inputs have no step. `push`
propagates tangents through the steps in order, `pull` propagates cotangents in reverse order: at most one product and
one sum for each argument of each operation.

Selections (where, minimum, maximum, take) pass their tangent to `select` or `gather`, so values that are not selected
have no influence. In reverse mode, an operation counts only under the condition that an output uses it. Inside the part
of the graph with the same condition, cotangents may be anything while it does not hold; where they leave that part they
are replaced by zero. Thus a branch that is not taken contributes zero even if its derivative is infinite or NaN, for
one `select` at its end.

A loop is one step, see `linear_loop`, and so are a scatter, see `linear_scatter`, and a function with a custom tangent,
see `linear_rule`. A sweep may be inside the body of another loop, using the partial derivatives from outside: this is
how the columns of a large Jacobian share one piece of code.

At kinks: the derivative of |x| at 0 is 0, and for equal arguments of minimum and maximum it is that of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from delassus.compiler.differentiation import linear_loop, linear_rule, linear_scatter
from delassus.compiler.differentiation.linear_loop import DerivativeError
from delassus.compiler.functions.registry import FUNCTIONS, Partial
from delassus.compiler.graph.graph import FALSE, MINUS_ONE, ONE, TRUE, ZERO, Builder
from delassus.compiler.graph.program import LOGICAL, WHOLE, Loop, arguments
from delassus.compiler.graph.replay import remake
from delassus.compiler.graph.rules import Rule
from delassus.compiler.graph.tables import inside

_PARTIALS: Final[dict[str, tuple[Partial, ...]]] = {
    "add": (lambda g, y, a, b: ONE, lambda g, y, a, b: ONE),
    "sub": (lambda g, y, a, b: ONE, lambda g, y, a, b: MINUS_ONE),
    "mul": (lambda g, y, a, b: b, lambda g, y, a, b: a),
    "div": (lambda g, y, a, b: g.div(ONE, b), lambda g, y, a, b: g.neg(g.mul(y, g.div(ONE, b)))),
    "neg": (lambda g, y, a: MINUS_ONE,),
    "sqrt": (lambda g, y, a: g.div(g.constant(0.5), y),),
    "abs": (lambda g, y, a: g.unary("sign", a),),
}
"""Partial derivatives of the arithmetic operations, one for each argument."""

_CONSTANT: Final = LOGICAL | WHOLE | {"lookup"}
"""Kinds whose derivative is zero wherever they have one."""


def _partials(kind: str) -> tuple[Partial, ...] | None:
    """The partial derivatives of an operation; empty where they are zero, None where there is no rule."""
    function = FUNCTIONS.get(kind)
    return _PARTIALS.get(kind) if function is None else function.partials


class _Edge(NamedTuple):
    """How a step depends on one of its arguments: by a factor, while a condition holds."""

    argument: int
    factor: int
    condition: int


class _Step(NamedTuple):
    """The differential of one operation: a sum over its edges, or a choice between arguments."""

    value: int
    edges: tuple[_Edge, ...]
    choice: tuple[str, int, tuple[int, ...]] | None  # select or gather, what decides, and the arguments


class _LoopStep(NamedTuple):
    """The differential of a loop, of a scatter into so many rows, or of what brings its own rule along: which of its
    arguments and parts have one."""

    value: int
    loop: Loop | Rule | int
    arguments: tuple[int, ...]
    active: frozenset[int]  # positions among the arguments
    parts: dict[int, int]  # those with a differential, by their number


class Tape:
    """A function at a point, ready to be swept; `inputs` and `outputs` are values, `values` those of the function."""

    def __init__(self, g: Builder, function: Callable[[list[int]], Sequence[int]], primals: Sequence[int]) -> None:
        """Run the function, which maps a list of values to a list of values, at `primals`."""
        self.builder = g
        start = len(g.nodes)
        # A stand-in is equal to the real value, and shared with nothing: its product with one, not folded.
        self.inputs = list(range(start, start + len(primals)))
        g.nodes += [("mul", v, ONE) for v in primals]
        self.outputs = list(function(list(self.inputs)))
        self._real: dict[int, int] = dict(zip(self.inputs, primals, strict=True))
        operations = self._operations(start + len(self.inputs), len(g.nodes))
        for value in operations:
            node = g.nodes[value]
            self._real[value] = remake(g, node, self._replay(arguments(node)), g.loops)
        self._active = set(self.inputs)
        self._parts: dict[int, dict[int, int]] = {}
        for value in operations:
            if g.nodes[value][0] == "part":
                self._parts.setdefault(g.nodes[value][1], {})[g.nodes[value][2]] = value
        followed = self._operations_to_follow(operations)
        self._steps = [step for value in operations if value in followed for step in self._step(value)]
        self._branching = any(isinstance(step, _Step) and step.choice for step in self._steps)
        self.values = self._replay(self.outputs)
        loops = [step.loop for step in self._steps if isinstance(step, _LoopStep)]
        self.reversible = not any(isinstance(x, Loop) and x.conditional and x.count > 1 for x in loops)

    def push(
        self, tangents: Sequence[int], into: Builder | None = None, enter: Callable[[int], int] = lambda v: v
    ) -> list[int]:
        """The tangents of the outputs for tangents of the inputs.

        The sweep is made in the function's own graph, or in another one, where `enter` brings values from there.
        """
        g = into or self.builder
        tangent_of = dict(zip(self.inputs, tangents, strict=True))
        for step in self._steps:
            if isinstance(step, _LoopStep):
                tangent_of |= self._push_loop(step, tangent_of, g, enter)
                continue
            value, edges, choice = step
            if choice is None:
                total = ZERO
                for argument, factor, _ in edges:
                    if argument in tangent_of:
                        total = g.add(total, g.mul(tangent_of[argument], enter(factor)))
            else:
                kind, decisive, choices = choice
                total = getattr(g, kind)(enter(decisive), *[tangent_of.get(v, ZERO) for v in choices])
            if total != ZERO:
                tangent_of[value] = total
        return [tangent_of.get(v, ZERO) for v in self.outputs]

    def pull(
        self, cotangents: Sequence[int], into: Builder | None = None, enter: Callable[[int], int] = lambda v: v
    ) -> list[int]:
        """The cotangents of the inputs for cotangents of the outputs; the sweep is made where that of `push` is."""
        g = into or self.builder
        cotangent_of = dict.fromkeys(self.inputs, ZERO)
        for value, cotangent in zip(self.outputs, cotangents, strict=True):
            if value in self._active:
                cotangent_of[value] = g.add(cotangent_of.get(value, ZERO), cotangent)
        holds = self._conditions([v for v, c in cotangent_of.items() if c != ZERO]) if self._branching else None

        def give(argument: int, part: int, used: int) -> None:
            """Add to a cotangent what holds under a condition."""
            if holds is not None and holds[argument] != used:
                part = g.select(enter(used), part, ZERO)
            cotangent_of[argument] = g.add(cotangent_of.get(argument, ZERO), part)

        for step in reversed(self._steps):
            if isinstance(step, _LoopStep):
                used = TRUE if holds is None else holds.get(step.value, FALSE)
                for argument, part in self._pull_loop(step, cotangent_of, holds, g, enter):
                    give(argument, part, used)
                continue
            value, edges, _ = step
            cotangent = cotangent_of.get(value, ZERO)
            if cotangent == ZERO:
                continue
            for argument, factor, condition in edges:
                used = TRUE if holds is None else self.builder.logical_and(holds[value], condition)
                give(argument, g.mul(cotangent, enter(factor)), used)
        return [cotangent_of[v] for v in self.inputs]

    def _push_loop(
        self, step: _LoopStep, tangent_of: dict[int, int], g: Builder, enter: Callable[[int], int]
    ) -> dict[int, int]:
        tangents = {k: tangent_of.get(step.arguments[k], ZERO) for k in step.active}
        if all(t == ZERO for t in tangents.values()):
            return {}
        real = [enter(v) for v in self._real_arguments(step)]
        if isinstance(step.loop, Loop):
            results = linear_loop.push(Tape, g, step.loop, real, tangents)
        elif isinstance(step.loop, Rule):
            results = linear_rule.push(g, step.loop, real, tangents)
        else:
            results = linear_scatter.push(g, step.loop, real, tangents)
        return {value: results[k] for k, value in step.parts.items() if k in results}

    def _pull_loop(
        self,
        step: _LoopStep,
        cotangent_of: dict[int, int],
        holds: dict[int, int] | None,
        g: Builder,
        enter: Callable[[int], int],
    ) -> list[tuple[int, int]]:
        cotangents = {}
        for k, value in step.parts.items():
            cotangent = cotangent_of.get(value, ZERO)
            if cotangent != ZERO:
                if holds is not None and holds[value] != holds[step.value]:
                    cotangent = g.select(enter(holds[value]), cotangent, ZERO)
                cotangents[k] = cotangent
        if not cotangents:
            return []
        real = [enter(v) for v in self._real_arguments(step)]
        if isinstance(step.loop, Loop):
            results = linear_loop.pull(Tape, g, step.loop, real, step.active, cotangents)
        elif isinstance(step.loop, Rule):
            results = linear_rule.pull(Tape, g, step.loop, real, step.active, cotangents)
        else:
            results = linear_scatter.pull(g, step.loop, real, step.active, cotangents)
        return [(step.arguments[k], part) for k, part in results.items() if part != ZERO]

    def _real_arguments(self, step: _LoopStep) -> list[int]:
        """What a step reads; a rule reads the values that have the rule, so that it can be differentiated again."""
        real = self._replay(step.arguments)
        if isinstance(step.loop, Rule):
            real_loop = self._real[step.value]
            real[: step.loop.values] = [self.builder.emit(("part", real_loop, k)) for k in range(step.loop.values)]
        return real

    def _operations_to_follow(self, operations: list[int]) -> set[int]:
        """The operations that derivatives pass through: none that a rule stands for."""
        nodes = self.builder.nodes
        if all(nodes[value][0] != "custom" for value in operations):
            return set(operations)
        followed = set(self.outputs)
        for value in reversed(operations):
            if value in followed:
                node = nodes[value]
                if node[0] == "custom":
                    self._check_primals(node[1], arguments(node))
                    followed.update(node[1].primals_of(arguments(node)))
                else:
                    followed.update(arguments(node))
        return followed

    def _check_primals(self, rule: Rule, args: tuple[int, ...]) -> None:
        """Raise if values with a rule depend on the inputs in another way than by the primals."""
        nodes, visited, waiting = self.builder.nodes, set(rule.primals_of(args)), list(args[: rule.values])
        while waiting:
            value = waiting.pop()
            if value >= self.inputs[0] and value not in visited:
                visited.add(value)
                if value in self._real and value <= self.inputs[-1]:
                    raise DerivativeError(
                        "a function with a custom tangent uses a value from around it that depends on what is "
                        "differentiated, which its tangent does not know: make it an argument of the function."
                    )
                waiting += arguments(nodes[value])

    def _operations(self, start: int, stop: int) -> list[int]:
        """The operations that depend on the inputs and that an output needs, in order."""
        nodes, varied = self.builder.nodes, set(self.inputs)
        for value in range(start, stop):
            if not varied.isdisjoint(arguments(nodes[value])):
                varied.add(value)
        required = varied.intersection(self.outputs)
        for value in range(stop - 1, start - 1, -1):
            if value in required:
                required.update(varied.intersection(arguments(nodes[value])))
        return sorted(required.difference(self.inputs))

    def _replay(self, values: Iterable[int]) -> list[int]:
        """The values, recomputed from the real arguments instead of their placeholders."""
        return [self._real.get(v, v) for v in values]

    def _step(self, value: int) -> list[_Step | _LoopStep]:
        """The differential of an operation, if it has one."""
        g = self.builder
        kind, *args = g.nodes[value]
        if kind == "part":
            return []
        if kind in ("loop", "scatter", "custom"):
            return self._loop_step(value)
        if kind in _CONSTANT or _partials(kind) == () or self._active.isdisjoint(args):
            return []
        real = self._replay(args)
        if kind in ("select", "min", "max"):
            if kind == "select":
                condition, (a, b) = real[0], args[1:]
            else:
                (a, b), (x, y) = args, real if kind == "max" else real[::-1]
                condition = g.logical_not(g.lt(x, y))
            gates: tuple[tuple[int, int], ...] = ((a, condition), (b, g.logical_not(condition)))
            edges = [_Edge(v, ONE, gate) for v, gate in gates if v in self._active]
            choice = ("select", condition, (a, b))
        elif kind == "gather":
            index = g.floor(inside(g, real[0], len(args) - 1))
            gates = tuple((v, g.eq(index, g.constant(float(k)))) for k, v in enumerate(args[1:]))
            edges = [_Edge(v, ONE, gate) for v, gate in gates if v in self._active]
            choice = ("gather", real[0], tuple(args[1:]))
        else:
            choice = None
            partials = _partials(kind)
            if partials is None:
                raise DerivativeError(
                    f"the operation {kind!r} has no rule for its derivative.", code="not-differentiable"
                )
            factors: dict[int, int] = {}
            for argument, partial in zip(args, partials, strict=True):
                if argument in self._active:
                    factor = partial(g, self._real[value], *real)
                    factors[argument] = g.add(factors.get(argument, ZERO), factor)
            edges = [_Edge(v, factor, TRUE) for v, factor in factors.items() if factor != ZERO]
        if not edges:
            return []
        self._active.add(value)
        return [_Step(value, tuple(edges), choice)]

    def _loop_step(self, value: int) -> list[_Step | _LoopStep]:
        node = self.builder.nodes[value]
        args = arguments(node)
        active_arguments = frozenset(k for k, a in enumerate(args) if a in self._active)
        if node[0] == "loop":
            loop: Loop | Rule | int = self.builder.loops[node[1]]
            reached = linear_loop.active_parts(self.builder.loops[node[1]], active_arguments)
        else:
            loop, first = node[1], node[1].values if node[0] == "custom" else 1
            last = first + loop.primals if isinstance(loop, Rule) else len(args)
            active_arguments = active_arguments.intersection(range(first, last))
            reached = set(self._parts.get(value, {})) if active_arguments else set()
        parts = {k: v for k, v in self._parts.get(value, {}).items() if k in reached}
        if not parts:
            return []
        self._active.update((value, *parts.values()))
        return [_LoopStep(value, loop, args, active_arguments, parts)]

    def _conditions(self, seeded: Sequence[int]) -> dict[int, int]:
        """Under which condition the seeded outputs use each value; the inputs are always of use."""
        g, holds = self.builder, dict.fromkeys(seeded, TRUE)

        def use(argument: int, condition: int) -> None:
            holds[argument] = _either(g, holds.get(argument, FALSE), condition)

        for step in reversed(self._steps):
            if isinstance(step, _LoopStep):
                for part in step.parts.values():
                    use(step.value, holds.setdefault(part, FALSE))
                for k in step.active:
                    use(step.arguments[k], holds[step.value])
            elif step.value in holds:
                for argument, _, condition in step.edges:
                    use(argument, g.logical_and(holds[step.value], condition))
        return holds | dict.fromkeys(self.inputs, TRUE)


def _either(g: Builder, a: int, b: int) -> int:
    """a or b, where the two branches of one choice make up the whole: (c and s) or (c and not s) is c."""
    if a in (b, TRUE) or b == FALSE:
        return a
    if a == FALSE or b == TRUE:
        return b
    parts_a, parts_b = ({*g.nodes[v][1:]} if g.nodes[v][0] == "and" else {v} for v in (a, b))
    common, rest_a, rest_b = parts_a & parts_b, parts_a - parts_b, parts_b - parts_a
    if not rest_a or not rest_b:
        return b if rest_a else a
    if len(rest_a) == len(rest_b) == 1 and g.logical_not(*rest_a) in rest_b:
        return next(iter(common), TRUE)
    return g.logical_or(a, b)
