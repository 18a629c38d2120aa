"""Imports all files of a folder, so that each can register its objects."""

import pkgutil
from collections.abc import Iterable
from importlib import import_module


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import the modules of a package, in the order of their names: `import_modules(__name__, __path__)`."""
    for module in sorted(info.name for info in pkgutil.iter_modules(path)):
        import_module(f"{package}.{module}")
