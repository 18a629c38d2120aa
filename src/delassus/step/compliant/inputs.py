"""What the kernels of a step take besides a state: numbers that compile nothing again, and names of options."""

from __future__ import annotations

from typing import Final

from delassus.compiler.host.inputs import Input
from delassus.step.compliant.solve import RUBBING
from delassus.step.compliant.system import SOLVERS

STABILIZATIONS: Final = ("none", "pre", "post", "project")
FORMED: Final = tuple(name for name in SOLVERS if name != "pgs")
"""Solvers for which the system is formed."""
IMPACTS: Final = ("newton", "reflections")

SOLVING: Final = ("start", "tolerance", "iterations")
INPUTS: Final[dict[str, str | Input]] = {
    "alpha": Input("()", 1.0),
    "beta": Input("()", 1.0),
    "compliance": "(m)",
    "compliance_matrix": "(m,m)",
    "damping": "(m)",
    "servo_stiffness": "(nv)",
    "servo_damping": "(nv)",
    "servo_target": "(nq)",
    "driven_velocity": "(nv)",
    "restitution": "(points)",
    "friction": "(points)",
    "torsional": "(torsional)",
    "rolling": "(rolling)",
    "start": "(m)",
    "tolerance": "()",
    "iterations": "()",
    "normal": "(points,3)",
    "height": "(points)",
    "geometric": "(m)",
    "time": "()",
}

FORM_INPUTS: Final = {name: core for name, core in INPUTS.items() if name not in RUBBING and name not in SOLVING}
