"""Optional inputs of a kernel: arrays, and structures of arrays, passed by name.

A structure is an object of a `NamedTuple` or of a frozen dataclass whose fields are arrays, such as the parameters of a
contact. The kernel's function receives it with traced fields. The fields passed in a call are packed on the host into
one operand, each flattened, in the order of the class: a ufunc takes at most 64 operands. Fields with default values
are constants of the compiled code, like omitted optional inputs.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np

from delassus.common.checks import real_array
from delassus.compiler.graph.program import Operand, field_name
from delassus.compiler.tracing.array import Array, contains_traced
from delassus.compiler.tracing.trace import current
from delassus.errors import BadArgument

_NO_DEFAULT: Final[Any] = object()
_FLOATS: Final = np.dtype(float)


class SignatureError(BadArgument):
    """A kernel's signature is invalid, or does not fit its function or its model."""

    code = "bad-signature"


class InputError(BadArgument):
    """An input of a kernel has an invalid value."""

    code = "wrong-shape"


@dataclass(frozen=True)
class Input:
    """An array that a kernel accepts by name, and that may be optional.

    Attributes:
        core: Core shape for one state, such as "(nv)".
        default: Default value, a number or several: constants of the compiled code. None passes None to the function.
            The default may instead be that of the function's parameter.
        read: Converts an argument to an array, or checks it; a function of the model and the argument. It is not
            called for traced values.
        shared: Whether all states of a batch share the array. For fields of a `Group`; other shared arrays are
            declared in `shared=` of a kernel.

    >>> dl.compiler.Input("(m)").core
    '(m)'
    """

    core: str
    default: Any = None
    read: Callable[[Any, Any], Any] | None = None
    shared: bool = False


class Group:
    """A structure of optional inputs.

        class Contact(NamedTuple):
            friction: Annotated[Any, Input("(contacts)")] = 0.5
            restitution: Annotated[Any, Input("(contacts)")] = None

        @kernel("(n)->(n)", inputs={"contact": Contact})
        def advance(model, x, *, contact): ...

        advance(model, x, contact=Contact(friction=0.7))

    `Group(Contact, friction="(feet)")` changes or adds core shapes of fields for one kernel, which accepts only
    declared fields. A field counts as passed unless it is None or equal to the default of its class.

    Attributes:
        kind: The class.
        inputs: The fields that a kernel accepts, in the order of the class, each with core shape and default.

    >>> from typing import Any, NamedTuple
    >>> class Line(NamedTuple):
    ...     slope: Any = 1.0
    >>> @dl.kernel("(2)->(2)", inputs={"line": dl.compiler.Group(Line, slope="()")})
    ... def evaluate(model, x, *, line):
    ...     return line.slope * x
    >>> evaluate("any", np.ones(2), line=Line(slope=3.0))
    array([3., 3.])
    """

    def __init__(self, kind: type[Any], /, **fields: str | Input) -> None:
        self.kind = kind
        defaults = _class_defaults(kind)
        for name in fields:
            if name not in defaults:
                raise SignatureError(f"{kind.__name__} has no field {name!r}; its fields are {', '.join(defaults)}.")
        declared = {name: Input(x) if isinstance(x, str) else x for name, x in fields.items()}
        if len(declared) < len(defaults):
            declared = {**_declared_inputs(kind), **declared}
        self.inputs: dict[str, Input] = {}
        for name, default in defaults.items():
            if name in declared:
                self.inputs[name] = _with_default(f"{kind.__name__}.{name}", declared[name], default)
            elif default is _NO_DEFAULT or not declared:
                raise SignatureError(
                    f"{kind.__name__}.{name} has no core shape: annotate the field with Annotated[Any, Input('(n)')], "
                    f"or declare Group({kind.__name__}, {name}='(n)')."
                )
        self._class_defaults = tuple(defaults.items())

    @property
    def fields(self) -> Collection[str]:
        """The names of the fields that the kernel accepts."""
        return self.inputs

    def nondefault_fields(self, value: Any) -> tuple[str, ...]:
        """The names of the fields that are set in a structure: neither None nor the default of the class."""
        return tuple(
            [name for name, d in self._class_defaults if (x := getattr(value, name)) is not None and x is not d]
        )


