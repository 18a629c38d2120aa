"""Packages that import their names on first use, so that `import delassus` is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from delassus.errors import warn


def lazily(
    package: str, names: Iterable[str], places: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that lists these names.

    `places` says which modules of Delassus hold them, with spaces between names; a module that holds "" is itself one.
    `renamed` are old names, which give a warning.
    """
    homes = {name: module for module, held in places.items() for name in held.split()}
    modules = {module.rpartition(".")[2]: module for module, held in places.items() if not held}
    listed, old = sorted(names), renamed or {}

    def __getattr__(name: str) -> Any:
        if name in old:
            warn(f"{package}.{name} was renamed: use {old[name]}.", DeprecationWarning)
            return getattr(sys.modules[package], old[name])
        if name in homes:
            found = getattr(import_untraced(f"delassus.{homes[name]}"), name)
        elif name in modules:
            found = import_untraced(f"delassus.{modules[name]}")
        else:
            raise missing(package, name, [*homes, *modules])
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__, lambda: listed


def missing(package: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a package does not have, with the nearest that it has."""
    nearest = get_close_matches(name, list(known), n=2)
    hint = f". Did you mean {' or '.join(nearest)}?" if nearest else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name)


def import_untraced(module: str) -> Any:
    """A module, imported with plain numbers, even if a kernel that is being traced is the first to ask for it."""
    trace = sys.modules.get("delassus.compiler.tracing.trace")
    with getattr(trace, "suspend_trace", nullcontext)():  # no trace before that module is imported
        return import_module(module)
