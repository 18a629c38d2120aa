"""Annotations of public functions: parameters and results of what is reachable from `dl.__all__` and the namespaces.

`python tests/public_annotations.py` prints the counts, and every annotation that is `Any`.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import delassus as dl
from delassus.compiler.host.kernel import Kernel

SPACES = [*dl.NAMESPACES, *dl.OWN_NAMES, "compiler"]


class Annotation(NamedTuple):
    """Where it is, and its text; empty if there is none."""

    place: str
    text: str

    @property
    def says_nothing(self) -> bool:
        return self.text in ("", "Any", "Any | None")


def public_functions() -> Iterator[tuple[str, Any]]:
    """All functions, kernels and public methods, each once, by the names that users write."""
    objects = {f"{space}.{name}": getattr(getattr(dl, space), name) for space in SPACES for name in dir_of(space)}
    seen = set()
    for name, thing in objects.items():
        if inspect.isclass(thing):
            members = [
                (key, value) for key, value in vars(thing).items() if not key.startswith("_") or key == "__init__"
            ]
        else:
            members = [("", thing)]
        for key, value in members:
            function = plain(value)
            if function is not None and function not in seen and is_of_the_house(function):
                seen.add(function)
                yield f"{name}.{key}" if key else name, function


def dir_of(space: str) -> list[str]:
    return list(getattr(dl, space).__all__)


def plain(value: Any) -> Any:
    """The function of a method, property or kernel; None for what is no function, or was written by `dataclass`."""
    if isinstance(value, Kernel):
        value = value.function
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "func", getattr(value, "__func__", value))
    return value if inspect.isfunction(value) and value.__code__.co_filename != "<string>" else None


def is_of_the_house(function: Any) -> bool:
    return function.__module__.startswith("delassus")


@cache
def definitions(path: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the line on which they, or their first decorators, begin."""
    functions = (node for node in ast.walk(ast.parse(Path(path).read_text())) if isinstance(node, ast.FunctionDef))
    return {min(node.lineno, *(d.lineno for d in node.decorator_list), node.lineno): node for node in functions}


def annotations() -> list[Annotation]:
    """As they are written: an alias has a name of its own there."""
    found = []
    for name, function in public_functions():
        node = definitions(function.__code__.co_filename)[function.__code__.co_firstlineno]
        own = node.args
        every = [*own.posonlyargs, *own.args, *own.kwonlyargs, *filter(None, (own.vararg, own.kwarg))]
        parts = [(f"({x.arg})", x.annotation) for x in every if x.arg not in ("self", "cls", "_")]
        for place, annotation in [*parts, (" ->", node.returns)]:
            found.append(Annotation(name + place, "" if annotation is None else ast.unparse(annotation)))
    return found


if __name__ == "__main__":
    every = annotations()
    empty = [one for one in every if one.says_nothing]
    print(*(f"{one.place} {one.text}" for one in empty), sep="\n")
    traced = sum("Traced" in one.text for one in every)
    print(f"{len(empty)} of {len(every)} are Any, {len(empty) / len(every):.1%}; {traced} are values inside of kernels")