class Bundle:
    """Optional inputs that the function of a kernel receives as one object; calls pass them one by one or together.

        class Rows(NamedTuple):
            mask: Any = None
            force: Any = None

        @kernel("(n)->(n)", inputs={"rows": Bundle(Rows, mask="(m)", force="(m)")})
        def solve(model, x, *, rows=Rows()): ...

        solve(model, x, mask=mask, force=force)
        solve(model, x, rows=Rows(mask, force))
        solve.specialize(model, inputs=("mask",))(x, mask)

    The fields of a `Group` are packed into one operand; each field of a bundle is an input with its own operand and
    name, and may be a structure. `Bundle(Rows, "method", mask="(m)")` also has an option, which is compiled in. Fields
    that are not declared are not accepted by the kernel: they keep the defaults of the class.

    Attributes:
        kind: The class, a NamedTuple or a frozen dataclass whose fields all have defaults.
        inputs: The declared inputs, in the order in which they are declared.
        defaults: Defaults of the accepted fields: inputs and options.

    >>> from typing import Any, NamedTuple
    >>> class Rows(NamedTuple):
    ...     scale: Any = 1.0
    >>> @dl.kernel("(2)->(2)", inputs={"rows": dl.compiler.Bundle(Rows, scale="()")})
    ... def scaled(model, x, *, rows=Rows()):
    ...     return rows.scale * x
    >>> scaled("any", np.ones(2), scale=3.0)
    array([3., 3.])
    """

    def __init__(self, kind: type[Any], /, *options: str, **inputs: Declared) -> None:
        self.kind, self.inputs = kind, inputs
        self._class_defaults = _class_defaults(kind)
        fields = (*inputs, *options)
        for name in fields:
            if self._class_defaults.get(name, _NO_DEFAULT) is _NO_DEFAULT:
                raise SignatureError(
                    f"{kind.__name__} has no field {name!r} with a default; fields of a bundle must have defaults."
                )
        self.defaults = {name: self._class_defaults[name] for name in fields}

    @property
    def fields(self) -> Collection[str]:
        """The names of the fields that the kernel accepts."""
        return self.defaults

    def nondefault_fields(self, value: Any) -> dict[str, Any]:
        """The fields that are set in an object: neither None nor the default of the class."""
        fields = ((name, getattr(value, name), default) for name, default in self._class_defaults.items())
        return {name: x for name, x, default in fields if x is not None and x is not default}


Declared: TypeAlias = str | Input | Group | Bundle | type[Any]
"""The declaration of an input: a core shape, an `Input`, a structure, or a bundle of inputs."""


def expand_bundles(inputs: Mapping[str, Declared]) -> dict[str, Declared]:
    """Declarations by name, with bundles replaced by their fields."""
    expanded: dict[str, Declared] = {}
    for name, declared in inputs.items():
        fields = declared.inputs if isinstance(declared, Bundle) else {name: declared}
        duplicate = next((field for field in fields if field in expanded or (field in inputs and field != name)), None)
        if duplicate is not None:
            raise SignatureError(f"two inputs have the name {duplicate!r}: rename one of them.")
        expanded |= fields
    return expanded


def as_group(declared: Declared) -> Group | None:
    """The group that a class or a `Group` declares; None for the core shape of an array."""
    return Group(declared) if isinstance(declared, type) else declared if isinstance(declared, Group) else None


def _class_defaults(kind: type[Any]) -> dict[str, Any]:
    """The fields of a class with their defaults."""
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and names is not None:
        defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
        return {name: defaults.get(name, _NO_DEFAULT) for name in names}
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise SignatureError(
            f"{kind.__name__} is not a structure of inputs; make it a NamedTuple or a frozen dataclass."
        )
    missing = dataclasses.MISSING
    fields = [f for f in dataclasses.fields(kind) if f.init]
    return {f.name: _NO_DEFAULT if f.default is missing else f.default for f in fields}


