"""Derivatives of kinematics, inverse dynamics, forward dynamics and constraint forces.

Those of functions that you write are in `delassus.compiler`: `jvp`, `vjp`, `jacobian`, `grad`.
"""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.constrained.solvers.derivatives import constrained_derivatives
    from delassus.dynamics.derivatives.aba_derivatives import aba_derivatives
    from delassus.dynamics.derivatives.frame_derivatives import (
        frame_acceleration_derivatives,
        frame_velocity_derivatives,
    )
    from delassus.dynamics.derivatives.manifold_derivatives import difference_derivatives, integrate_derivatives
    from delassus.dynamics.derivatives.passive_derivatives import passive_derivatives
    from delassus.dynamics.derivatives.rnea_derivatives import rnea_derivatives

__all__ = [
    "aba_derivatives",
    "constrained_derivatives",
    "difference_derivatives",
    "frame_acceleration_derivatives",
    "frame_velocity_derivatives",
    "integrate_derivatives",
    "passive_derivatives",
    "rnea_derivatives",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "constrained.solvers.derivatives": "constrained_derivatives",
            "dynamics.derivatives.aba_derivatives": "aba_derivatives",
            "dynamics.derivatives.frame_derivatives": "frame_acceleration_derivatives frame_velocity_derivatives",
            "dynamics.derivatives.manifold_derivatives": "difference_derivatives integrate_derivatives",
            "dynamics.derivatives.passive_derivatives": "passive_derivatives",
            "dynamics.derivatives.rnea_derivatives": "rnea_derivatives",
        },
    )
