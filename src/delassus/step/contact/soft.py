"""The soft contact law: forces are explicit functions of penetration and velocity.

    f_n = max(-k p - d ṗ, 0)  if the gap p is negative,      f_t = -friction · f_n · v_t / √(‖v_t‖² + v_s²)

Moments of torsional and rolling friction have the form of f_t, with their own coefficients. Forces are evaluated at the
start of the step, so it is stable only for h < 2 √(m/k) and h < 2 m/d, with the effective mass m of the robot at the
point. Constraints of the mechanism, joint limits and joint friction are rigid and are solved with these forces known.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Group
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Friction
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.solve import solve_contacts
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.assemble import assemble
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.types import ConeInputs, StepSetup
from delassus.step.contact.rigid import STEP, row_inputs
from delassus.step.laws.finite_flags import flag_not_finite
from delassus.step.laws.inputs import CONES, NOTHING, SOLVER, ContactInputs, surroundings
from delassus.step.points.coefficients import coefficients_of
from delassus.step.scene import Scene
from delassus.step.scheme.components import components
from delassus.step.scheme.manifold_step import integrate_velocity


class PointSoftness(NamedTuple):
    """Softness of points: stiffness [N/m], damping [N·s/m] and slip speed [m/s], each (points,)."""

    stiffness: Any = None
    damping: Any = None
    slip_speed: Any = None


_SOFTNESS: Final = Group(PointSoftness, stiffness="(points)", damping="(points)", slip_speed="(points)")


@kernel(
    "(nq),(nv),(nv),()->(nq),(nv),(m),(m),(m),(points),(),()",
    inputs={"surroundings": surroundings(CONES), "solver": SOLVER, "softness": _SOFTNESS},
)
def soft_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    solver: SolverInputs,
    softness: PointSoftness,
    method: str = "auto",
) -> tuple[Floats, ...]:
    """q⁺ (nq,), v⁺ (nv,), impulses (m,), σ (m,), residual (m,), gaps (points,), iterations, status."""
    (friction, torsional, rolling, *_), stabilization, planes, time = surroundings
    stiffness, damping, slip_speed = softness
    kinematics, parts = RowKinematics.of(scene, scene.on_planes(*planes), q, v, time), components(scene.mechanism, q)
    inputs = row_inputs(scene, time_step, None, None, stabilization)
    system = assemble(kinematics, v, StepSetup(Forces(tau), inputs, ConeInputs(), STEP, parts))
    moving, gaps = kinematics.rate, kinematics.gap
    impulse = np.zeros(scene.m)
    for k, (own, others) in enumerate(coefficients_of(scene, friction, torsional, rolling)):
        gap = gaps[k]
        push = np.maximum(-stiffness[k] * gap - damping[k] * moving[own[2]], 0.0)
        push = np.where(gap < 0.0, push, 0.0)
        impulse[own[2]] = time_step * push
        for rows, coefficient in _ways(own, others):
            speed = np.sqrt(sum(moving[row] * moving[row] for row in rows) + slip_speed[k] * slip_speed[k])
            for row in rows:
                impulse[row] = -time_step * coefficient * push * moving[row] / speed
    residual, count = np.zeros(scene.m), np.array(0.0)
    status = np.array(float(Status.CONVERGED))
    at = scene.bilateral.start
    free = system.after + system.values.bias
    g = free + system.G @ impulse
    if at < scene.m:
        bounds = np.array(scene.friction_bounds) * time_step if scene.friction_bounds else None
        solution = solve_contacts(
            Layout(tuple(cone for cone in scene.layout.cones if not isinstance(cone, Friction))),
            system.G[at:, at:],
            g[at:],
            lower=None if bounds is None else -bounds,
            upper=bounds,
            compliance=system.values.compliance[at:] if system.values.yields else None,
            solver=solver._replace(start=None if solver.start is None else solver.start[at:]),
            method=method,
        )
        impulse[at:], residual[at:], count, status = solution[0], solution[2], solution[3], solution[4]
    after = system.free_velocity + system.response.respond(impulse)
    finite = np.isfinite(np.sum(after) + np.sum(impulse))
    status = flag_not_finite(np.where(finite, status, float(Status.NOT_FINITE)), gaps)
    q_end, v_end, _ = integrate_velocity(scene.model, parts, q, after, time_step)
    return q_end, v_end, impulse, free + system.G @ impulse, residual, gaps, count, status


def _ways(own: range, others: list[Any]) -> list[tuple[list[int], Any]]:
    """The groups of rows with a common friction limit, and their coefficients: sliding, spinning, rolling."""
    ways = [(list(own[:2]), others[0])]
    if len(own) > 3:
        ways.append(([own[3]], others[2]))
    if len(own) > 4:
        ways.append((list(own[4:]), others[3]))
    return ways
