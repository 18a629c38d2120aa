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
"""The attribute of a model that replaces it in kernels for another type of model: a kernel whose first parameter is
annotated with the class of that attribute also accepts the model. For a model with parameters, the replacement has the
same parameters.
"""


class Arguments:
    """How the arguments of a kernel are read.

    Attributes:
        kernel: The kernel's name, for messages.
        model: The name of its first parameter.
        arrays: The names of the arrays that it always takes.
        optional: The names of those that may be given or not, in the order in which they come after the others.
        groups: The structures among them, by the names of their parameters; their fields are in `optional`.
        bundles: Parameters of the function that hold several of them.
        required: The core shapes of those among them that have to be given.
        defaults: What the others are where they are not given.
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
        self, model: Any, arrays: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The model, the arrays and what else is given, once those that were given by name are in their places."""
        keywords = dict(given)
        if self.model in keywords:
            if model is not NOT_GIVEN:
                raise TypeError(f"{self.kernel} got its model twice, by position and by name.")
            model = keywords.pop(self.model)
        if model is NOT_GIVEN:
            raise TypeError(f"{self.kernel} needs its model, the first argument.")
        # An array of the name that all models with parameters use is given by its place.
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

    def split(self, model: Any, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Optional inputs that are given, in the kernel's order, then the model's parameters; and options."""
        for name in given:
            if "." in name:
                raise TypeError(f"{self.kernel} takes {name} as a field of {name.partition('.')[0]}=.")
        given = self.expand(given)
        inputs = {name: self.read(model, name, given[name]) for name in self.optional if given.get(name) is not None}
        options = {name: value for name, value in given.items() if name not in self.optional}
        for name, core in self.required.items():
            if name not in inputs:
                raise TypeError(f"{self.kernel} needs the shared array {name}= of shape ({', '.join(map(str, core))}).")
        parameters = options.pop(PARAMETERS, None)
        if isinstance(model, Parametric):
            if parameters is None:
                raise TypeError(
                    f"{self.kernel}: this model has {model.nparameters} parameters: give an array "
                    f"(…, {model.nparameters}) as {PARAMETERS}=."
                )
            inputs[PARAMETERS] = parameters
        elif parameters is not None:
            raise TypeError(f"{self.kernel} got {PARAMETERS}=, but this {type(model).__name__} has no parameters.")
        return inputs, options

    def expand(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is given by name, bundles and structures as the fields that they give."""
        given = self.unbundle(given)
        if not any(name in self.groups for name in given):
            return given
        fields: dict[str, Any] = {}
        for name, group in self.groups.items():
            value = given.get(name)
            for field in () if value is None else self._fields_given(name, group, value):
                fields[field_name(name, field)] = getattr(value, field)
        return {**{name: value for name, value in given.items() if name not in self.groups}, **fields}

    def unbundle(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is given by name, bundles as the fields that they give."""
        if self.bundles.keys().isdisjoint(given):
            return given
        keywords = {name: value for name, value in given.items() if name not in self.bundles}
        for name, bundle in self.bundles.items():
            value = given.get(name)
            for field in () if value is None else self._fields_given(name, bundle, value):
                if keywords.get(field) is not None:
                    raise BadArgument(
                        f"{self.kernel} got {field} twice, by its name and as a field of {name}: leave one of them "
                        "out.",
                        code="conflicting-arguments",
                    )
                keywords[field] = getattr(value, field)
        return keywords

    def _fields_given(self, name: str, holder: Group | Bundle, value: Any) -> Iterable[str]:
        """The names of the fields that an object gives for a structure or a bundle, checked."""
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

    def pack_structures(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the function gets by name: the fields of each structure and of each bundle in it."""
        found = {name: value for name, value in given.items() if "." not in name}
        for name, group in self.groups.items():
            found[name] = group.kind(**{field: given[field_name(name, field)] for field in group.inputs})
        for name, bundle in self.bundles.items():
            found[name] = bundle.kind(**{field: found.pop(field) for field in bundle.fields})
        return found

    def reader(self, model: Any, operand: Operand) -> Callable[[Any], Any] | None:
        """What makes an array of what a user gives for an operand; None if it is taken as it is."""
        group, _, shared = operand.name.partition(".")
        if group not in self.groups:
            return self._reader(model, operand.name)
        fields = [shared] if shared else [field for field, _ in operand.fields]
        readers = [(field, self._reader(model, field_name(group, field))) for field in fields]
        pack = packer(self.kernel, operand)

        def read(value: Any) -> Any:
            values = [getattr(value, field) if make is None else make(getattr(value, field)) for field, make in readers]
            return values[0] if shared else pack(values)

        return read

    def _reader(self, model: Any, name: str) -> Callable[[Any], Any] | None:
        read = self._readers.get(name)
        return None if read is None else partial(read, self.meant(model))

    def read(self, model: Any, name: str, value: Any) -> Any:
        """An optional input from what a user gives for it."""
        reader = self._reader(model, name)
        return value if reader is None or contains_traced(value) else reader(value)

    def ordered(self, model: Any, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of optional inputs, checked, in the kernel's order; the parameters of a model that has some last."""
        last = (PARAMETERS,) if isinstance(model, Parametric) else ()
        if not inputs and not self.required:
            return last
        names = [name for name in ([inputs] if isinstance(inputs, str) else inputs) if name not in last]
        names += [name for name in self.required if name not in names]
        unknown = [name for name in names if name not in self.optional]
        if unknown or len(set(names)) < len(names):
            valid = ", ".join(self.optional) or "none"
            raise TypeError(
                f"{self.kernel} cannot take the optional inputs {tuple(names)}; pass each of these at most once: "
                f"{valid}."
            )
        return (*(name for name in self.optional if name in names), *last)

    def complete(self, model: Any, options: dict[str, Any]) -> dict[str, Any]:
        """The options with their defaults, and optional inputs whose numbers are to be constants; arrays as tuples."""
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
                raise TypeError(f"{self.kernel}: the option {name} is True or False, not {value!r}.")
        return complete

    def meant(self, model: Any) -> Any:
        """The model that the function gets: what stands for it, if it is not of the kind that the function asks for."""
        if self.kind is None or isinstance(model, self.kind):
            return model
        replacement = getattr(model, STANDS_FOR, None)
        return replacement if isinstance(replacement, (self.kind, Parametric)) else model

    @property
    def usage(self) -> str:
        """A sentence that says what the model is to be; empty if the function does not say."""
        kind: Any = inspect.signature(self._function).parameters[self.model].annotation
        is_annotated = kind not in (Any, "Any", inspect.Parameter.empty)
        return f" Its first argument is a {getattr(kind, '__name__', kind)}." if is_annotated else ""

    @cached_property
    def kind(self) -> Any:
        """What the function says that its model is; None if it does not say, or nothing can be told to be of it."""
        try:
            kind = typing.get_type_hints(self._function).get(self.model, Any)
            isinstance(None, kind)
        except (NameError, TypeError, AttributeError, SyntaxError):
            return None
        return kind

    def _check_names(self, given: Iterable[str]) -> None:
        """Raise if one of some names is not that of an option."""
        for name in given:
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
    """The value of an option, arrays and lists as tuples: what is compiled for must not change afterwards."""
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
