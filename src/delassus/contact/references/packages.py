"""The packages that references are computed with: imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from delassus.errors import DelassusError


def package(name: str) -> ModuleType:
    """The package clarabel or proxsuite, or a sentence about how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DelassusError(
            f"this reference is computed with the package {name}, which cannot be imported ({error}): "
            "pip install 'delassus[qp]'.",
            code="missing-package",
        ) from error
