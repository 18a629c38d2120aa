"""Integrators by their names."""

from __future__ import annotations

from typing import Any, Final

from delassus.constrained.rows.options import check_method
from delassus.integrators.dormand_prince import DORMAND_PRINCE
from delassus.integrators.explicit_euler import ExplicitEuler
from delassus.integrators.gauss import GAUSS
from delassus.integrators.implicit_euler import IMPLICIT_EULER
from delassus.integrators.midpoint import MIDPOINT
from delassus.integrators.protocol import Integrator
from delassus.integrators.rk4 import RK4
from delassus.integrators.semi_implicit_euler import SemiImplicitEuler
from delassus.integrators.taylor import Taylor

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
    """A method by its name; one of your own is taken as it is."""
    if hasattr(method, "step") and hasattr(method, "adaptive"):
        return method
    check_method(method, INTEGRATORS)
    return INTEGRATORS[method]
