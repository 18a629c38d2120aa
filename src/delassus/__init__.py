"""Delassus: constrained robot dynamics, written in NumPy, compiled to native SIMD code for your robot."""

from delassus.compiler.kernel import kernel
from delassus.compiler.threads import threads
from delassus.dynamics.aba import aba
from delassus.dynamics.aba_derivatives import aba_derivatives
from delassus.dynamics.centroid import center_of_mass, center_of_mass_jacobian, centroidal_momentum
from delassus.dynamics.crba import crba
from delassus.dynamics.energy import kinetic_energy, potential_energy
from delassus.dynamics.factor import inverse_mass_matrix, udu, udu_solve
from delassus.dynamics.frame_derivatives import frame_acceleration_derivatives, frame_velocity_derivatives
from delassus.dynamics.jacobians import frame_jacobian
from delassus.dynamics.kinematics import (
    forward_kinematics,
    frame_acceleration,
    frame_bias,
    frame_placement,
    frame_placements,
    frame_velocity,
)
from delassus.dynamics.manifold import difference, integrate, normalize
from delassus.dynamics.regressor import torque_regressor
from delassus.dynamics.rnea import bias_torques, gravity_torques, rnea, rnea_external
from delassus.dynamics.rnea_derivatives import rnea_derivatives
from delassus.errors import DelassusError, DelassusWarning
from delassus.model.load import load
from delassus.model.model import Model
from delassus.model.pinocchio import from_pinocchio, q_from_pinocchio, q_to_pinocchio
from delassus.model.placement import Inertia, Placement

__version__ = "0.1.0"

__all__ = [
    "DelassusError",
    "DelassusWarning",
    "Inertia",
    "Model",
    "Placement",
    "__version__",
    "aba",
    "aba_derivatives",
    "bias_torques",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "crba",
    "difference",
    "forward_kinematics",
    "frame_acceleration",
    "frame_acceleration_derivatives",
    "frame_bias",
    "frame_jacobian",
    "frame_placement",
    "frame_placements",
    "frame_velocity",
    "frame_velocity_derivatives",
    "from_pinocchio",
    "gravity_torques",
    "integrate",
    "inverse_mass_matrix",
    "kernel",
    "kinetic_energy",
    "load",
    "normalize",
    "potential_energy",
    "q_from_pinocchio",
    "q_to_pinocchio",
    "rnea",
    "rnea_derivatives",
    "rnea_external",
    "threads",
    "torque_regressor",
    "udu",
    "udu_solve",
]
