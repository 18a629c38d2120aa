"""Signatures such as "(nq),(nv),(nv)->(nv)", in the notation of NumPy's gufuncs.

Sizes are integers or names; a name is looked up on the model.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeAlias

from delassus.compiler.graph.parameters import PARAMETERS
from delassus.compiler.graph.program import Operand, field_name, output_name
from delassus.compiler.host.inputs import (
    Bundle,
    Declared,
    Group,
    Input,
    SignatureError,
    as_group,
    expand_bundles,
)

Core: TypeAlias = tuple[str | int, ...]

_CORE = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIDE = rf"\s*{_CORE}\s*(?:,\s*{_CORE}\s*)*"
_SIGNATURE = re.compile(rf"({_SIDE})->({_SIDE})", re.ASCII)


@dataclass(frozen=True)
class Signature:
    """Core shapes of inputs and outputs. Sizes are integers, or names of attributes of the model.

    Attributes:
        inputs: Core shapes of positional arrays.
        outputs: Core shapes of outputs.
        optional: Core shapes of inputs that are passed by name. A field of a group has a dot in its name, such as
            "contact.friction"; a field of a bundle has none.
        shared: Names of the inputs that all states of a batch share.
        declared: Declarations of optional inputs, for those that have an `Input`.
        groups: Structures of optional inputs, by the names of their parameters.
        bundles: Bundles of optional inputs, by the names of their parameters.
    """

    inputs: tuple[Core, ...]
    outputs: tuple[Core, ...]
    optional: Mapping[str, Core] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    declared: Mapping[str, Input] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    bundles: Mapping[str, Bundle] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a signature."""
        match = _SIGNATURE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise SignatureError(
                f"the signature {text!r} cannot be read: write the core shape of each array in parentheses, inputs "
                "-> outputs, as in '(nq),(nv)->(nv)'; sizes are names on the model or integers, '()' is a scalar.",
                code="bad-signature",
            )
        inputs, outputs = (tuple(map(_core, re.findall(_CORE, side))) for side in match.groups())
        return cls(inputs, outputs)

    def with_optional(self, inputs: Mapping[str, Declared], shared: bool = False) -> Signature:
        """The signature with additional inputs that are passed by name; with `shared`, all states share them."""
        bundles = {name: declaration for name, declaration in inputs.items() if isinstance(declaration, Bundle)}
        inputs = expand_bundles(inputs)
        groups = {name: group for name, declaration in inputs.items() if (group := as_group(declaration)) is not None}
        if shared and groups:
            raise SignatureError(
                f"{min(groups)!r} is a structure, which cannot be shared; declare its fields by Input(…, shared=True)."
            )
        fields = {
            field_name(name, field): declaration
            for name, group in groups.items()
            for field, declaration in group.inputs.items()
        }
        # Fields replace their group; shared fields come last, like all shared inputs.
        shapes: dict[str, Any] = {}
        for name, declaration in inputs.items():
            shapes |= (
                {k: x for k, x in fields.items() if k.startswith(f"{name}.")} if name in groups else {name: declaration}
            )
        shared_fields = {name for name, declaration in fields.items() if declaration.shared}
        parsed, declared = dict(self.optional), dict(self.declared)
        for name in sorted(shapes, key=shared_fields.__contains__):
            declaration = shapes[name]
            core = declaration
            if isinstance(declaration, Input):
                core, declared[name] = declaration.core, declaration
            if not isinstance(core, str) or re.fullmatch(rf"\s*{_CORE}\s*", core, re.ASCII) is None:
                raise SignatureError(
                    f"the core shape {core!r} of the input {name!r} cannot be read: write '(n)'.", code="bad-signature"
                )
            parsed[name] = _core(core)
        all_shared = self.shared | (set(inputs) if shared else shared_fields)
        return replace(
            self,
            optional=parsed,
            shared=all_shared,
            declared=declared,
            groups={**self.groups, **groups},
            bundles={**self.bundles, **bundles},
        )

    def resolve(
        self, model: Any, names: Sequence[str], optional: Sequence[str] = ()
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Inputs, with those in `optional` last, and outputs with the model's sizes; `names` are those of arrays."""
        cores = [*zip(names, self.inputs, strict=True), *((name, self.optional[name]) for name in optional)]
        inputs = tuple(Operand(n, _shape(c, model), n in optional and n in self.shared) for n, c in cores)
        outputs = tuple(Operand(output_name(k), _shape(c, model)) for k, c in enumerate(self.outputs))
        return inputs, outputs

    def optional_shape(self, model: Any, name: str) -> tuple[int, ...]:
        """The core shape of an optional input, with the model's sizes."""
        return _shape(self.optional[name], model)


def _core(text: str) -> Core:
    words = re.findall(r"\w+", text)
    return tuple(int(word) if word.isdecimal() else word for word in words)


def _shape(core: Core, model: Any) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else _size(model, size) for size in core)


