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
    """Core shapes of inputs and outputs, with names where the model decides; `optional` inputs by their own names.

    Those named in `shared` are read in place by all states of a batch; `declared` is what else is known of optional
    ones. A field of one of the `groups` is an optional input with a dot in its name, such as "contact.friction"; one
    of the `bundles` is an optional input by its own name.
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
        """The signature with inputs that are given by name, if at all: their core shapes; whether they are shared."""
        bundles = {name: declaration for name, declaration in inputs.items() if isinstance(declaration, Bundle)}
        inputs = expand_bundles(inputs)
        groups = {name: group for name, declaration in inputs.items() if (group := as_group(declaration)) is not None}
        if shared and groups:
            raise SignatureError(f"{min(groups)!r} is a structure: its fields are shared by Input(…, shared=True).")
        fields = {
            field_name(name, field): declaration
            for name, group in groups.items()
            for field, declaration in group.inputs.items()
        }
        # Fields take the place of their group; shared ones come last, as all shared inputs do.
        shapes: dict[str, Any] = {}
        for name, declaration in inputs.items():
            shapes |= (
                {k: x for k, x in fields.items() if k.startswith(f"{name}.")} if name in groups else {name: declaration}
            )
        last = {name for name, declaration in fields.items() if declaration.shared}
        parsed, declared = dict(self.optional), dict(self.declared)
        for name in sorted(shapes, key=last.__contains__):
            declaration = shapes[name]
            core = declaration
            if isinstance(declaration, Input):
                core, declared[name] = declaration.core, declaration
            if not isinstance(core, str) or re.fullmatch(rf"\s*{_CORE}\s*", core, re.ASCII) is None:
                raise SignatureError(
                    f"the core shape {core!r} of the input {name!r} cannot be read: write '(n)'.", code="bad-signature"
                )
            parsed[name] = _core(core)
        together = self.shared | (set(inputs) if shared else last)
        return replace(
            self,
            optional=parsed,
            shared=together,
            declared=declared,
            groups={**self.groups, **groups},
            bundles={**self.bundles, **bundles},
        )

    def resolve(
        self, model: Any, names: Sequence[str], optional: Sequence[str] = ()
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Inputs (those named in `optional` last) and outputs with the model's sizes; `names` are for messages."""
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
    """What to do if somebody names a model instead of giving it."""
    is_name = isinstance(model, (str, PathLike))
    return f" A kernel takes the model itself: delassus.load({str(model)!r})." if is_name else ""


def _size(model: Any, name: str) -> int:
    try:
        size = operator.index(getattr(model, name))
    except AttributeError:
        raise SignatureError(
            f"the signature names the size {name!r}, and {type(model).__name__} has no such attribute.{hint(model)}",
            code="bad-signature",
        ) from None
    except TypeError:
        raise SignatureError(
            f"the size {name!r} is {getattr(model, name)!r} on this model, and must be an integer.",
            code="bad-signature",
        ) from None
    if size < 0:
        raise SignatureError(
            f"the size {name!r} is {size} on this model, and must not be negative.", code="bad-signature"
        )
    return size


def parameters_of(function: Callable[..., Any], signature: Signature) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The name of the model, those of the arrays, and the keywords with their defaults, fields of bundles by theirs."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    if len(positional) + len(by_keyword) != len(parameters):
        raise SignatureError(
            f"{function.__name__}: a kernel has a fixed number of arrays, *args and **kwargs are not possible.",
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
    """Keyword-only parameters with their defaults, the fields of bundles in their places."""
    keywords: dict[str, Any] = {}
    for parameter in parameters:
        name, bundle = parameter.name, bundles.get(parameter.name)
        fields = {name: parameter.default} if bundle is None else bundle.defaults
        twice = next((field for field in fields if field in keywords or field in positional), None)
        if twice is not None:
            raise SignatureError(f"{function}: the name {twice!r} stands for two parameters: name one differently.")
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
    """Raise unless the parameter of a structure has no default, or the one that the structure has by itself."""
    if default in (None, inspect.Parameter.empty):
        return
    if not isinstance(default, group.kind) or group.nondefault_fields(default):
        raise SignatureError(
            f"{function}: the default of {name!r} is {default!r}; it must be {group.kind.__name__}() "
            "without arguments, because fields have the defaults of their class."
        )


def default_of(function: str, signature: Signature, name: str, own: Any) -> Any:
    """What an optional input is where it is not given, `own` being the default of its parameter;
    `inspect.Parameter.empty` if it has to be given."""
    if "." in name:
        return signature.declared[name].default
    nothing = inspect.Parameter.empty
    declared = signature.declared[name].default if name in signature.declared else nothing
    if own is nothing:
        if declared is nothing and name not in signature.shared:
            raise SignatureError(
                f"{function}: the optional input {name!r} needs a default: None where the function does "
                "without it, or numbers.",
                code="bad-signature",
            )
        return declared
    if declared is not nothing and declared is not None and declared != own:
        raise SignatureError(
            f"{function}: the optional input {name!r} has two defaults, {own!r} and {declared!r}: give one.",
            code="bad-signature",
        )
    return own
