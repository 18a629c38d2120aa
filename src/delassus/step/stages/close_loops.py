"""Stage 7 of a step: closes loops, and restores energy and momentum of articulated robots.

A step leaves position errors e and velocity errors J v of second order in h. A few iterations with the factors of G and
M̂ at the beginning of the step remove them; each one multiplies the error by about h ω:

    q ← q ⊕ -M̂⁻¹ Jᵀ G⁻¹ e,    v ← v - M̂⁻¹ J⁺ᵀ G⁻¹ J⁺ v

with J at the beginning and J⁺ at the end. The first velocity change M̂⁻¹ f is converted to the inertia at the end, up
to terms of second order: M̂⁺⁻¹ f = 2 M̂⁻¹ f - M̂⁻¹ M̂⁺ M̂⁻¹ f. A rotating mechanism then loses no more energy than with
the projection onto the nearest admissible velocity. If the iterations do not converge, `project` computes new factors.
Last, v⁺ is corrected to the energy and momentum that the impulses imply (see `scheme.energy`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.scales import row_mobilities, row_sizes
from delassus.constrained.projection.project import project
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.constraints.basis.row_selection import RowSelection
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.manifold import integrate
from delassus.linalg.ldl import Ldl, ldl_regularized
from delassus.model.model import Model
from delassus.step.scene import Scene
from delassus.step.scheme.restoration import Allowances, restore_parts
from delassus.step.stages.assemble import StepSystem

TOLERANCE: Final = 1e-12
"""Largest error that may remain: of positions, relative to the robot's length or a radian; of velocities, relative to
the terms that cancel in a row."""

_MAX_ITERATIONS: Final = 6

_EPSILON: Final = 1e-9
"""Regularization, relative to the diagonal of the response: distributes impulses over redundant rows."""


class _Position(NamedTuple):
    """A configuration (nq,), its constraint errors (bilateral,), their norm and the previous one, and the number of
    iterations."""

    q: Any
    error: Any
    size: Any
    previous: Any
    count: Any


class _Velocity(NamedTuple):
    """A velocity (nv,), the velocities (bilateral,) at which loops open, their excess over the tolerance, and the
    number of iterations."""

    v: Any
    speed: Any
    excess: Any
    count: Any


def close_loops(
    scene: Scene,
    system: StepSystem,
    q: Any,
    v: Any,
    allowances: Allowances,
    time: Any,
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, with closed loops and restored energy."""
    if scene.is_soft:
        return q, v
    if scene.mechanism.m:
        q, v = _project_with_factors(scene, system, q, v, time)
    return restore_parts(scene.model, q, v, allowances)


def loop_factors(scene: Scene, system: StepSystem) -> Ldl:
    """Factors of the response of loop rows to each other."""
    return ldl_regularized(system.delassus_of(range(scene.m)[scene.bilateral]), _EPSILON)


def project_loops(
    scene: Scene, q: Any, v: Any, time: Any, elastic: tuple[int, ...] = (), driven: tuple[int, ...] = ()
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) that satisfy the constraints, with new factors (see `project`).

    Elastic rows, given by index, are not projected; driven velocities, given by index, stay unchanged.
    """
    rigid = _rigid_mechanism(scene, elastic)
    if not rigid.m:
        return q, v
    q, v = project(rigid, q, v, locked=_joints_of(rigid.model, driven), time=time)
    return q, v


def _project_with_factors(scene: Scene, system: StepSystem, q: Any, v: Any, time: Any) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) that satisfy the constraints."""
    mechanism = scene.mechanism
    weightless = replace(scene.model, gravity=(0.0, 0.0, 0.0))
    sizes, unit = numpy.array(row_sizes(mechanism)), numpy.sqrt(row_mobilities(mechanism))
    factors = loop_factors(scene, system)

    def measure(q: Any) -> tuple[Any, Any]:
        error = constraint_error(mechanism, q, time=time)
        return error, np.max(np.abs(error) / sizes)

    def correct_position(now: _Position) -> _Position:
        impulse = np.zeros(scene.m)
        impulse[scene.bilateral] = -factors.solve(now.error)
        further = integrate(mechanism.model, now.q, system.respond(impulse))
        error, size = measure(further)
        return _Position(further, error, size, now.size, now.count + 1.0)

    def is_open(now: _Position) -> Any:
        return (now.size > TOLERANCE) & (now.size < 0.5 * now.previous) & (now.count < _MAX_ITERATIONS)

    error, size = measure(q)
    start = _Position(q, error, size, 4.0 * size + 1.0, np.array(0.0))
    position = while_loop(is_open, correct_position, start, _MAX_ITERATIONS)
    near = position.q
    J, target = constraint_jacobian(mechanism, near, time=time), velocities_asked(mechanism, near, time)
    allowed = np.max((np.abs(J) @ np.abs(v) + np.abs(target)) / unit) * unit * TOLERANCE

    def opening_speed(v: Any) -> tuple[Any, Any]:
        speed = J @ v - target
        return speed, np.max(np.abs(speed) - allowed)

    def correction(speed: Any) -> Any:
        return system.solve(J.T @ factors.solve(speed))

    def correct_velocity(now: _Velocity) -> _Velocity:
        v = now.v - correction(now.speed)
        return _Velocity(v, *opening_speed(v), now.count + 1.0)

    def opens(now: _Velocity) -> Any:
        return (now.excess > 0.0) & (now.count < _MAX_ITERATIONS)

    change = correction(opening_speed(v)[0])
    inertia = newton_euler(weightless, near, np.zeros(scene.nv), change) + system.forces.resistance(change)  # M̂⁺ of it
    first = v - 2.0 * change + system.solve(inertia)
    velocity = while_loop(
        opens, correct_velocity, _Velocity(first, *opening_speed(first), np.array(0.0)), _MAX_ITERATIONS
    )
    fails = ~((position.size <= TOLERANCE) & (velocity.excess <= 0.0))
    return cond(fails, lambda q, v: project_loops(scene, q, v, time), (near, velocity.v), q, v)


def _rigid_mechanism(scene: Scene, elastic: tuple[int, ...]) -> Mechanism:
    """The robot with its kinematic rows only."""
    own, start, kept = scene.mechanism, scene.bilateral.start, []
    if not elastic:
        return own
    for constraint, at in zip(own.constraints, own.row_ranges(), strict=True):
        count = at.stop - at.start
        rigid = tuple(k for k in range(count) if start + at.start + k not in elastic)
        kept += [RowSelection.within(constraint, rigid, count)] if rigid else []
    return Mechanism(own.model, tuple(kept), model_constraints=False)


def _joints_of(model: Model, dofs: tuple[int, ...]) -> tuple[str, ...]:
    """The joints all of whose velocities are among the given indices."""
    joints = zip(model.joints, model.v_starts, strict=True)
    return tuple(joint.name for joint, j in joints if dofs and set(range(j, j + joint.kind.nv)) <= set(dofs))
