"""The table of integrators."""

from __future__ import annotations

from typing import Any, Final

from delassus.common.checks import one_of
from delassus.integrators.euler import ExplicitEuler, SemiImplicitEuler, Taylor
from delassus.integrators.protocol import Integrator
from delassus.integrators.tableaux import DORMAND_PRINCE, GAUSS, IMPLICIT_EULER, MIDPOINT, RK4

_ALL: Final[tuple[Integrator, ...]] = (
    ExplicitEuler(),
    SemiImplicitEuler(),
    Taylor(),
    RK4,
    DORMAND_PRINCE,
    IMPLICIT_EULER,
    MIDPOINT,
    GAUSS,
)

INTEGRATORS: Final = {integrator.name: integrator for integrator in _ALL}
"""All methods by name."""


def integrator_named(method: Any) -> Integrator:
    """Find a method by name; an `Integrator` is returned unchanged."""
    if hasattr(method, "step") and hasattr(method, "adaptive"):
        return method
    one_of("method", method, INTEGRATORS, code="unknown-method")
    return INTEGRATORS[method]
