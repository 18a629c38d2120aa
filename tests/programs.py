"""Random straight-line programs, for tests that compare two ways of running the same arithmetic.

`programs()` is a hypothesis strategy. What it yields has `inputs` and `outputs` (counts) and `function`, which maps an
array of shape (inputs,) to one of shape (outputs,) with `delassus.numpy`: on plain numbers that is NumPy, in a trace
it is what the compiler makes of it. A test that needs to look inside reads `constants`, `steps` and `results`.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from hypothesis import strategies as st

import delassus.numpy as np

BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "min": np.minimum,
    "max": np.maximum,
    "arctan2": np.arctan2,
}
UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "sqrt": np.sqrt,
    "abs": abs,
    "sin": np.sin,
    "cos": np.cos,
    "arctan": np.arctan,
    "square": np.square,
}
TRANSCENDENTAL: dict[str, Callable[..., Any]] = {
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
}
TRANSCENDENTAL_BINARY: dict[str, Callable[..., Any]] = {
    "hypot": np.hypot,
    "power": np.power,
}
WHOLE: dict[str, Callable[..., Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "trunc": np.trunc,
}
WHOLE_BINARY: dict[str, Callable[..., Any]] = {
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
}
COMPARISON: dict[str, Callable[..., Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
LOGIC: dict[str, Callable[..., Any]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
}
OPERATIONS = BINARY | UNARY | TRANSCENDENTAL | TRANSCENDENTAL_BINARY | WHOLE | WHOLE_BINARY
OPERATIONS |= COMPARISON | LOGIC | {"where": np.where}

CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -0.25, 3.0, 1.5707963267948966, -7.3, 1e-9, 1e6)


@dataclass(frozen=True)
class Step:
    """One operation; it reads values by their number: inputs first, then constants, then steps."""

    operation: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class RandomProgram:
    """A straight-line program: `results` are the numbers of the values it returns."""

    inputs: int
    constants: tuple[float, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    @property
    def outputs(self) -> int:
        """Number of values returned."""
        return len(self.results)

    def function(self, x: Any) -> Any:
        """Run it on an array of shape (inputs,), plain or traced."""
        values = [x[i] for i in range(self.inputs)] + [numpy.float64(c) for c in self.constants]
        with numpy.errstate(all="ignore"):
            for step in self.steps:
                values.append(OPERATIONS[step.operation](*[values[a] for a in step.arguments]))
        return np.stack([values[r] for r in self.results])


@st.composite
def programs(
    draw: st.DrawFn,
    max_inputs: int = 6,
    max_steps: int = 60,
    max_outputs: int = 5,
    transcendental: bool = False,
    whole: bool = False,
) -> RandomProgram:
    """Programs over + - * / sqrt abs min max sin cos arctan arctan2, comparisons, logic and where.

    `transcendental` adds tan, arcsin, arccos, exponentials, logarithms, hyperbolic functions, hypot and power; `whole`
    adds floor, ceil, rint, trunc, remainder and floor_divide.
    """
    unary = UNARY | (TRANSCENDENTAL if transcendental else {}) | (WHOLE if whole else {})
    binary = BINARY | (TRANSCENDENTAL_BINARY if transcendental else {}) | (WHOLE_BINARY if whole else {})
    inputs = draw(st.integers(1, max_inputs))
    constants = tuple(draw(st.lists(st.sampled_from(CONSTANTS), max_size=4)))
    floats, truths = list(range(inputs + len(constants))), []
    steps: list[Step] = []
    count = draw(st.integers(1, max_steps))
    while len(steps) < count:
        kinds = [binary, binary, unary, COMPARISON] + ([LOGIC, {"where": np.where}] if truths else [])
        kind = draw(st.sampled_from(kinds))
        operation = draw(st.sampled_from(sorted(kind)))
        if kind is LOGIC:
            pools = [truths] * (1 if operation == "not" else 2)
        elif operation == "where":
            pools = [truths, floats, floats]
        else:
            pools = [floats] * (1 if kind is unary else 2)
        steps.append(Step(operation, tuple(draw(st.sampled_from(pool[-4:] * 2 + pool[:4])) for pool in pools)))
        made = inputs + len(constants) + len(steps) - 1
        (truths if kind in (COMPARISON, LOGIC) else floats).append(made)
    results = draw(st.lists(st.sampled_from(floats[-4:]), min_size=1, max_size=max_outputs))
    return RandomProgram(inputs, constants, tuple(steps), tuple(results))
