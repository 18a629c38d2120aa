"""Delassus: constrained robot dynamics, written in NumPy, compiled to native SIMD code for your robot.

`dir(delassus)` lists what one meets first. All there is, is in namespaces:

model         robots: `load`, `Model`, joints, frames, inertias; what differs between two, whether masses are possible
dynamics      kinematics, forces and masses of free robots
constraints   what holds a robot: kinds of constraints, and the `Mechanism` that they make of it
constrained   dynamics of a mechanism: accelerations and forces, by several methods; assembly, projection, impacts
contact       what only pushes, with friction: cones, problems, robots that touch something
stepping      motions in time: integrators, trajectories, events; the compliant scheme from soft to rigid, impacts
simulation    robots on the ground, one or thousands, stepped through time
particles     large sparse systems: ropes, nets, cloth, towers of bricks
control       torques for a motion asked for: inverse dynamics under constraints, tasks, linear models
learning      tasks that robots practise by thousands, environments, a policy in compiled code, a learner
derivatives   of all of these
mujoco        to and from MuJoCo
pinocchio     to and from Pinocchio
compiler      kernels, loops and branches in them, derivatives of functions that you write, random numbers
numpy         what kernels import as `np`

Every name of these namespaces but `particles`, `learning` and the last two is an attribute of `delassus`, too.
"""

from typing import TYPE_CHECKING, Final

from delassus.errors import DelassusError as DelassusError
from delassus.errors import DelassusWarning as DelassusWarning
from delassus.lazy import import_untraced as _imported
from delassus.lazy import missing as _missing

if TYPE_CHECKING:
    from delassus import (
        compiler,
        constrained,
        constraints,
        contact,
        control,
        derivatives,
        dynamics,
        learning,
        model,
        mujoco,
        numpy,
        particles,
        pinocchio,
        simulation,
        stepping,
    )
    from delassus.compiler import clear_kernels as clear_kernels
    from delassus.compiler import kernel, threads
    from delassus.compiler import kernel_memory as kernel_memory
    from delassus.constrained import *
    from delassus.constraints import *
    from delassus.contact import *
    from delassus.control import *
    from delassus.derivatives import *
    from delassus.dynamics import *
    from delassus.model import *
    from delassus.mujoco import *
    from delassus.pinocchio import *
    from delassus.simulation import *
    from delassus.stepping import *

__version__ = "0.1.0"

__all__ = [
    "Contact",
    "ContactProblem",
    "Coupling",
    "DelassusError",
    "Distance",
    "Ground",
    "Hinge",
    "Implicit",
    "JointLock",
    "Mechanism",
    "Model",
    "Nonholonomic",
    "Placement",
    "Point",
    "Simulation",
    "Status",
    "Trajectory",
    "Weld",
    "__version__",
    "aba",
    "assemble",
    "caba",
    "cones",
    "constrained_dynamics",
    "contact_dynamics",
    "contact_inverse_dynamics",
    "crba",
    "delassus_matrix",
    "difference",
    "forward_kinematics",
    "frame_jacobian",
    "frame_placement",
    "impact",
    "integrate",
    "inverse_dynamics",
    "kernel",
    "kinetic_energy",
    "kkt",
    "load",
    "potential_energy",
    "project",
    "prox_ltl",
    "prox_ltls",
    "prox_pv",
    "pv_early",
    "pv_soft",
    "rnea",
    "robots",
    "simulate_motion",
    "threads",
]

NAMESPACES: Final = (
    "model",
    "dynamics",
    "constraints",
    "constrained",
    "contact",
    "stepping",
    "simulation",
    "control",
    "derivatives",
    "mujoco",
    "pinocchio",
)
"""Where names are looked up that are asked for the first time."""

OWN_NAMES: Final = ("particles", "learning")
"""Namespaces whose names are found in them alone: a rope, a box or a task of theirs is not everybody's."""

_OF_COMPILER: Final = ("clear_kernels", "kernel", "kernel_memory", "threads")

_RENAMED: Final = dict.fromkeys(("Actuated", "ProgrammeSolution", "ProgrammeStatus", "QuadraticProgramme"), "control")
"""Old names, which still work and warn, and their namespaces."""

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in (*NAMESPACES, *OWN_NAMES, "compiler", "numpy", "spatial"):
            return _imported(f"delassus.{name}")
        for room in () if name.startswith("__") else ("compiler",) if name in _OF_COMPILER else NAMESPACES:
            namespace = _imported(f"delassus.{room}")
            if name in namespace.__all__:
                found = globals()[name] = getattr(namespace, name)
                return found
        if name in _RENAMED:
            return getattr(_imported(f"delassus.{_RENAMED[name]}"), name)
        known = (
            [] if name.startswith("_") else [x for room in NAMESPACES for x in _imported(f"delassus.{room}").__all__]
        )
        raise _missing("delassus", name, [*known, *NAMESPACES, *OWN_NAMES])

    def __dir__():
        return sorted([*__all__, *NAMESPACES, *OWN_NAMES, "compiler", "numpy"])