def _declared_inputs(kind: type[Any]) -> dict[str, Input]:
    """The inputs that the annotations of a class declare."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise SignatureError(f"the annotations of {kind.__name__} cannot be read: {error}.") from None
    metadata = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: x for name, items in metadata.items() for x in items if isinstance(x, Input)}


def _with_default(name: str, declared: Input, default: Any) -> Input:
    """The declaration of a field, with the default of its class."""
    if default is _NO_DEFAULT or default is None:
        return declared
    if declared.default is not None and declared.default != default:
        raise SignatureError(f"{name} has two defaults, {default!r} and {declared.default!r}: remove one of them.")
    return replace(declared, default=default)


def pack_operands(operands: Iterable[Operand], groups: Mapping[str, Group]) -> tuple[Operand, ...]:
    """Operands with the fields of each group packed into one; shared fields remain separate operands."""
    packed: dict[str, Operand] = {}
    for operand in operands:
        group, _, field = operand.name.partition(".")
        if operand.shared or not field or group not in groups:
            packed[operand.name] = operand
            continue
        partial_group = packed.get(group, Operand(group, (0,)))
        size = partial_group.size + operand.size
        packed[group] = Operand(group, (size,), fields=(*partial_group.fields, (field, operand.shape)))
    return tuple(packed.values())


def packer(kernel: str, operand: Operand) -> Callable[[Sequence[Any]], Any]:
    """A function that packs the values of a group's fields into its operand (…, size), with broadcast batch axes.

    For traced values, the operand is a traced array.
    """
    slices = [(slice(start, stop), shape) for start, stop, _, shape in _layout(operand)]
    size = operand.size

    def pack(values: Sequence[Any]) -> Any:
        packed = np.empty(size)
        for (target, shape), x in zip(slices, values, strict=True):
            if type(x) is float:
                packed[target] = x
            elif type(x) is np.ndarray and x.shape == shape and x.dtype is _FLOATS:
                packed[target] = x if x.ndim == 1 else x.ravel()
            else:  # batches, and other types of arguments
                return _pack_operand(kernel, operand, values)
        return packed

    return pack


def pack(kernel: str, operand: Operand, values: Sequence[Any]) -> Any:
    """The operand of a group; see `packer`."""
    return packer(kernel, operand)(values)


def _layout(operand: Operand) -> list[tuple[int, int, str, tuple[int, ...]]]:
    """For each field: start and end in the operand, name, and shape."""
    offsets = list(accumulate((math.prod(shape) for _, shape in operand.fields), initial=0))
    return [(*offsets[k : k + 2], *field) for k, field in enumerate(operand.fields)]  # type: ignore[misc]


def _pack_operand(kernel: str, operand: Operand, values: Sequence[Any]) -> Any:
    if contains_traced(list(values)):
        return _pack_traced(kernel, operand, values)
    parts, batch = [], ()  # type: list[tuple[slice, Any]], tuple[int, ...]
    for (start, stop, field, shape), value in zip(_layout(operand), values, strict=True):
        array = real_array(f"{kernel}: {field_name(operand.name, field)}", value)
        lead = max(array.ndim - len(shape), 0)
        if array.ndim and array.shape[lead:] != shape:
            raise wrong_shape(kernel, field_name(operand.name, field), array.shape, shape)
        if lead:
            batch = _common_batch(kernel, operand, field, batch, array.shape[:lead])
        flat = array.reshape((*array.shape[:lead], stop - start)) if array.ndim else array
        parts.append((slice(start, stop), flat))
    packed = np.empty((*batch, operand.size))
    for target, flat in parts:
        packed[..., target] = flat
    return packed


def _pack_traced(kernel: str, operand: Operand, values: Sequence[Any]) -> Any:
    """Pack traced fields. There are no batch axes, and no operations: elements are only rearranged."""
    trace: Any = current()
    ids = []
    for (field, shape), value in zip(operand.fields, values, strict=True):
        array = trace.lift(value)
        if array.ndim and array.shape != shape:
            raise wrong_shape(kernel, field_name(operand.name, field), array.shape, shape)
        array = array.astype(float) if array.truths else array
        ids.append(np.broadcast_to(array.ids, shape).ravel())
    return Array(trace, np.concatenate(ids))


def unpack(operand: Operand, array: Any) -> dict[str, Any]:
    """The fields of a group by their full names, as slices of its operand (…, size)."""
    return {
        field_name(operand.name, field): array[..., start:stop].reshape((*array.shape[:-1], *shape))
        for start, stop, field, shape in _layout(operand)
    }


def wrong_shape(kernel: str, name: str, shape: tuple[int, ...], core: tuple[int, ...]) -> InputError:
    """The error of an input whose shape does not end in its core shape."""
    expected = f"(…, {', '.join(map(str, core))})" if core else "(…)"
    return InputError(f"{kernel}: {name} has shape {shape}; it needs {expected}, or one number for all elements.")


def _common_batch(
    kernel: str, operand: Operand, field: str, batch: tuple[int, ...], lead: tuple[int, ...]
) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(batch, lead)
    except ValueError:
        raise InputError(
            f"{kernel}: {field_name(operand.name, field)} has the batch axes {lead}, which do not broadcast with "
            f"{batch} of the fields before it."
        ) from None
