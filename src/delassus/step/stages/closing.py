"""Loops closed again at the end of a step, by what is known of its beginning.

A step leaves errors of second order in its length, e of positions, and J v of velocities. The factors of the step's
beginning, G and M̂, take them off in a few iterations, each of which leaves a share h ω of the error:

    q ← q ⊕ -M̂⁻¹ Jᵀ G⁻¹ e,    v ← v - M̂⁻¹ J⁺ᵀ G⁻¹ J⁺ v

with J of the beginning and J⁺ of the end. The first of the changes of v, M̂⁻¹ f, is told with the inertia of the end,
M̂⁺⁻¹ f = 2 M̂⁻¹ f - M̂⁻¹ M̂⁺ M̂⁻¹ f but for terms of second order: so a mechanism that turns loses no more energy than the
nearest velocity has less of it. Where iterations are not enough, `project` begins anew with factors of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.scales import row_mobilities, row_sizes
from delassus.constrained.projection.project import project
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.manifold import integrate
from delassus.linalg.ldl import Ldl, ldl_regularized
from delassus.step.scene import Scene
from delassus.step.stages.problem import Problem

TOLERANCE: Final = 1e-12
"""What errors may remain, as a share of the robot's length or a radian, and of the velocities that cancel in rows."""

_PATIENCE: Final = 6

_EPSILON: Final = 1e-9
"""Of rows' own responses: redundant ones share what is asked of them."""


def loop_factors(scene: Scene, S: Any) -> Ldl:
    """The factors of how rows of loops respond to each other, out of the response S of all motions."""
    first = scene.contact_end + len(S) - scene.m
    motions = list(range(first, first + scene.mechanism.m))
    return ldl_regularized(S[motions][:, motions], _EPSILON)


def closed(scene: Scene, problem: Problem, q: Any, v: Any, time: Any) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) that meet the constraints, near those at the end of a step."""
    mechanism, loops = scene.mechanism, scene.mechanism.m
    weightless = replace(scene.model, gravity=(0.0, 0.0, 0.0))
    sizes, unit = numpy.array(row_sizes(mechanism)), numpy.sqrt(row_mobilities(mechanism))
    own = slice(scene.contact_end, scene.contact_end + loops)
    factors = loop_factors(scene, problem.S)

    def off(q: Any) -> tuple[Any, Any]:
        e = constraint_error(mechanism, q, time=time)
        return e, np.max(np.abs(e) / sizes)

    def nearer(carry: Any) -> Any:
        trial, e, size, _, made = carry
        impulse = np.zeros(scene.m)
        impulse[own] = -factors.solve(e)
        further = integrate(mechanism.model, trial, problem.response(impulse))
        e, left = off(further)
        return further, e, left, size, made + 1.0

    def goes_on(carry: Any) -> Any:
        return (carry[2] > TOLERANCE) & (carry[2] < 0.5 * carry[3]) & (carry[4] < _PATIENCE)

    e, size = off(q)
    near, _, size, _, _ = while_loop(goes_on, nearer, (q, e, size, 4.0 * size + 1.0, np.array(0.0)), _PATIENCE)
    J, asked = constraint_jacobian(mechanism, near, time=time), velocities_asked(mechanism, near, time)
    moving = np.max((np.abs(J) @ np.abs(v) + np.abs(asked)) / unit) * unit * TOLERANCE

    def opening(v: Any) -> tuple[Any, Any]:
        speed = J @ v - asked
        return speed, np.max(np.abs(speed) - moving)

    def taken_off(speed: Any) -> Any:
        return problem.solve(J.T @ factors.solve(speed))

    def slower(carry: Any) -> Any:
        v = carry[0] - taken_off(carry[1])
        return v, *opening(v), carry[3] + 1.0

    def opens(carry: Any) -> Any:
        return (carry[2] > 0.0) & (carry[3] < _PATIENCE)

    change = taken_off(opening(v)[0])
    inertia = newton_euler(weightless, near, np.zeros(scene.nv), change) + problem.driven.resistance(change)  # M̂⁺ of it
    first = v - 2.0 * change + problem.solve(inertia)
    slow, _, fast, _ = while_loop(opens, slower, (first, *opening(first), np.array(0.0)), _PATIENCE)
    bad = ~((size <= TOLERANCE) & (fast <= 0.0))
    return cond(bad, lambda q, v: tuple(project(mechanism, q, v, time=time)), (near, slow), q, v)
