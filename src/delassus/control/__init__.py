"""Control: torques for a motion that is asked for, under constraints; tasks; linear models."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import Actuated
    from delassus.control.inverse.dynamics import actuated_inverse_dynamics, inverse_dynamics
    from delassus.control.inverse.equilibrium import Equilibrium, equilibrium, gravity_compensation
    from delassus.control.inverse.result import ControlStatus, InverseDynamics

__all__ = [
    "Actuated",
    "ControlStatus",
    "Equilibrium",
    "InverseDynamics",
    "actuated_inverse_dynamics",
    "equilibrium",
    "gravity_compensation",
    "inverse_dynamics",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "control.inverse.actuated": "Actuated",
            "control.inverse.dynamics": "actuated_inverse_dynamics inverse_dynamics",
            "control.inverse.equilibrium": "Equilibrium equilibrium gravity_compensation",
            "control.inverse.result": "ControlStatus InverseDynamics",
        },
    )
