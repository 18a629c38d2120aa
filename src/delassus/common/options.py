"""Options of public functions: frozen objects, whose fields can also be passed as keywords.

A function has few parameters, some of which are option objects. It collects other keywords in `**shortcuts`, and
`Shortcuts.fill` sets the field with the name of each keyword:

    contact_dynamics(robot, q, v, tau, time_step=1e-3, tolerance=1e-6)
    contact_dynamics(robot, q, v, tau, time_step=1e-3, solver=SolverOptions(tolerance=1e-6))

An object may contain others, such as `ContactOptions(solver=SolverOptions(…))`; these and their fields are also
shortcuts. A parameter may have alternatives, such as contact laws: a name selects one of them with its defaults.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar

import numpy as np

from delassus.common.checks import one_of
from delassus.errors import BadArgument, DelassusError, UnknownOption, WrongType, short, warn

Kind = TypeVar("Kind")


class UnknownKeyword(DelassusError, TypeError):
    """An unknown keyword of a function; `nearest` has the most similar known keywords."""

    code = "unknown-keyword"
    nearest: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """Base class of option objects: frozen dataclasses that compare and hash by value, arrays included.

    Attributes:
        keywords: The keyword of each field whose shortcut has another name; "contact.compliance" is the field of an
            object in this one.
        name: The name by which an alternative is selected.
        main: The field that is set if a string is passed in place of the object, as in solver="newton".
    """

    keywords: ClassVar[Mapping[str, str]] = {}
    name: ClassVar[str] = ""
    main: ClassVar[str] = ""

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields, checked again."""
        return dataclasses.replace(self, **changes)

    def _values(self) -> tuple[Any, ...]:
        return tuple(_hashable(getattr(self, field.name)) for field in dataclasses.fields(self))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Options) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))


def _hashable(value: Any) -> Any:
    """A hashable object that is equal for equal values."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(_hashable(x) for x in value)
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, Mapping):
        return tuple((key, _hashable(x)) for key, x in value.items())
    return value


class _Group:
    """An option object as a parameter: the default, its fields by keyword, and the objects that it contains."""

    def __init__(self, keyword: str, default: Any, outer: Mapping[str, str] | None = None) -> None:
        self.keyword, self.default, self.kind = keyword, default, type(default)
        aliases: Mapping[str, str] = {**getattr(default, "keywords", {}), **(outer or {})}
        self.fields: dict[str, str] = {}
        self.inner: dict[str, _Group] = {}
        for field in _field_names(default):
            name, value = aliases.get(field, field), getattr(default, field)
            if _is_group(value):
                below = {key.partition(".")[2]: x for key, x in aliases.items() if key.startswith(f"{field}.")}
                self.inner[field] = _Group(name, value, below)
            else:
                self.fields[name] = field
        self.names = frozenset(name for name, _ in self.keywords())

    def keywords(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each keyword below this object, with the names of the fields that lead to its value."""
        for name, field in self.fields.items():
            yield name, (field,)
        for field, group in self.inner.items():
            yield group.keyword, (field,)
            for name, path in group.keywords():
                yield name, (field, *path)

    def fill(self, function: str, given: Any, shortcuts: Mapping[str, Any]) -> Any:
        """The object of the call, or the default with shortcuts filled in."""
        main = getattr(self.default, "main", "")
        if isinstance(given, str) and main:
            if not _same(shortcuts.get(main, given), given):
                raise BadArgument(
                    f"{function} has {self.keyword}={given!r} and {main}={short(repr(shortcuts[main]))}, which are the "
                    "same: omit one of them.",
                    code="conflicting-arguments",
                )
            shortcuts, given = {**shortcuts, main: given}, None
        if given is not None:
            return self._agreeing(function, given, shortcuts)
        if self.names.isdisjoint(shortcuts):
            return self.default
        changes = {field: shortcuts[name] for name, field in self.fields.items() if name in shortcuts}
        for field, group in self.inner.items():
            changes[field] = group.fill(function, shortcuts.get(group.keyword), shortcuts)
        return self.default.replace(**changes)

    def _agreeing(self, function: str, given: Any, shortcuts: Mapping[str, Any]) -> Any:
        if not isinstance(given, self.kind):
            raise WrongType(
                f"{self.keyword} of {function} is {short(repr(given))}; it must be {self.kind.__name__}"
                f"({', '.join(f'{name}=…' for name in _field_names(self.default))})."
            )
        for name, path in self.keywords() if not self.names.isdisjoint(shortcuts) else ():
            value = given
            for field in path:
                value = getattr(value, field)
            if name in shortcuts and not _same(value, shortcuts[name]):
                raise BadArgument(
                    f"{function} has {self.keyword}={short(repr(given))} and {name}={short(repr(shortcuts[name]))}, "
                    f"which is a shortcut for its {'.'.join(path)}: omit one of them, or pass "
                    f"{self.keyword}.replace({path[0]}=…).",
                    code="conflicting-arguments",
                )
        return given


