"""Reads the arguments of a kernel call: the model, arrays by position or name, optional inputs, options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.parameters import PARAMETERS, Parametric
from delassus.compiler.graph.program import Operand, field_name
from delassus.compiler.host.inputs import Bundle, Group, packer
from delassus.compiler.host.signature import Signature, default_of, parameters_of
from delassus.compiler.tracing.array import contains_traced
from delassus.errors import BadArgument

NOT_GIVEN: Final[Any] = inspect.Parameter.empty

STANDS_FOR: Final = "__kernel_model__"
"""The name of an attribute of a model, which replaces the model in kernels for another class.

A kernel whose first parameter is annotated with the class of this attribute also accepts the model. For a model with
parameters, the replacement has the same parameters.
"""


class Arguments:
    """Reads the arguments of a kernel.

    Attributes:
        kernel: The kernel's name, for messages.
        model: The name of its first parameter.
        arrays: The names of its positional arrays.
        optional: The names of inputs that are passed by name, in the order of the operands after the arrays.
        groups: Structures of such inputs, by the names of their parameters; their fields are in `optional`.
        bundles: Parameters of the function that combine several such inputs.
        required: The core shapes of the inputs in `optional` that have no default.
        defaults: The defaults of the others.
        options: Options with their defaults.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.kernel = function.__name__
        self.model, self.arrays, keywords = parameters_of(function, signature)
        self.optional, self.groups, self.bundles = tuple(signature.optional), signature.groups, signature.bundles
        defaults = {name: default_of(self.kernel, signature, name, keywords.get(name)) for name in self.optional}
        self.defaults = {name: value for name, value in defaults.items() if value is not NOT_GIVEN}
        self.required = {name: core for name, core in signature.optional.items() if name not in self.defaults}
        self._readers = {
            name: declaration.read for name, declaration in signature.declared.items() if declaration.read is not None
        }
        self._shared = signature.shared
        inputs = {name.partition(".")[0] for name in self.optional}
        self.options = {name: frozen(self.kernel, name, x) for name, x in keywords.items() if name not in inputs}
        self._known = frozenset((*self.optional, *self.groups, *self.bundles, PARAMETERS))
        self._function = function

    def arrange(
        self, model: Any, arrays: tuple[Any, ...], arguments: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The model, all positional arrays in order, and the other keyword arguments.

        `arguments` are those passed by name; the model and positional arrays may be among them.
        """
        keywords = dict(arguments)
        if self.model in keywords:
            if model is not NOT_GIVEN:
                raise TypeError(f"{self.kernel} got its model twice, by position and by name.")
            model = keywords.pop(self.model)
        if model is NOT_GIVEN:
            raise TypeError(f"{self.kernel} needs its model, the first argument.")
        # The name PARAMETERS is reserved for parameters of models: a positional array of this name has no keyword.
        by_name = {name: keywords.pop(name) for name in self.arrays if name in keywords and name != PARAMETERS}
        for name in self.arrays[: len(arrays)]:
            if name in by_name:
                raise TypeError(f"{self.kernel} got the array {name!r} twice, by position and by name.")
        rest = self.arrays[len(arrays) :]
        missing = [name for name in rest if name not in by_name]
        if missing or len(arrays) > len(self.arrays):
            self._check_names([name for name in keywords if name not in self._known])
            array_names = ", ".join(self.arrays)
            if by_name:
                raise TypeError(f"{self.kernel} needs the array {missing[0]!r}; its arrays are {array_names}.")
            names = ", ".join(f"{name}=" for name in self.options) if len(arrays) > len(self.arrays) else ""
            hint = f" Pass options by name: {names}." if names else ""
            raise TypeError(f"{self.kernel} takes {len(self.arrays)} arrays ({array_names}), got {len(arrays)}.{hint}")
        return model, (*arrays, *(by_name[name] for name in rest)), keywords

    def split(self, model: Any, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split keyword arguments into optional inputs, in the kernel's order with parameters last, and options."""
        for name in keywords:
            if "." in name:
                raise TypeError(f"{self.kernel} takes {name} as a field of {name.partition('.')[0]}=.")
        fields = self.expand(keywords)
        inputs = {name: self.read(model, name, fields[name]) for name in self.optional if fields.get(name) is not None}
        options = {name: value for name, value in fields.items() if name not in self.optional}
        for name, core in self.required.items():
            if name not in inputs:
                raise TypeError(f"{self.kernel} needs the shared array {name}= of shape ({', '.join(map(str, core))}).")
        parameters = options.pop(PARAMETERS, None)
        if isinstance(model, Parametric):
            if parameters is None:
                raise TypeError(
                    f"{self.kernel}: this model has {model.nparameters} parameters: pass an array "
                    f"(…, {model.nparameters}) as {PARAMETERS}=."
                )
            inputs[PARAMETERS] = parameters
        elif parameters is not None:
            raise TypeError(f"{self.kernel} got {PARAMETERS}=, but this {type(model).__name__} has no parameters.")
        return inputs, options

    def expand(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments, with bundles and structures replaced by their fields that are set."""
        keywords = self.unbundle(keywords)
        if not any(name in self.groups for name in keywords):
            return keywords
        fields: dict[str, Any] = {}
        for name, group in self.groups.items():
            value = keywords.get(name)
            for field in () if value is None else self._set_fields(name, group, value):
                fields[field_name(name, field)] = getattr(value, field)
        return {**{name: value for name, value in keywords.items() if name not in self.groups}, **fields}

    def unbundle(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments, with bundles replaced by their fields that are set."""
        if self.bundles.keys().isdisjoint(keywords):
            return keywords
        fields = {name: value for name, value in keywords.items() if name not in self.bundles}
        for name, bundle in self.bundles.items():
            value = keywords.get(name)
            for field in () if value is None else self._set_fields(name, bundle, value):
                if fields.get(field) is not None:
                    raise BadArgument(
                        f"{self.kernel} got {field} twice, by its name and as a field of {name}: omit one of them.",
                        code="conflicting-arguments",
                    )
                fields[field] = getattr(value, field)
        return fields

    def _set_fields(self, name: str, holder: Group | Bundle, value: Any) -> Iterable[str]:
        """The names of the fields that are set in an object of a structure or a bundle, checked."""
        kind = holder.kind.__name__
        if not isinstance(value, holder.kind):
            raise TypeError(
                f"{self.kernel}: {name} is a {kind}, not a {type(value).__name__}: give "
                f"{name}={kind}({next(iter(holder.fields))}=…)."
            )
        fields = holder.nondefault_fields(value)
        for field in fields:
            if field not in holder.fields:
                raise TypeError(
                    f"{self.kernel} does not take {field_name(name, field)}; the fields of {name} that it takes are "
                    f"{', '.join(holder.fields)}."
                )
        return fields

    def pack_structures(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of the function: structures and bundles are created from the values of their fields."""
        keywords = {name: value for name, value in values.items() if "." not in name}
        for name, group in self.groups.items():
            keywords[name] = group.kind(**{field: values[field_name(name, field)] for field in group.inputs})
        for name, bundle in self.bundles.items():
            keywords[name] = bundle.kind(**{field: keywords.pop(field) for field in bundle.fields})
        return keywords

    def reader(self, model: Any, operand: Operand) -> Callable[[Any], Any] | None:
        """A function that converts the argument of an operand to an array; None if no conversion is needed."""
        group, _, shared = operand.name.partition(".")
        if group not in self.groups:
            return self._reader(model, operand.name)
        fields = [shared] if shared else [field for field, _ in operand.fields]
        readers = [(field, self._reader(model, field_name(group, field))) for field in fields]
        pack = packer(self.kernel, operand)

        def read(value: Any) -> Any:
            values = [
                getattr(value, field) if convert is None else convert(getattr(value, field))
                for field, convert in readers
            ]
            return values[0] if shared else pack(values)

        return read

    def _reader(self, model: Any, name: str) -> Callable[[Any], Any] | None:
        read = self._readers.get(name)
        return None if read is None else partial(read, self.meant(model))

    def read(self, model: Any, name: str, value: Any) -> Any:
        """An optional input as an array; traced values are unchanged."""
        reader = self._reader(model, name)
        return value if reader is None or contains_traced(value) else reader(value)

    def ordered(self, model: Any, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of optional inputs, checked, in the kernel's order; parameters of a parametric model come last."""
        parameters = (PARAMETERS,) if isinstance(model, Parametric) else ()
        if not inputs and not self.required:
            return parameters
        names = [name for name in ([inputs] if isinstance(inputs, str) else inputs) if name not in parameters]
        names += [name for name in self.required if name not in names]
        unknown = [name for name in names if name not in self.optional]
        if unknown or len(set(names)) < len(names):
            valid = ", ".join(self.optional) or "none"
            raise TypeError(
                f"{self.kernel} cannot take the optional inputs {tuple(names)}; pass each of these at most once: "
                f"{valid}."
            )
        return (*(name for name in self.optional if name in names), *parameters)

    def complete(self, model: Any, options: dict[str, Any]) -> dict[str, Any]:
        """All options, with defaults, and optional inputs that are compiled in as constants; arrays as tuples."""
        if not options:
            complete = self.options
        else:
            options = self.expand(options)
            self._check_names(options)
            values = {name: self.read(model, name, x) if name in self.optional else x for name, x in options.items()}
            complete = {**self.options, **{name: frozen(self.kernel, name, x) for name, x in values.items()}}
        for name, value in complete.items():
            if value is NOT_GIVEN:
                raise TypeError(f"{self.kernel} needs a value for the option {name!r}.")
        for name, value in options.items():
            if isinstance(self.options.get(name), bool) and not isinstance(complete[name], (bool, np.bool_)):
                raise TypeError(f"{self.kernel}: the option {name} is {value!r}; it must be True or False.")
        return complete

    def meant(self, model: Any) -> Any:
        """The model for the function: its replacement (`STANDS_FOR`) if its class is not that of the function."""
        if self.kind is None or isinstance(model, self.kind):
            return model
        replacement = getattr(model, STANDS_FOR, None)
        return replacement if isinstance(replacement, (self.kind, Parametric)) else model

    @property
    def usage(self) -> str:
        """A sentence with the class of the model; empty if the function has no annotation."""
        kind: Any = inspect.signature(self._function).parameters[self.model].annotation
        is_annotated = kind not in (Any, "Any", inspect.Parameter.empty)
        return f" Its first argument is a {getattr(kind, '__name__', kind)}." if is_annotated else ""

    @cached_property
    def kind(self) -> Any:
        """The annotated class of the model; None without an annotation, or for one that does not support isinstance."""
        try:
            kind = typing.get_type_hints(self._function).get(self.model, Any)
            isinstance(None, kind)
        except (NameError, TypeError, AttributeError, SyntaxError):
            return None
        return kind

    def _check_names(self, names: Iterable[str]) -> None:
        """Raise an error if one of the names is not that of an option or an optional input."""
        for name in names:
            if name in self.arrays:
                raise TypeError(f"{name!r} is an array of {self.kernel}, not an option: pass arrays by position.")
            if name in self._shared:
                raise TypeError(f"{name!r} is an array of {self.kernel}, not an option: name it in inputs=({name!r},).")
            if name not in self.options and name not in self.optional:
                valid = ", ".join((*self.options, *self.bundles, *self.optional)) or "none"
                array_names = ", ".join(self.arrays)
                raise TypeError(
                    f"{self.kernel} has no option {name!r}; its options are: {valid}; its arrays are {array_names}."
                )


def frozen(kernel: str, name: str, value: Any) -> Any:
    """The value of an option, with arrays and lists as tuples, since values that are compiled in must not change."""
    if type(value) in (tuple, list):
        return tuple(frozen(kernel, name, item) for item in value)
    if type(value) is not np.ndarray:
        return value
    if value.dtype.kind not in "biufcUS":
        raise TypeError(
            f"{kernel}: the option {name} is an array of dtype {value.dtype}; an option can be an array of numbers, "
            "booleans or text."
        )
    return _tuples(value.tolist())


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
