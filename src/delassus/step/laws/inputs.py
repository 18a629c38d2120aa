"""Optional inputs of all kernels that solve the contact problem of a robot."""

from __future__ import annotations

from typing import Final

SOLVER_INPUTS: Final = {
    "friction": "(points)",
    "torsional": "(torsional)",
    "rolling": "(rolling)",
    "start": "(m)",
    "tolerance": "()",
    "iterations": "()",
}
