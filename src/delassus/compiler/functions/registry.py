"""The table of elementary functions. Each registers itself next to its expansion.

An entry contains everything that the compiler needs to know about a function: its name in a program, the NumPy function
that it traces, how it is built from values, its expansion into machine operations, and its partial derivatives. Tracing
(`operations/elementwise`), lowering (`lower`), differentiation (`linearize`) and the list of functions in
`delassus.numpy` read the table. A new function is one decorated expansion in a file of this folder:

    @elementary(np.cbrt, partials=(lambda g, y, x: g.div(ONE, g.mul(g.constant(3.0), g.mul(y, y))),))
    def cbrt(g: Builder, x: int) -> int: ...
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from delassus.compiler.graph.graph import Builder

Expansion: TypeAlias = Callable[..., int]
"""Of a builder and the arguments: the value in machine operations."""

Partial: TypeAlias = Callable[..., int]
"""Of a builder, the function's value and its arguments: the derivative with respect to one of the arguments."""

E = TypeVar("E", bound=Expansion)


@dataclass(frozen=True)
class ElementaryFunction:
    """A function of numbers that is a single operation until a program is lowered.

    Attributes:
        name: The kind of its operation in a program.
        arity: Number of arguments.
        expand: Its expansion into machine operations.
        partials: Its partial derivatives, one for each argument. Empty for a piecewise constant function, whose
            derivative is zero; None if differentiation treats it by a rule of its own.
        numpy: The NumPy function that it traces, if there is one.
        commutes: Whether f(a, b) = f(b, a), so that both are one operation.
        fold: Builds its value from those of the arguments, where cheaper forms are known; None for one operation.
    """

    name: str
    arity: int
    expand: Expansion
    partials: tuple[Partial, ...] | None
    numpy: Any = None
    commutes: bool = False
    fold: Callable[..., int] | None = None

    def build(self, g: Builder, *arguments: int) -> int:
        """The value of the function while a program is traced."""
        if self.fold is not None:
            return self.fold(g, *arguments)
        return g.emit((self.name, *(sorted(arguments) if self.commutes else arguments)))


FUNCTIONS: Final[dict[str, ElementaryFunction]] = {}
"""All elementary functions by their names."""


def elementary(
    function: np.ufunc | str,
    partials: tuple[Partial, ...] | None,
    *,
    name: str = "",
    arity: int = 0,
    commutes: bool = False,
    fold: Callable[..., int] | None = None,
) -> Callable[[E], E]:
    """Register an expansion as that of a NumPy function, or of a name that has none in NumPy."""

    def register(expand: E) -> E:
        traced = None if isinstance(function, str) else function
        kind = name or (function if isinstance(function, str) else function.__name__)
        count = arity or (1 if traced is None else traced.nin)
        if kind in FUNCTIONS:
            raise ValueError(f"the elementary function {kind!r} is registered already: choose another name.")
        if partials and len(partials) != count:
            raise ValueError(f"{kind!r} has {count} argument(s) and {len(partials)} partial derivative(s).")
        FUNCTIONS[kind] = ElementaryFunction(kind, count, expand, partials, traced, commutes, fold)
        return expand

    return register
