"""Dynamics of mechanisms with constraints; one file for each algorithm."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.constrained.delassus.by_products import (
        KktFactors,
        KktInverse,
        delassus_matrix,
        kkt_factor,
        kkt_inverse_blocks,
        operational_inertia,
    )
    from delassus.constrained.delassus.delassus_operator import delassus_apply, delassus_solve
    from delassus.constrained.delassus.proximal import natural_proximal
    from delassus.constrained.projection.assemble import Assembly, assemble
    from delassus.constrained.projection.impact import Impact, impact
    from delassus.constrained.projection.project import ProjectionGoal, project
    from delassus.constrained.rows.inputs import ConstraintInputs
    from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
    from delassus.constrained.rows.references import constraint_error
    from delassus.constrained.rows.residual import Residual, constraint_residual
    from delassus.constrained.solvers.caba import caba
    from delassus.constrained.solvers.dynamics import Accuracy, constrained_dynamics
    from delassus.constrained.solvers.kkt import kkt
    from delassus.constrained.solvers.prox_ltl import prox_ltl
    from delassus.constrained.solvers.prox_ltls import prox_ltls
    from delassus.constrained.solvers.prox_pv import prox_pv
    from delassus.constrained.solvers.pv_early import pv_early
    from delassus.constrained.solvers.pv_soft import pv_soft
    from delassus.constrained.solvers.status import Solution, Status
    from delassus.constrained.solvers.three_steps import three_steps

__all__ = [
    "Accuracy",
    "Assembly",
    "ConstraintInputs",
    "Impact",
    "KktFactors",
    "KktInverse",
    "ProjectionGoal",
    "Residual",
    "Solution",
    "Status",
    "assemble",
    "caba",
    "constrained_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "constraint_residual",
    "delassus_apply",
    "delassus_matrix",
    "delassus_solve",
    "impact",
    "kkt",
    "kkt_factor",
    "kkt_inverse_blocks",
    "natural_proximal",
    "operational_inertia",
    "project",
    "prox_ltl",
    "prox_ltls",
    "prox_pv",
    "pv_early",
    "pv_soft",
    "three_steps",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "constrained.delassus.by_products": (
                "KktFactors KktInverse delassus_matrix kkt_factor kkt_inverse_blocks operational_inertia"
            ),
            "constrained.delassus.delassus_operator": "delassus_apply delassus_solve",
            "constrained.delassus.proximal": "natural_proximal",
            "constrained.projection.assemble": "Assembly assemble",
            "constrained.projection.impact": "Impact impact",
            "constrained.projection.project": "ProjectionGoal project",
            "constrained.rows.inputs": "ConstraintInputs",
            "constrained.rows.jacobian": "constraint_bias constraint_jacobian",
            "constrained.rows.references": "constraint_error",
            "constrained.rows.residual": "Residual constraint_residual",
            "constrained.solvers.caba": "caba",
            "constrained.solvers.dynamics": "Accuracy constrained_dynamics",
            "constrained.solvers.kkt": "kkt",
            "constrained.solvers.prox_ltl": "prox_ltl",
            "constrained.solvers.prox_ltls": "prox_ltls",
            "constrained.solvers.prox_pv": "prox_pv",
            "constrained.solvers.pv_early": "pv_early",
            "constrained.solvers.pv_soft": "pv_soft",
            "constrained.solvers.status": "Solution Status",
            "constrained.solvers.three_steps": "three_steps",
        },
    )
