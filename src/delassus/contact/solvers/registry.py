"""The table of contact solvers. Each registers itself with the operations of a system that it needs.

    @register_solver("pgs", needs={SWEEP})
    def gauss_seidel(system, best, budget): ...

A name may have several implementations, for systems with different capabilities: a traced loop over one state, or a
host loop over a batch. `find_solver` selects the one that uses most capabilities of a system. Unknown and unsuitable
names raise an error that lists the suitable ones. Files of the packages below are imported when a solver is looked up,
so a new solver is a new file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from delassus.contact.systems.protocol import TRACED
from delassus.errors import UnknownOption, short

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ContactSolver:
    """A registered method.

    Attributes:
        name: The name for users.
        needs: Required capabilities of a system; `TRACED` for solvers that run inside kernels.
        laws: The supported laws: "ncp", "ccp", "lcp".
        solve: A function of a system, the best impulses so far, and a budget of iterations.
    """

    name: str
    needs: frozenset[str]
    laws: tuple[str, ...]
    solve: Callable[..., Any]

    def fits(self, capabilities: Collection[str], law: str = "ncp") -> bool:
        """Whether the solver supports systems with these capabilities under a law."""
        return self.needs <= set(capabilities) and law in self.laws


_SOLVERS: Final[list[ContactSolver]] = []

_PACKAGES: Final = ("delassus.contact.solvers", "delassus.contact.large", "delassus.contact.references")
"""Packages that contain solvers."""


@cache
def _import_solvers() -> None:
    """Import all files in which solvers register themselves."""
    for package in _PACKAGES:
        for module in iter_modules(import_module(package).__path__):
            import_module(f"{package}.{module.name}")


def register_solver(
    name: str, *, needs: Collection[str], traced: bool = True, laws: tuple[str, ...] = ("ncp", "ccp")
) -> Callable[[F], F]:
    """Register a function as a contact solver; several functions may share a name if their needs differ.

    A `traced` solver runs inside kernels; the others are loops of the host.
    """

    def register(function: F) -> F:
        _SOLVERS.append(ContactSolver(name, frozenset(needs) | ({TRACED} if traced else set()), laws, function))
        _find_solver.cache_clear()
        return function

    return register


def solver_names(capabilities: Collection[str], law: str = "ncp") -> tuple[str, ...]:
    """The names of the suitable solvers, "auto" first."""
    _import_solvers()
    names = dict.fromkeys(solver.name for solver in _SOLVERS if solver.fits(capabilities, law))
    return tuple(sorted(names, key=lambda name: (name != "auto", name)))


def find_solver(name: Any, capabilities: Collection[str], law: str = "ncp") -> ContactSolver:
    """Find the solver of this name for systems with these capabilities."""
    if isinstance(name, str):
        return _find_solver(name, frozenset(capabilities), law)
    raise _unknown_solver(name, capabilities, law)


@lru_cache(256)
def _find_solver(name: str, capabilities: frozenset[str], law: str) -> ContactSolver:
    _import_solvers()
    fitting = [solver for solver in _SOLVERS if solver.name == name and solver.fits(capabilities, law)]
    if not fitting:
        raise _unknown_solver(name, capabilities, law)
    return max(fitting, key=lambda solver: len(solver.needs))


def _unknown_solver(name: Any, capabilities: Collection[str], law: str) -> UnknownOption:
    """The error for a method that is unknown or unsuitable."""
    fitting = ", ".join(solver_names(capabilities, law))
    if not isinstance(name, str) or all(solver.name != name for solver in _SOLVERS):
        return UnknownOption(
            f"there is no method {short(repr(name))}; the methods are: {fitting}.", code="unknown-method"
        )
    return UnknownOption(
        f"the method {name!r} does not solve problems of this kind with the law {law!r}; those that fit are: "
        f"{fitting}.",
        code="unknown-method",
    )
