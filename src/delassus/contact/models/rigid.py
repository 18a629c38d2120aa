"""The kernels of a step of time with contact: the problem, and the problem solved."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.contact.robots.assembly import Numbers, assembled
from delassus.contact.robots.scene import Scene
from delassus.contact.solvers.solve import solve_contacts

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
) -> tuple[Floats, ...]:
    """Velocity after the step (nv,), impulses (m,), σ (m,), residual (m,), gaps (points,), iterations, status."""
    numbers = Numbers(restitution, compliance, stabilization, normal, height)
    problem = assembled(scene, q, v, tau, time_step, numbers, time)
    bounds = np.array(scene.dry_bounds) * time_step if scene.dry_bounds else None
    impulse, velocity, residual, count, status = solve_contacts(
        scene.layout,
        problem.G,
        problem.g,
        friction=friction,
        torsional=torsional,
        rolling=rolling,
        lower=None if bounds is None else -bounds,
        upper=bounds,
        compliance=problem.compliance,
        start=start,
        tolerance=tolerance,
        iterations=iterations,
        law=law,
        method=method,
    )
    after = problem.free + problem.response(impulse)
    return after, impulse, velocity, residual, problem.gap, count, status
