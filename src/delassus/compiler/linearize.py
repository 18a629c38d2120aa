"""The derivative of a traced function as a list of linear steps, swept forwards or backwards.

A `Tape` runs the function in the current trace, on values that stand for its inputs and for nothing else. Then the
operations that lead from these inputs to the outputs are made once more on the real arguments, where they find
what the caller has computed already, and every operation y = f(a, b) becomes a step dy = ∂f/∂a da + ∂f/∂b db. The
partial derivatives are values of the graph, made once and shared by all sweeps; steps that do not depend on the
inputs do not exist. `push` carries tangents through the steps in their order, `pull` carries cotangents
through them in the opposite order: at most one product and one sum for each argument of each operation.

Choices (where, minimum, maximum) hand their tangent to `select`, so what is not chosen cannot spoil it. Backwards, an
operation counts only under the condition that some output uses it. Inside the part of the graph that shares a
condition, cotangents may be anything while it does not hold; where they leave that part they are replaced by zero.
A branch that is not taken thus contributes zero even if its derivative is infinite or NaN, for one `select` at its end.

At kinks: |x| has the derivative 0 at 0, and equal arguments of minimum and maximum count as the first being chosen.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.graph import FALSE, MINUS_ONE, ONE, TRUE, ZERO, Builder
from delassus.compiler.program import LOGICAL, arguments
from delassus.compiler.trace import Trace
from delassus.errors import DelassusError


class DerivativeError(DelassusError):
    """A derivative does not exist in this form: an operation has no rule, or shapes and values do not fit."""


Partial = Callable[..., int]  # of the builder, the operation's value and its arguments


def _inverse_square_root(g: Builder, x: int) -> int:
    """1 / √(1 - x²), without the cancellation at ±1."""
    return g.div(ONE, g.sqrt(g.mul(g.sub(ONE, x), g.add(ONE, x))))


def _inverse_square(g: Builder, x: int) -> int:
    return g.div(ONE, g.mul(x, x))


def _square_sum(g: Builder, a: int, b: int) -> int:
    return g.add(g.mul(a, a), g.mul(b, b))


def _by_exponent(g: Builder, y: int, a: int, b: int) -> int:
    """∂(aᵇ)/∂b = aᵇ log a, which is 0 at a = 0 for b > 0."""
    at_zero = g.logical_and(g.eq(a, ZERO), g.lt(ZERO, b))
    return g.select(at_zero, ZERO, g.mul(y, g.unary("log", a)))


_PARTIALS: Final[dict[str, tuple[Partial, ...]]] = {
    "add": (lambda g, y, a, b: ONE, lambda g, y, a, b: ONE),
    "sub": (lambda g, y, a, b: ONE, lambda g, y, a, b: MINUS_ONE),
    "mul": (lambda g, y, a, b: b, lambda g, y, a, b: a),
    "div": (lambda g, y, a, b: g.div(ONE, b), lambda g, y, a, b: g.neg(g.mul(y, g.div(ONE, b)))),
    "neg": (lambda g, y, a: MINUS_ONE,),
    "sqrt": (lambda g, y, a: g.div(g.constant(0.5), y),),
    "abs": (lambda g, y, a: g.unary("sign", a),),
    "sin": (lambda g, y, a: g.unary("cos", a),),
    "cos": (lambda g, y, a: g.neg(g.unary("sin", a)),),
    "tan": (lambda g, y, a: g.add(ONE, g.mul(y, y)),),
    "arcsin": (lambda g, y, a: _inverse_square_root(g, a),),
    "arccos": (lambda g, y, a: g.neg(_inverse_square_root(g, a)),),
    "arctan": (lambda g, y, a: g.div(ONE, g.add(ONE, g.mul(a, a))),),
    "arctan2": (
        lambda g, y, a, b: g.div(b, _square_sum(g, a, b)),
        lambda g, y, a, b: g.neg(g.div(a, _square_sum(g, a, b))),
    ),
    "exp": (lambda g, y, a: y,),
    "expm1": (lambda g, y, a: g.unary("exp", a),),
    "log": (lambda g, y, a: g.div(ONE, a),),
    "log1p": (lambda g, y, a: g.div(ONE, g.add(ONE, a)),),
    "sinh": (lambda g, y, a: g.unary("cosh", a),),
    "cosh": (lambda g, y, a: g.unary("sinh", a),),
    "tanh": (lambda g, y, a: _inverse_square(g, g.unary("cosh", a)),),
    "hypot": (lambda g, y, a, b: g.div(a, y), lambda g, y, a, b: g.div(b, y)),
    "power": (lambda g, y, a, b: g.mul(b, g.emit(("power", a, g.sub(b, ONE)))), _by_exponent),
}
"""Partial derivatives by kind of operation, one for each argument."""

_CONSTANT: Final = LOGICAL | {"sign"}
"""Kinds whose derivative is zero wherever they have one."""

_RENAMED: Final = {"min": "minimum", "max": "maximum", "and": "logical_and", "xor": "logical_xor", "not": "logical_not"}
_PLAIN: Final = ("add", "sub", "mul", "div", "neg", "sqrt", "abs", "lt", "le", "eq", "ne", "select")
_MAKERS: Final = _RENAMED | {kind: kind for kind in _PLAIN}
"""The builder's own methods, which fold; any other kind is emitted as it is."""


class _Edge(NamedTuple):
    """How a step depends on one of its arguments: by a factor, while a condition holds."""

    argument: int
    factor: int
    condition: int


class _Step(NamedTuple):
    """The differential of one operation: a sum over its edges, or a choice between two arguments."""

    value: int
    edges: tuple[_Edge, ...]
    choice: tuple[int, int, int] | None  # condition, argument if it holds, argument if not