def hint(model: Any) -> str:
    """A remedy for a call with the name of a model instead of a model; else an empty string."""
    is_name = isinstance(model, (str, PathLike))
    return f" A kernel takes the model itself: delassus.load({str(model)!r})." if is_name else ""


def _size(model: Any, name: str) -> int:
    try:
        size = operator.index(getattr(model, name))
    except AttributeError:
        raise SignatureError(
            f"the signature has the size {name!r}, but {type(model).__name__} has no such attribute.{hint(model)}",
            code="bad-signature",
        ) from None
    except TypeError:
        raise SignatureError(
            f"the size {name!r} of this model is {getattr(model, name)!r}; it must be an integer.",
            code="bad-signature",
        ) from None
    if size < 0:
        raise SignatureError(
            f"the size {name!r} of this model is {size}; it must not be negative.", code="bad-signature"
        )
    return size


def parameters_of(function: Callable[..., Any], signature: Signature) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The name of the model, the names of the arrays, and keywords with defaults; bundles are replaced by fields."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    if len(positional) + len(by_keyword) != len(parameters):
        raise SignatureError(
            f"{function.__name__}: a kernel has a fixed number of arrays; replace *args and **kwargs by parameters.",
            code="bad-signature",
        )
    keywords = _expand_defaults(function.__name__, [p.name for p in positional], by_keyword, signature.bundles)
    for name in dict.fromkeys(name.partition(".")[0] for name in signature.optional):
        if name not in keywords:
            raise SignatureError(
                f"{function.__name__}: the optional input {name!r} needs a keyword-only parameter of that name.",
                code="bad-signature",
            )
    for name, group in signature.groups.items():
        _check_default(function.__name__, name, group, keywords[name])
    reserved = {"self", "model", "out", "target", "dtype", "inputs", "outputs", PARAMETERS} & {
        *keywords,
        *signature.bundles,
    }
    if reserved:
        raise SignatureError(
            f"{function.__name__}: the option name {reserved.pop()!r} is reserved: calls of all kernels have an "
            "argument of this name.",
            code="bad-signature",
        )
    names = tuple(p.name for p in positional[1:])
    if not positional or len(names) != len(signature.inputs):
        raise SignatureError(
            f"{function.__name__} takes {len(positional)} positional parameter(s); its signature needs a model and "
            f"{len(signature.inputs)} array(s).",
            code="bad-signature",
        )
    return positional[0].name, names, keywords


def _expand_defaults(
    function: str, positional: list[str], parameters: list[inspect.Parameter], bundles: Mapping[str, Bundle]
) -> dict[str, Any]:
    """Keyword-only parameters with their defaults; bundles are replaced by their fields."""
    keywords: dict[str, Any] = {}
    for parameter in parameters:
        name, bundle = parameter.name, bundles.get(parameter.name)
        fields = {name: parameter.default} if bundle is None else bundle.defaults
        duplicate = next((field for field in fields if field in keywords or field in positional), None)
        if duplicate is not None:
            raise SignatureError(f"{function}: two parameters have the name {duplicate!r}: rename one of them.")
        if bundle is not None and parameter.default not in (inspect.Parameter.empty, bundle.kind()):
            raise SignatureError(
                f"{function}: the default of {name!r} is {parameter.default!r}; it must be "
                f"{bundle.kind.__name__}(), because fields have the defaults of their class."
            )
        keywords |= fields
    missing = next((name for name in bundles if name not in {p.name for p in parameters}), None)
    if missing is not None:
        raise SignatureError(f"{function}: the bundle {missing!r} needs a keyword-only parameter of that name.")
    return keywords


def _check_default(function: str, name: str, group: Group, default: Any) -> None:
    """Raise an error if the default of a structure's parameter differs from the structure without arguments."""
    if default in (None, inspect.Parameter.empty):
        return
    if not isinstance(default, group.kind) or group.nondefault_fields(default):
        raise SignatureError(
            f"{function}: the default of {name!r} is {default!r}; it must be {group.kind.__name__}() "
            "without arguments, because fields have the defaults of their class."
        )


def default_of(function: str, signature: Signature, name: str, parameter_default: Any) -> Any:
    """The default of an optional input, from its declaration or its parameter; `inspect.Parameter.empty` if it is
    required."""
    if "." in name:
        return signature.declared[name].default
    nothing = inspect.Parameter.empty
    declared = signature.declared[name].default if name in signature.declared else nothing
    if parameter_default is nothing:
        if declared is nothing and name not in signature.shared:
            raise SignatureError(
                f"{function}: the optional input {name!r} needs a default: None if the function works without it, "
                "or numbers.",
                code="bad-signature",
            )
        return declared
    if declared is not nothing and declared is not None and declared != parameter_default:
        raise SignatureError(
            f"{function}: the optional input {name!r} has two defaults, {parameter_default!r} and {declared!r}: remove "
            "one of them.",
            code="bad-signature",
        )
    return parameter_default
