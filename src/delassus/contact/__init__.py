"""Contact with friction: cones, contact problems, their solvers, and contact problems of robots."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.contact import cones
    from delassus.contact.cones.parameters import ContactParameters, RowParameters
    from delassus.contact.problems.data import Bounds
    from delassus.contact.problems.operators import DelassusOperator
    from delassus.contact.problems.problem import ContactProblem
    from delassus.contact.problems.solution import ContactSolution
    from delassus.contact.references.primal import primal_impulses
    from delassus.contact.solvers.derivatives import contact_derivatives
    from delassus.contact.solvers.laws import Ccp, Lcp, Ncp
    from delassus.contact.solvers.options import SolverInputs, SolverOptions
    from delassus.contact.solvers.sequential_impulses import RowsOnVelocities, sequential_impulses
    from delassus.contact.solvers.solve import solve_contacts
    from delassus.step.contact.dynamics import contact_dynamics, contact_problem
    from delassus.step.contact.inverse import ContactExplanation, contact_inverse_dynamics
    from delassus.step.contact.options import (
        ContactInverseOptions,
        ContactOptions,
        ExplanationOptions,
        ProblemOptions,
        RestThresholds,
    )
    from delassus.step.contact.result import ContactForces, ContactStep
    from delassus.step.contact.shape_contacts import ShapeContacts
    from delassus.step.laws.inputs import ContactPlanes
    from delassus.step.laws.law import Relaxed, Soft
    from delassus.step.laws.options import RowOptions
    from delassus.step.laws.relaxation import Relaxation
    from delassus.step.laws.softness import Softness
    from delassus.step.points.kinematics import ContactKinematics, contact_kinematics
    from delassus.step.selection.options import ShapeSelection
    from delassus.step.sources.contact import Contact, ContactPlane, ContactPoints

__all__ = [
    "Bounds",
    "Ccp",
    "Contact",
    "ContactExplanation",
    "ContactForces",
    "ContactInverseOptions",
    "ContactKinematics",
    "ContactOptions",
    "ContactParameters",
    "ContactPlane",
    "ContactPlanes",
    "ContactPoints",
    "ContactProblem",
    "ContactSolution",
    "ContactStep",
    "DelassusOperator",
    "ExplanationOptions",
    "Lcp",
    "Ncp",
    "ProblemOptions",
    "Relaxation",
    "Relaxed",
    "RestThresholds",
    "RowOptions",
    "RowParameters",
    "RowsOnVelocities",
    "ShapeContacts",
    "ShapeSelection",
    "Soft",
    "Softness",
    "SolverInputs",
    "SolverOptions",
    "cones",
    "contact_derivatives",
    "contact_dynamics",
    "contact_inverse_dynamics",
    "contact_kinematics",
    "contact_problem",
    "primal_impulses",
    "sequential_impulses",
    "solve_contacts",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "contact.cones": "",
            "step.contact.dynamics": "contact_dynamics contact_problem",
            "step.contact.inverse": "ContactExplanation contact_inverse_dynamics",
            "step.points.kinematics": "ContactKinematics contact_kinematics",
            "step.contact.result": "ContactForces ContactStep",
            "step.laws.relaxation": "Relaxation",
            "step.laws.softness": "Softness",
            "contact.problems.operators": "DelassusOperator",
            "contact.problems.problem": "ContactProblem",
            "contact.problems.data": "Bounds",
            "contact.problems.solution": "ContactSolution",
            "step.sources.contact": "Contact ContactPlane ContactPoints",
            "contact.solvers.derivatives": "contact_derivatives",
            "contact.references.primal": "primal_impulses",
            "contact.solvers.sequential_impulses": "RowsOnVelocities sequential_impulses",
            "contact.solvers.solve": "solve_contacts",
            "contact.cones.parameters": "ContactParameters RowParameters",
            "contact.solvers.laws": "Ccp Lcp Ncp",
            "contact.solvers.options": "SolverInputs SolverOptions",
            "step.contact.options": "ContactInverseOptions ContactOptions ExplanationOptions ProblemOptions "
            "RestThresholds",
            "step.laws.inputs": "ContactPlanes",
            "step.laws.law": "Relaxed Soft",
            "step.laws.options": "RowOptions",
            "step.contact.shape_contacts": "ShapeContacts",
            "step.selection.options": "ShapeSelection",
        },
    )
