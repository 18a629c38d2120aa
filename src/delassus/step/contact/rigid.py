"""The kernels of a step of time with contact: the problem, and the problem solved."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.inputs import Group
from delassus.compiler.host.kernel import Floats, kernel
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.solve import solve_contacts
from delassus.contact.solvers.solve_pyramids import solve_pyramids
from delassus.step.compliant.solve import Solved
from delassus.step.contact.assembly import PointNumbers, assemble_step, reach
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.laws.inputs import CONTACT, PLANES, SOLVER, ContactPlanes, SolverInputs
from delassus.step.laws.marks import marked
from delassus.step.scene import Scene

STATE_INPUTS: Final[dict[str, Group | str]] = {
    "contact": CONTACT,
    "stabilization": "()",
    "planes": PLANES,
    "time": "()",
}
"""Optional inputs of all that assembles a problem."""


@kernel("(nq),(nv),(nv),()->(m,m),(m),(m),(points),(nv)", inputs={**STATE_INPUTS, "restitution_share": "()"})
def assemble_contacts(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    contact: ContactParameters,
    stabilization: Any = None,
    planes: ContactPlanes,
    time: Any = None,
    restitution_share: Any = None,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """G (m, m), g (m,), R (m,), gaps (points,) and the free velocity (nv,) of a step."""
    numbers = PointNumbers(contact.restitution, contact.compliance, stabilization, *planes)
    problem = assemble_step(scene, q, v, tau, time_step, numbers, time)
    g = problem.freely + problem.bias(restitution_share)
    return problem.G, g, problem.values.compliance, problem.state.gap, problem.response.free


@kernel(
    "(nq),(nv),(nv),()->(nq),(nv),(m),(m),(m),(points),(),(),()",
    inputs={**STATE_INPUTS, "solver": SOLVER},
)
def contact_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    contact: ContactParameters,
    solver: SolverInputs,
    stabilization: Any = None,
    planes: ContactPlanes,
    time: Any = None,
    law: str = "ncp",
    method: str = "auto",
    faces: int = 4,
    pyramid: str = "inner",
) -> tuple[Floats, ...]:
    """q⁺ (nq,), v⁺ (nv,), impulses (m,), σ (m,), residual (m,), gaps (points,), iterations, status, and the share of
    restitution that added no energy."""
    numbers = PointNumbers(contact.restitution, contact.compliance, stabilization, *planes)
    problem = assemble_step(scene, q, v, tau, time_step, numbers, time)
    bounds = np.array(scene.friction_bounds) * time_step if scene.friction_bounds else None
    given = {
        "friction": contact.friction,
        "torsional": contact.torsional,
        "rolling": contact.rolling,
        "lower": None if bounds is None else -bounds,
        "upper": bounds,
        "compliance": problem.compliance,
        "tolerance": solver.tolerance,
        "iterations": solver.iterations,
        "method": method,
    }

    def solve(b: Any) -> Solved:
        g = problem.freely + b
        if law == "lcp":
            found = solve_pyramids(scene.layout, problem.G, g, **given, faces=faces, pyramid=pyramid)
        else:
            found = solve_contacts(scene.layout, problem.G, g, **given, start=solver.start, law=law)
        impulse, _, residual, count, status = found
        return Solved(impulse, residual, count, status)

    strikes, share = problem.values.strikes, np.array(1.0)
    if strikes is None:
        solved, b = solve(problem.bias()), problem.bias()
    else:
        full, plastic = problem.values.value, problem.values.plastic
        nothing = Solved(np.zeros(scene.m), np.zeros(scene.m), np.array(0.0), np.array(0.0))
        solved, share = solve_without_gain(
            lambda b, _: solve(b),
            lambda x: problem.G @ x,
            problem.impact_velocity,
            strikes.any,
            full,
            plastic,
            nothing,
        )
        b = problem.bias(share)
    impulse = solved.impulse
    sigma = problem.G @ impulse + problem.freely + b
    if problem.compliance is not None:
        sigma = sigma + problem.compliance * impulse
    q_after, v_after = reach(scene.mechanism, q, problem.after(impulse), time_step)
    gap = problem.state.gap
    status = marked(solved.status, gap, *numbers)
    return q_after, v_after, impulse, sigma, solved.residual, gap, solved.count, status, share
