"""The definition of a kernel, independent of a model: its function, signature, inputs and outputs.

A definition with a model, optional inputs and options is a `Case`: a function of arrays alone. A case has a key that
identifies it, a program, and a recipe for machine code. On plain numbers it runs as a Python function, and so do the
kernels that it calls.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from delassus.common.checks import real_array
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.digest import check_content_hash, exact
from delassus.compiler.graph.parameters import PARAMETERS, Parametric
from delassus.compiler.graph.precision import Precision
from delassus.compiler.graph.program import Operand, Program, field_name
from delassus.compiler.host.arguments import Arguments
from delassus.compiler.host.build import Recipe
from delassus.compiler.host.inputs import (
    InputError,
    SignatureError,
    pack,
    pack_operands,
    unpack,
    wrong_shape,
)
from delassus.compiler.host.known_calls import broadcast_input
from delassus.compiler.host.signature import Signature, hint
from delassus.compiler.tracing.array import contains_traced
from delassus.compiler.tracing.record import check_results, inline, record
from delassus.compiler.tracing.trace import current, suspend_trace, tracing_for

_plain: ContextVar[bool] = ContextVar("delassus_plain", default=False)

is_plain = _plain.get
"""Whether calls of kernels run as plain functions."""


@contextmanager
def plainly() -> Iterator[None]:
    """Run kernels as plain functions on numbers, also during a trace, to compute its constants."""
    token = _plain.set(True)
    try:
        with suspend_trace():
            yield
    finally:
        _plain.reset(token)


Operands: TypeAlias = tuple[tuple[Operand, ...], tuple[Operand, ...]]


Result: TypeAlias = type[tuple[Any, ...]]
"""A class of results: a named tuple with a field for each output.

It may have a class method `of_call(values, model, arrays)`, which creates a result from the values, the model, and the
arrays of the call by name, for results with methods that depend on these."""


class Definition:
    """The definition of a kernel.

    Attributes:
        function: The plain function.
        signature: The core shapes of its arrays.
        single: A warning for compilation in float32.
        result: The class of its results; None if they are arrays, or a tuple of them.
        arguments: The reader of its arguments.
        own: Whether it is a part of this package.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Signature, single: str = "", result: Result | None = None
    ) -> None:
        self.function, self.signature, self.single, self.result = function, signature, single, result
        self.arguments = Arguments(function, signature)
        # A nested function may depend on variables of the outer one: only top-level functions of the package count.
        package = (function.__module__ or "").partition(".")[0]
        self.own = package == __name__.partition(".")[0] and function.__qualname__ == self.name
        self._of_call: Callable[[Any, Any, Any], Any] | None = getattr(result, "of_call", None)
        self._fields: tuple[str, ...] = getattr(result, "_fields", ())
        if result is not None and len(self._fields) != len(signature.outputs):
            raise SignatureError(
                f"{self.name}: {result.__name__} has the fields {', '.join(self._fields) or 'none'}; it must be a "
                f"NamedTuple with a field for each of the {len(signature.outputs)} output(s).",
                code="bad-signature",
            )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def doc(self) -> str:
        """The docstring of the function."""
        return inspect.getdoc(self.function) or ""

    def operands(self, model: Any, inputs: tuple[str, ...], outputs: tuple[str, ...] = ()) -> Operands:
        """Inputs, including the optional `inputs`, and outputs, all or the requested ones, with a model's sizes."""
        names = tuple(name for name in inputs if name != PARAMETERS)
        try:
            ins, outs = self.signature.resolve(model, self.arguments.arrays, names)
        except SignatureError as error:
            raise SignatureError(f"{self.name}: {error}{self.arguments.usage}", code=error.code) from None
        if self._fields:
            outs = tuple(replace(operand, name=name) for operand, name in zip(outs, self._fields, strict=True))
        if outputs:
            outs = tuple(outs[self._fields.index(name)] for name in outputs)
        if self.signature.groups:
            count = len(self.arguments.arrays)
            ins = (*ins[:count], *pack_operands(ins[count:], self.signature.groups))
        return (ins if names == inputs else (*ins, Operand(PARAMETERS, (model.nparameters,)))), outs

    def choose(self, outputs: Sequence[str] | None) -> tuple[str, ...]:
        """Names of requested outputs, checked, in the requested order; empty for all outputs."""
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs or ())
        unknown = [name for name in names if name not in self._fields]
        if unknown or len(set(names)) < len(names):
            valid = ", ".join(self._fields) or "none, since its results have no names"
            raise TypeError(f"{self.name} cannot return the outputs {names}; pass each of these at most once: {valid}.")
        return () if names == self._fields else names

    def case(
        self, model: Any, inputs: Sequence[str], options: dict[str, Any], outputs: Sequence[str] | None = None
    ) -> Case:
        """The case for one model, with optional inputs, outputs and options, all of them checked."""
        replacement, kind = self.arguments.meant(model), self.arguments.kind
        if self.own and kind is not None and not isinstance(replacement, (kind, Parametric)):
            raise SignatureError(
                f"{self.name} got a {type(model).__name__}.{hint(model)}{self.arguments.usage}", code="bad-signature"
            )
        names = self.arguments.ordered(replacement, inputs)
        complete = self.arguments.complete(replacement, options)
        duplicates = [name for name in names if name in complete]
        if duplicates:
            raise TypeError(
                f"{self.name} got a value for {duplicates[0]!r}, which is also listed in inputs=; omit one of them."
            )
        return Case(self, replacement, names, complete, self.choose(outputs))

    def name_results(
        self,
        values: tuple[Any, ...],
        model: Any,
        operands: Sequence[Operand],
        arrays: Sequence[Any],
        outputs: tuple[str, ...],
    ) -> Any:
        """The return value of a call: one array, a tuple, or an object of the class of results."""
        if self.result is None:
            return values[0] if len(values) == 1 else values
        if outputs:
            return _selection(self.result, outputs)(*values)
        of_call = self._of_call
        return self.result(*values) if of_call is None else of_call(values, model, by_names(operands, arrays))


