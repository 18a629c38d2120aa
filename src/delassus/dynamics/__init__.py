"""Dynamics of trees; one file per algorithm."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.dynamics.forces.aba import aba
    from delassus.dynamics.forces.passive import passive_forces, spring_energy
    from delassus.dynamics.forces.regressor import torque_regressor
    from delassus.dynamics.forces.rnea import bias_torques, gravity_torques, rnea
    from delassus.dynamics.kinematics.jacobians import frame_jacobian
    from delassus.dynamics.kinematics.kinematics import (
        forward_kinematics,
        frame_acceleration,
        frame_bias,
        frame_placement,
        frame_placements,
        frame_velocity,
    )
    from delassus.dynamics.kinematics.manifold import difference, integrate, interpolate, normalize
    from delassus.dynamics.mass.centroid import center_of_mass, center_of_mass_jacobian, centroidal_momentum
    from delassus.dynamics.mass.centroidal_map import centroidal_momentum_matrix, centroidal_momentum_matrix_rate
    from delassus.dynamics.mass.coriolis import coriolis_matrix
    from delassus.dynamics.mass.crba import crba
    from delassus.dynamics.mass.energy import kinetic_energy, potential_energy
    from delassus.dynamics.mass.factor import inverse_mass_matrix, udu, udu_solve

__all__ = [
    "aba",
    "bias_torques",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "coriolis_matrix",
    "crba",
    "difference",
    "forward_kinematics",
    "frame_acceleration",
    "frame_bias",
    "frame_jacobian",
    "frame_placement",
    "frame_placements",
    "frame_velocity",
    "gravity_torques",
    "integrate",
    "interpolate",
    "inverse_mass_matrix",
    "kinetic_energy",
    "normalize",
    "passive_forces",
    "potential_energy",
    "rnea",
    "spring_energy",
    "torque_regressor",
    "udu",
    "udu_solve",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "dynamics.forces.aba": "aba",
            "dynamics.forces.passive": "passive_forces spring_energy",
            "dynamics.forces.regressor": "torque_regressor",
            "dynamics.forces.rnea": "bias_torques gravity_torques rnea",
            "dynamics.kinematics.jacobians": "frame_jacobian",
            "dynamics.kinematics.kinematics": "forward_kinematics frame_acceleration frame_bias "
            "frame_placement frame_placements frame_velocity",
            "dynamics.kinematics.manifold": "difference integrate interpolate normalize",
            "dynamics.mass.centroid": "center_of_mass center_of_mass_jacobian centroidal_momentum",
            "dynamics.mass.centroidal_map": "centroidal_momentum_matrix centroidal_momentum_matrix_rate",
            "dynamics.mass.coriolis": "coriolis_matrix",
            "dynamics.mass.crba": "crba",
            "dynamics.mass.energy": "kinetic_energy potential_energy",
            "dynamics.mass.factor": "inverse_mass_matrix udu udu_solve",
        },
    )
