"""Functions stored as their graphs, so that they can be compared, hashed and reused by content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand, Program
from delassus.compiler.graph.replay import replay
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.record import record
from delassus.compiler.tracing.trace import current, trace_of


@dataclass(frozen=True, eq=False)
class RecordedFunction:
    """A function of arrays, as the program that it was when it was called once; two that compute the same are equal."""

    program: Program

    @classmethod
    def of(
        cls, name: str, function: Callable[..., Any], inputs: dict[str, tuple[int, ...]], *shapes: Any
    ) -> RecordedFunction:
        """From a function of arrays with these shapes, by name, that gives arrays with the shapes that follow."""
        operands = tuple(Operand(key, shape) for key, shape in inputs.items())
        results = tuple(Operand(f"y{k}", tuple(shape)) for k, shape in enumerate(shapes))
        return cls(record(name, function, operands, results))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordedFunction) and self.program.digest == other.program.digest

    def __hash__(self) -> int:
        return hash(self.program.digest)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The function's results, as a tuple: traced in a trace, plain arrays otherwise."""
        trace = current() or trace_of(*arguments)
        if trace is None:
            return tuple(evaluate(self.program, *(np.asarray(x, float) for x in arguments)))
        values = [trace.lift(x).ids.ravel().tolist() for x in arguments]
        results = replay(trace.builder, self.program, values)
        shapes = [operand.shape for operand in self.program.outputs]
        return tuple(
            Array(trace, np.array(ids, np.int64).reshape(shape)) for ids, shape in zip(results, shapes, strict=True)
        )