@cache
def _selection(result: Result, outputs: tuple[str, ...]) -> Any:
    """The class of a subset of the results, by their names."""
    fields: Any = namedtuple(result.__name__, outputs)  # type: ignore[misc]
    reduction = {"__reduce__": lambda self: (_select, (result, outputs, *self))}  # pickle cannot import the class
    return type(result.__name__, (fields,), {"__slots__": (), "__doc__": result.__doc__, **reduction})


def _select(result: Result, outputs: tuple[str, ...], *values: Any) -> Any:
    return _selection(result, outputs)(*values)


def by_names(operands: Sequence[Operand], arrays: Sequence[Any]) -> dict[str, Any]:
    """Arrays by the names of their operands; structures are split into fields."""
    arrays_by_name: dict[str, Any] = {}
    for operand, x in zip(operands, arrays, strict=True):
        if operand.fields:
            arrays_by_name |= unpack(operand, x)
        else:
            arrays_by_name[operand.name] = x
    return arrays_by_name


@dataclass(frozen=True, eq=False)
class Case:
    """The function of a kernel for one model, with optional `inputs`, fixed `options`, and requested `outputs`; empty
    `outputs` are all of them."""

    definition: Definition
    model: Any
    inputs: tuple[str, ...]
    options: dict[str, Any]
    outputs: tuple[str, ...] = ()

    @cached_property
    def operands(self) -> Operands:
        """Inputs and outputs."""
        return self.definition.operands(self.model, self.inputs, self.outputs)

    @property
    def sorted_options(self) -> tuple[Any, ...]:
        """The options, sorted by name."""
        return tuple(sorted(self.options.items()))

    @cached_property
    def settings(self) -> Any:
        """A key for inputs, outputs and options."""
        for option, value in self.options.items():
            check_content_hash(self.definition.name, f"the option {option}", value)
        return self.inputs, self.outputs, exact(self.sorted_options)

    @property
    def key(self) -> Any:
        """A key for everything that determines the code, except the target."""
        settings = self.settings
        check_content_hash(self.definition.name, "the model", self.model)
        return exact(self.model, unread=not self.definition.own), settings

    def __call__(self, *arrays: Any) -> Any:
        """Call the function with arrays: positional arrays, then optional inputs, then parameters."""
        arguments = self.definition.arguments
        count = len(arguments.arrays)
        named_arrays = by_names(self.operands[0][count:], arrays[count:])
        model = self.model.with_parameters(named_arrays.pop(PARAMETERS)) if PARAMETERS in named_arrays else self.model
        options = dict(self.options)
        for name, default in arguments.defaults.items():
            if name not in named_arrays:
                named_arrays[name] = self._constant(name, options.pop(name, default))
        results = self.definition.function(
            model, *arrays[:count], **arguments.pack_structures({**named_arrays, **options})
        )
        return self._select(results) if self.outputs else results

    def _select(self, results: Any) -> tuple[Any, ...]:
        """The requested outputs among all results, which are checked; operations for the others are dead code."""
        operands = self.definition.operands(self.model, ())[1]
        parts = check_results(self.definition.name, results, operands, current())
        parts_by_name = {operand.name: part for operand, part in zip(operands, parts, strict=True)}
        return tuple(parts_by_name[name] for name in self.outputs)

    def _constant(self, name: str, value: Any) -> Any:
        """The constant for an optional input that is not an input of this case: an array of its shape, or None."""
        if value is None:
            return None
        shape = self.definition.signature.optional_shape(self.model, name)
        array = real_array(f"{self.definition.name}: {name}", value)
        try:
            return np.array(np.broadcast_to(array, shape)) if shape else array.item()
        except ValueError:
            raise wrong_shape(self.definition.name, name, array.shape, shape) from None

    def packed(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arrays of the optional operands, from values by name; a single number is used for all elements."""
        optional = self.operands[0][len(self.definition.arguments.arrays) :]
        return tuple(
            pack(
                self.definition.name, operand, [inputs[field_name(operand.name, field)] for field, _ in operand.fields]
            )
            if operand.fields
            else broadcast_input(inputs[operand.name], operand.shape)
            for operand in optional
        )

    def program(self, precision: Precision) -> Program:
        """The expression graph; a few functions choose their defaults by the precision."""
        inputs, outputs = self.operands
        with tracing_for(precision):
            return record(self.definition.name, lambda *arrays: tuple(self.inlined(arrays)), inputs, outputs)

    def inlined(self, arrays: Sequence[Any]) -> list[Any]:
        """The results during a trace, as a part of it."""
        call = (self.definition.function, self.model, self.inputs, self.outputs, self.sorted_options)
        results = inline(self.definition.name, call, self, arrays, *self.operands)
        return list(results) if isinstance(results, tuple) else [results]

    def on_numbers(self, arrays: Sequence[Any]) -> list[Any]:
        """The results for the numbers of one state, by the plain function."""
        name, (inputs, outputs) = self.definition.name, self.operands
        for x, operand in zip(arrays, inputs, strict=True):
            if contains_traced(x):
                raise TypeError(
                    f"{name}.python computes with numbers, and {operand.name} is traced: inside a kernel, call {name} "
                    "itself."
                )
        states = [np.array(x, float) for x in arrays]  # copies, since the function may change them
        for state, operand in zip(states, inputs, strict=True):
            if state.shape != operand.shape:
                raise InputError(
                    f"{name}.python takes one state: {operand.name} has shape {state.shape}, not {operand.shape}."
                )
        with plainly():
            return check_results(name, self(*states), outputs, None)

    def recipe(self, target: Target, quick_first: bool = True) -> Recipe:
        """The recipe for its machine code."""
        definition, (inputs, outputs) = self.definition, self.operands
        choice = (self.inputs, self.outputs, self.sorted_options)
        identity = (definition.function.__module__, self.model, *choice) if definition.own else None
        trace = partial(self.program, target.precision)
        return Recipe(definition.name, definition.doc, inputs, outputs, trace, identity, target, quick_first)