class Shortcuts:
    """The option objects of one function, and the keywords that fill them.

    `groups` has the default object of each parameter, or a tuple of alternatives that are selected by name.
    `parameters` has the other names of the function, for errors. `renamed` maps old names of parameters to new ones.
    `code` is that of the error for an unknown alternative.
    """

    def __init__(
        self,
        function: str,
        parameters: str = "",
        *,
        renamed: Mapping[str, str] | None = None,
        code: str = UnknownOption.code,
        **groups: Any,
    ) -> None:
        self.function: Final = function
        self._parameters, self._code = tuple(parameters.split()), code
        self._renamed: Mapping[str, str] = renamed or {}
        self._groups = {name: _Group(name, default) for name, default in groups.items() if _is_group(default)}
        self._choices = {
            name: {one.name: _Group(name, one) for one in default}
            for name, default in groups.items()
            if not _is_group(default)
        }
        self.names = frozenset(name for group in self._every() for name in group.names)
        self._empty = frozenset(
            name for group in self._every() for name, path in group.keywords() if _at(group.default, path) is None
        )
        self._filled: dict[tuple[str | None, ...], tuple[Any, ...]] = {}

    def _every(self) -> Iterator[_Group]:
        yield from self._groups.values()
        for choice in self._choices.values():
            yield from choice.values()

    def fill(self, shortcuts: Mapping[str, Any], **given: Any) -> tuple[Any, ...]:
        """One object for each group, in the order of `given`; None selects the default."""
        if shortcuts or not all(x is None or type(x) is str for x in given.values()):
            return self._fill(shortcuts, given)
        # Most calls have no shortcuts. Their objects are frozen, so that calls with the same names share them.
        names = tuple(given.values())
        if names not in self._filled:
            self._filled[names] = self._fill(shortcuts, given)
        return self._filled[names]

    def _fill(self, shortcuts: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Any, ...]:
        used = {name: x for name, x in shortcuts.items() if x is not None or name not in self._empty}
        for name in used:
            if name not in self.names and name not in self._renamed:
                raise self.unknown(name)
        return tuple(
            self._groups[name].fill(self.function, x, used) if name in self._groups else self._choose(name, x, used)
            for name, x in given.items()
        )

    def _choose(self, parameter: str, given: Any, shortcuts: Mapping[str, Any]) -> Any:
        """The alternative of the call, or that of a name with shortcuts filled in."""
        choices = self._choices[parameter]
        chosen = next((group for group in choices.values() if isinstance(given, group.kind)), None)
        if chosen is None:
            chosen = choices[one_of(parameter, given, choices, code=self._code)]
            given = None
        for other in choices.values():
            foreign = next((name for name in other.names - chosen.names if name in shortcuts), None)
            if foreign is not None and not _same(_at(other.default, (other.fields[foreign],)), shortcuts[foreign]):
                raise BadArgument(
                    f"{foreign} of {self.function} is an option of {parameter}={other.kind.name!r}; here it is "
                    f"{chosen.kind.name!r}.",
                    code="conflicting-arguments",
                )
        return chosen.fill(self.function, given, shortcuts)

    def resolve_renamed(self, shortcuts: Mapping[str, Any], new: str, value: Any, default: Any) -> Any:
        """The value of a renamed parameter, whose old name works with a warning."""
        for old, name in self._renamed.items():
            if name == new and old in shortcuts:
                warn(f"{old}= of {self.function} was renamed: use {new}=.", DeprecationWarning)
                if value is not default and not _same(value, shortcuts[old]):
                    raise BadArgument(
                        f"{self.function} has {new}={short(repr(value))} and {old}={short(repr(shortcuts[old]))}, its "
                        f"old name: omit {old}.",
                        code="conflicting-arguments",
                    )
                return shortcuts[old]
        return value

    def unknown(self, name: str) -> UnknownKeyword:
        """The error for a keyword that the function does not have."""
        fitting = sorted({*self.names, *self._parameters, *self._groups, *self._choices})
        nearest = tuple(difflib.get_close_matches(name, fitting, n=2))
        hint = f" The nearest: {' or '.join(map(repr, nearest))}." if nearest else ""
        error = UnknownKeyword(f"{self.function} has no argument {name!r}; it has: {', '.join(fitting)}.{hint}")
        error.nearest = nearest
        return error


def _is_group(value: Any) -> bool:
    return isinstance(value, Options) or (isinstance(value, tuple) and hasattr(value, "replace"))


def _field_names(value: Any) -> tuple[str, ...]:
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    return tuple(field.name for field in dataclasses.fields(value)) if names is None else names


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    for name in _field_names(value):
        yield name, getattr(value, name)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for field in path:
        value = getattr(value, field)
    return value


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal; arrays are equal if all elements are."""
    try:
        return a is b or bool(np.array_equal(a, b))
    except (TypeError, ValueError):
        return False


def accept_groups(positional: str, **groups: Any) -> Callable[[type[Kind]], type[Kind]]:
    """Let a dataclass accept option objects in place of some of its fields, which become shortcuts.

    `positional` lists the fields that remain parameters; those before "*" are positional. If a field of an object is
    None, the default of the dataclass applies.
    """

    def decorate(kind: type[Kind]) -> type[Kind]:
        by_position, _, by_name = (part.split() for part in positional.partition("*"))
        table, plain = Shortcuts(kind.__name__, " ".join((*by_position, *by_name)), **groups), kind.__init__
        known = {*inspect.signature(plain).parameters, *groups}

        @functools.wraps(plain)
        def __init__(self: Any, *args: Any, **keywords: Any) -> None:
            unknown = next((name for name in keywords if name not in known), None)
            if unknown is not None:
                raise table.unknown(unknown)
            objects = {name: keywords.pop(name) for name in groups if name in keywords}
            if objects:
                shortcuts = {name: x for name, x in keywords.items() if name in table.names}
                for value in table.fill(shortcuts, **objects):
                    keywords |= {name: x for name, x in _items(value) if x is not None}
            plain(self, *args, **keywords)

        plain_parameters = inspect.signature(plain).parameters
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [plain_parameters[name] for name in ("self", *by_position)]
        parameters += [plain_parameters[name].replace(kind=keyword) for name in by_name]
        parameters += [inspect.Parameter(name, keyword, default=None) for name in groups]
        parameters += [inspect.Parameter("shortcuts", inspect.Parameter.VAR_KEYWORD)]
        __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        kind.__init__ = __init__  # type: ignore[method-assign]
        return kind

    return decorate