class Tape:
    """A function at a point, ready to be swept; `inputs` and `outputs` are flat lists of values."""

    def __init__(self, trace: Trace, function: Callable[[list[Array]], list[Array]], primals: Sequence[Array]) -> None:
        """Run the function, which maps a list of arrays to a list of arrays, at `primals`."""
        self.builder = g = trace.builder
        start = len(g.nodes)
        self.inputs: list[int] = []
        arrays = []
        for primal in primals:
            # A stand-in is equal to the real value, and shared with nothing: its product with one, not folded.
            ids = list(range(len(g.nodes), len(g.nodes) + primal.size))
            g.nodes += [("mul", v, ONE) for v in primal.ids.ravel().tolist()]
            arrays.append(Array(trace, np.array(ids, np.int64).reshape(primal.shape)))
            self.inputs += ids
        outputs = function(arrays)
        self.outputs: list[int] = [v for array in outputs for v in array.ids.ravel().tolist()]
        self._real: dict[int, int] = {v: g.nodes[v][1] for v in self.inputs}
        operations = self._operations(start + len(self.inputs), len(g.nodes))
        for value in operations:
            kind, *args = g.nodes[value]
            real = self._replayed(args)
            self._real[value] = getattr(g, _MAKERS[kind])(*real) if kind in _MAKERS else g.emit((kind, *real))
        self._active = set(self.inputs)
        self._steps = [step for value in operations for step in self._step(value)]
        self._branching = any(step.choice for step in self._steps)
        self.values = []
        for array in outputs:
            ids = self._replayed(array.ids.ravel().tolist())
            self.values.append(Array(trace, np.array(ids, np.int64).reshape(array.shape)))

    def push(self, tangents: Sequence[int]) -> list[int]:
        """The tangents of the outputs for tangents of the inputs."""
        g = self.builder
        found = dict(zip(self.inputs, tangents, strict=True))
        for value, edges, choice in self._steps:
            if choice is None:
                total = ZERO
                for argument, factor, _ in edges:
                    total = g.add(total, g.mul(found.get(argument, ZERO), factor))
            else:
                condition, a, b = choice
                total = g.select(condition, found.get(a, ZERO), found.get(b, ZERO))
            if total != ZERO:
                found[value] = total
        return [found.get(v, ZERO) for v in self.outputs]

    def pull(self, cotangents: Sequence[int]) -> list[int]:
        """The cotangents of the inputs for cotangents of the outputs."""
        g = self.builder
        found = dict.fromkeys(self.inputs, ZERO)
        for value, cotangent in zip(self.outputs, cotangents, strict=True):
            if value in self._active:
                found[value] = g.add(found.get(value, ZERO), cotangent)
        holds = self._conditions([v for v, c in found.items() if c != ZERO]) if self._branching else None
        for value, edges, _ in reversed(self._steps):
            cotangent = found.get(value, ZERO)
            if cotangent == ZERO:
                continue
            for argument, factor, condition in edges:
                part = g.mul(cotangent, factor)
                if holds is not None:
                    used = g.logical_and(holds[value], condition)
                    part = part if holds[argument] == used else g.select(used, part, ZERO)
                found[argument] = g.add(found.get(argument, ZERO), part)
        return [found[v] for v in self.inputs]

    def _operations(self, start: int, stop: int) -> list[int]:
        """The operations that depend on the inputs and that an output needs, in order."""
        nodes, varied = self.builder.nodes, set(self.inputs)
        for value in range(start, stop):
            if not varied.isdisjoint(arguments(nodes[value])):
                varied.add(value)
        needed = varied.intersection(self.outputs)
        for value in range(stop - 1, start - 1, -1):
            if value in needed:
                needed.update(varied.intersection(arguments(nodes[value])))
        return sorted(needed.difference(self.inputs))

    def _replayed(self, values: Iterable[int]) -> list[int]:
        """The same values, computed from the real arguments instead of what stands for them."""
        return [self._real.get(v, v) for v in values]

    def _step(self, value: int) -> list[_Step]:
        """The differential of an operation, if it has one."""
        g = self.builder
        kind, *args = g.nodes[value]
        if kind in _CONSTANT or self._active.isdisjoint(args):
            return []
        real = self._replayed(args)
        if kind in ("select", "min", "max"):
            if kind == "select":
                condition, (a, b) = real[0], args[1:]
            else:
                (a, b), (x, y) = args, real if kind == "max" else real[::-1]
                condition = g.logical_not(g.lt(x, y))
            gates = ((a, condition), (b, g.logical_not(condition)))
            edges = [_Edge(v, ONE, gate) for v, gate in gates if v in self._active]
            choice = (condition, a, b)
        else:
            choice = None
            if kind not in _PARTIALS:
                raise DerivativeError(f"the operation {kind!r} has no rule for its derivative.")
            factors: dict[int, int] = {}
            for argument, partial in zip(args, _PARTIALS[kind], strict=True):
                if argument in self._active:
                    factor = partial(g, self._real[value], *real)
                    factors[argument] = g.add(factors.get(argument, ZERO), factor)
            edges = [_Edge(v, factor, TRUE) for v, factor in factors.items() if factor != ZERO]
        if not edges:
            return []
        self._active.add(value)
        return [_Step(value, tuple(edges), choice)]

    def _conditions(self, seeded: Sequence[int]) -> dict[int, int]:
        """Under which condition the seeded outputs use each value; the inputs are always of use."""
        g, holds = self.builder, dict.fromkeys(seeded, TRUE)
        for value, edges, _ in reversed(self._steps):
            if value in holds:
                for argument, _, condition in edges:
                    used = g.logical_and(holds[value], condition)
                    holds[argument] = _either(g, holds.get(argument, FALSE), used)
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
