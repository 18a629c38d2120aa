"""Integrators by their names."""

from __future__ import annotations

from typing import Any, Final

from delassus.common.checks import one_of
from delassus.stepping.integrators.dormand_prince import DORMAND_PRINCE
from delassus.stepping.integrators.explicit_euler import ExplicitEuler
from delassus.stepping.integrators.gauss import GAUSS
from delassus.stepping.integrators.implicit_euler import IMPLICIT_EULER
from delassus.stepping.integrators.midpoint import MIDPOINT
from delassus.stepping.integrators.protocol import Integrator
from delassus.stepping.integrators.rk4 import RK4
from delassus.stepping.integrators.semi_implicit_euler import SemiImplicitEuler
from delassus.stepping.integrators.taylor import Taylor

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
    one_of("method", method, INTEGRATORS, code="unknown-method")
    return INTEGRATORS[method]
