"""All modules of the package that can be imported where tests run, for tests that look at every class or kernel."""

import importlib
import pkgutil
from types import ModuleType

import delassus

OPTIONAL = {"stable_baselines3"}
"""Packages that the tests do not install: the module that adapts to one of them is left out where it is missing."""


def import_modules() -> list[ModuleType]:
    """Import and return them; `delassus.__main__` would run the command line."""
    names = [m.name for m in pkgutil.walk_packages(delassus.__path__, "delassus.") if m.name != "delassus.__main__"]
    modules = []
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in OPTIONAL:
                raise
    return modules
