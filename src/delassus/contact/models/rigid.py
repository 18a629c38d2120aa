"""The kernels of a step of time with contact: the problem, and the problem solved."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.contact.models.marks import marked
from delassus.contact.robots.assembly import Numbers, assembled
from delassus.contact.robots.scene import Scene
from delassus.contact.solvers.solve import solve_contacts
from delassus.contact.solvers.solve_pyramids import solve_pyramids

STATE_INPUTS: Final = {
    "restitution": "(points)",
    "compliance": "(points)",
    "stabilization": "()",
    "normal": "(points,3)",
    "height": "(points)",
    "time": "()",
}
"""Optional inputs of all that assembles a problem."""

SOLVER_INPUTS: Final = {
    "friction": "(points)",
    "torsional": "(torsional)",
    "rolling": "(rolling)",
    "start": "(m)",
    "tolerance": "()",
    "iterations": "()",
}
"""Optional inputs of all that solves it."""


@kernel("(nq),(nv),(nv),()->(m,m),(m),(m),(points),(nv)", inputs=STATE_INPUTS)
def assemble_contacts(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    restitution: Any = None,
    compliance: Any = None,
    stabilization: Any = None,
    normal: Any = None,
    height: Any = None,
    time: Any = None,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """G (m, m), g (m,), R (m,), gaps (points,) and the free velocity (nv,) of a step."""
    numbers = Numbers(restitution, compliance, stabilization, normal, height)
    found = assembled(scene, q, v, tau, time_step, numbers, time)
    R = np.zeros(scene.m) if found.compliance is None else found.compliance
    return found.G, found.g, R, found.gap, found.free


@kernel("(nq),(nv),(nv),()->(nv),(m),(m),(m),(points),(),()", inputs={**SOLVER_INPUTS, **STATE_INPUTS})
def contact_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    start: Any = None,
    tolerance: Any = None,
    iterations: Any = None,
    restitution: Any = None,
    compliance: Any = None,
    stabilization: Any = None,
    normal: Any = None,
    height: Any = None,
    time: Any = None,
    law: str = "ncp",
    method: str = "auto",
    faces: int = 4,
    pyramid: str = "inner",
) -> tuple[Floats, ...]:
    """Velocity after the step (nv,), impulses (m,), σ (m,), residual (m,), gaps (points,), iterations, status."""
    numbers = Numbers(restitution, compliance, stabilization, normal, height)
    problem = assembled(scene, q, v, tau, time_step, numbers, time)
    bounds = np.array(scene.dry_bounds) * time_step if scene.dry_bounds else None
    given = {
        "friction": friction,
        "torsional": torsional,
        "rolling": rolling,
        "lower": None if bounds is None else -bounds,
        "upper": bounds,
        "compliance": problem.compliance,
        "tolerance": tolerance,
        "iterations": iterations,
        "method": method,
    }
    if law == "lcp":
        found = solve_pyramids(scene.layout, problem.G, problem.g, **given, faces=faces, pyramid=pyramid)
    else:
        found = solve_contacts(scene.layout, problem.G, problem.g, **given, start=start, law=law)
    impulse, velocity, residual, count, status = found
    after = problem.free + problem.response(impulse)
    status = marked(status, problem.gap, *numbers)
    return after, impulse, velocity, residual, problem.gap, count, status
