"""Delassus: constrained robot dynamics, written in NumPy, compiled to native SIMD code for your robot."""

from delassus.compiler.host.kernel import kernel
from delassus.compiler.host.threads import threads
from delassus.compiler.host.versions import clear_kernels, kernel_memory
from delassus.constrained.delassus.by_products import delassus_matrix, operational_inertia
from delassus.constrained.delassus.delassus_operator import delassus_apply, delassus_solve
from delassus.constrained.projection.assemble import Assembly, assemble
from delassus.constrained.projection.impact import impact
from delassus.constrained.projection.project import project
from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
from delassus.constrained.rows.references import constraint_error
from delassus.constrained.solvers.caba import caba
from delassus.constrained.solvers.derivatives import constrained_derivatives
from delassus.constrained.solvers.dynamics import constrained_dynamics
from delassus.constrained.solvers.kkt import kkt
from delassus.constrained.solvers.prox_ltl import prox_ltl
from delassus.constrained.solvers.prox_ltls import prox_ltls
from delassus.constrained.solvers.prox_pv import prox_pv
from delassus.constrained.solvers.pv_early import pv_early
from delassus.constrained.solvers.pv_soft import pv_soft
from delassus.constrained.solvers.status import Solution, Status
from delassus.constrained.solvers.three_steps import three_steps
from delassus.constraints.coupling import Coupling
from delassus.constraints.distance import Distance
from delassus.constraints.hinge import Hinge
from delassus.constraints.implicit import Implicit
from delassus.constraints.joint_lock import JointLock
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.nonholonomic import Nonholonomic, Velocities
from delassus.constraints.point import Point
from delassus.constraints.weld import Weld
from delassus.constraints.written import Kinematics
from delassus.contact import cones
from delassus.contact.dynamics.dynamics import contact_dynamics, contact_problem
from delassus.contact.dynamics.inverse import ContactExplanation, contact_inverse_dynamics
from delassus.contact.dynamics.kinematics import ContactKinematics, contact_kinematics
from delassus.contact.dynamics.result import ContactForces, ContactStep
from delassus.contact.models.relaxation import Relaxation
from delassus.contact.models.softness import Softness
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.robots.contact import Contact
from delassus.dynamics.aba import aba
from delassus.dynamics.aba_derivatives import aba_derivatives
from delassus.dynamics.centroid import center_of_mass, center_of_mass_jacobian, centroidal_momentum
from delassus.dynamics.centroidal_map import centroidal_momentum_matrix, centroidal_momentum_matrix_rate
from delassus.dynamics.coriolis import coriolis_matrix
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
from delassus.dynamics.manifold import difference, integrate, interpolate, normalize
from delassus.dynamics.manifold_derivatives import difference_derivatives, integrate_derivatives
from delassus.dynamics.passive import passive_forces, spring_energy
from delassus.dynamics.regressor import torque_regressor
from delassus.dynamics.rnea import bias_torques, gravity_torques, rnea
from delassus.dynamics.rnea_derivatives import rnea_derivatives
from delassus.errors import DelassusError, DelassusWarning
from delassus.model.bundled import robots
from delassus.model.converters.mujoco import (
    a_from_mujoco,
    a_to_mujoco,
    q_from_mujoco,
    q_to_mujoco,
    v_from_mujoco,
    v_to_mujoco,
)
from delassus.model.converters.pinocchio import from_pinocchio, q_from_pinocchio, q_to_pinocchio
from delassus.model.model import Model
from delassus.model.parametric import ParametricModel
from delassus.model.placement import Inertia, Placement
from delassus.model.readers.load import load
from delassus.model.readers.mjcf import from_mujoco
from delassus.model.reports.comparison import compare
from delassus.model.reports.mass_report import mass_report
from delassus.model.reports.physical import ParameterCheck, ParameterStatus, check_parameters

__version__ = "0.1.0"

__all__ = [
    "Assembly",
    "Contact",
    "ContactExplanation",
    "ContactForces",
    "ContactKinematics",
    "ContactProblem",
    "ContactSolution",
    "ContactStep",
    "Coupling",
    "DelassusError",
    "DelassusWarning",
    "Distance",
    "Hinge",
    "Implicit",
    "Inertia",
    "JointLock",
    "Kinematics",
    "Mechanism",
    "Model",
    "Nonholonomic",
    "ParameterCheck",
    "ParameterStatus",
    "ParametricModel",
    "Placement",
    "Point",
    "Relaxation",
    "Softness",
    "Solution",
    "Status",
    "Velocities",
    "Weld",
    "__version__",
    "a_from_mujoco",
    "a_to_mujoco",
    "aba",
    "aba_derivatives",
    "assemble",
    "bias_torques",
    "caba",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "check_parameters",
    "clear_kernels",
    "compare",
    "cones",
    "constrained_derivatives",
    "constrained_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "contact_dynamics",
    "contact_inverse_dynamics",
    "contact_kinematics",
    "contact_problem",
    "coriolis_matrix",
    "crba",
    "delassus_apply",
    "delassus_matrix",
    "delassus_solve",
    "difference",
    "difference_derivatives",
    "forward_kinematics",
    "frame_acceleration",
    "frame_acceleration_derivatives",
    "frame_bias",
    "frame_jacobian",
    "frame_placement",
    "frame_placements",
    "frame_velocity",
    "frame_velocity_derivatives",
    "from_mujoco",
    "from_pinocchio",
    "gravity_torques",
    "impact",
    "integrate",
    "integrate_derivatives",
    "interpolate",
    "inverse_mass_matrix",
    "kernel",
    "kernel_memory",
    "kinetic_energy",
    "kkt",
    "load",
    "mass_report",
    "normalize",
    "operational_inertia",
    "passive_forces",
    "potential_energy",
    "project",
    "prox_ltl",
    "prox_ltls",
    "prox_pv",
    "pv_early",
    "pv_soft",
    "q_from_mujoco",
    "q_from_pinocchio",
    "q_to_mujoco",
    "q_to_pinocchio",
    "rnea",
    "rnea_derivatives",
    "robots",
    "spring_energy",
    "threads",
    "three_steps",
    "torque_regressor",
    "udu",
    "udu_solve",
    "v_from_mujoco",
    "v_to_mujoco",
]
