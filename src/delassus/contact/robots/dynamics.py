"""A robot in contact: one step of time, and the contact problem of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from delassus.constrained.rows.counts import whole
from delassus.constrained.rows.options import check_iterations, check_method, checked_tolerance
from delassus.constrained.solvers.status import Status
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.problems.solving import MODELS
from delassus.contact.robots.numbers import numbers_of, scene_for
from delassus.contact.robots.result import ContactStep
from delassus.contact.robots.scene import Scene
from delassus.contact.robots.step import assemble_contacts, contact_step
from delassus.contact.solvers.choice import METHODS
from delassus.dynamics.aba import aba


def contact_dynamics(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    contacts: Any = (),
    time_step: Any,
    model: str = "ncp",
    method: str = "auto",
    tolerance: float = 1e-8,
    iterations: int = 1000,
    start: Any = None,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    restitution: Any = None,
    compliance: Any = None,
    stabilization: Any = 0.0,
    normal: Any = None,
    height: Any = None,
    limits: bool = False,
    joint_friction: bool = False,
    time: Any = None,
    parameters: Any = None,
) -> ContactStep:
    """Velocities after a step of time and the impulses of contacts, of one state or a batch.

    Closed loops and other constraints of the mechanism, contacts, limits and dry friction of joints are solved for
    together. Arrays of contacts have one number for each point, or one for all, and may differ from state to state.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the step.
        tau: Generalised forces (…, nv) [N·m, N].
        contacts: Where it may touch: some `Contact`.
        time_step: (…) h [s].
        model: "ncp" for Signorini's and Coulomb's laws; "ccp" for their convex relaxation.
        method: A method of `ContactProblem.solve`.
        tolerance: The residual at which a state is solved, as a share of its largest free velocity.
        iterations: How many are made at most.
        start: (…, m) impulses to start from [N·s], such as those of the step before.
        friction: (…, points) instead of the contacts' own.
        torsional: (…, points that have it) instead of the contacts' own [m].
        rolling: (…, points that have it) instead of the contacts' own [m].
        restitution: (…, points) instead of the contacts' own.
        compliance: (…, points) instead of the contacts' own [m/N].
        stabilization: (…) the share of penetrations, and of errors of constraints without gains, that a step takes
            back, from 0 to 1.
        normal: (…, points, 3) or (…, 1, 3) normals of the planes of contacts with the world, instead of their own.
        height: (…, points) heights of these planes [m], instead of their own.
        limits: Whether joints end at their limits.
        joint_friction: Whether joints have the dry friction of the model.
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, np) those of a mechanism whose model has some.
    """
    if model not in MODELS:
        raise ContactProblemError(f"there is no model {model!r}; the models are: {', '.join(MODELS)}.")
    check_method(method, METHODS)
    check_iterations(iterations)
    checked_tolerance(tolerance, 1e-8)
    scene, given = scene_for(mechanism, contacts, limits, joint_friction)
    named = {"friction": friction, "torsional": torsional, "rolling": rolling, "restitution": restitution}
    named |= {"compliance": compliance, "normal": normal, "height": height}
    numbers = numbers_of(scene, given, named)
    rest = _rest(stabilization, time, parameters)
    h = _step(time_step)
    if not scene.m:
        return _free(scene, model, q, v, tau, h, parameters)
    if start is not None and np.shape(start)[-1:] != (scene.m,):
        raise ContactProblemError(f"start has shape {np.shape(start)}; it needs {scene.m} impulses in its last axis.")
    found = contact_step(
        scene,
        q,
        v,
        tau,
        h,
        start=start,
        tolerance=float(tolerance),
        iterations=float(iterations),
        law=model,
        method=method,
        **numbers,
        **rest,
    )
    velocity, impulse, moving, residual, gap, made, status = found
    build = partial(_problem, scene, _kept((q, v, tau, h)), numbers | rest)
    return ContactStep(scene, model, velocity, impulse, gap, moving, residual, whole(made), whole(status), build)


def contact_problem(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    contacts: Any = (),
    time_step: Any,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    restitution: Any = None,
    compliance: Any = None,
    stabilization: Any = 0.0,
    normal: Any = None,
    height: Any = None,
    limits: bool = False,
    joint_friction: bool = False,
    time: Any = None,
    parameters: Any = None,
) -> ContactProblem:
    """The contact problem of a step of time, not solved; arguments as for `contact_dynamics`."""
    scene, given = scene_for(mechanism, contacts, limits, joint_friction)
    if not scene.m:
        raise ContactProblemError("there are no contacts, constraints or limits: there is nothing to solve.")
    named = {"friction": friction, "torsional": torsional, "rolling": rolling, "restitution": restitution}
    named |= {"compliance": compliance, "normal": normal, "height": height}
    numbers = numbers_of(scene, given, named) | _rest(stabilization, time, parameters)
    return _problem(scene, (q, v, tau, _step(time_step)), numbers)


def _problem(scene: Scene, state: tuple[Any, ...], numbers: dict[str, Any]) -> ContactProblem:
    cone: dict[str, Any] = {name: numbers[name] for name in ("friction", "torsional", "rolling") if name in numbers}
    rest = {name: value for name, value in numbers.items() if name not in cone}
    G, g, R, _, _ = assemble_contacts(scene, *state, **rest)
    if scene.dry_bounds:
        bounds = np.asarray(state[3])[..., None] * np.array(scene.dry_bounds)
        cone |= {"lower": -bounds, "upper": bounds}
    return ContactProblem(G, g, scene.layout.cones, **cone, compliance=R if np.any(R) else None, check=False)


def _free(scene: Scene, model: str, q: Any, v: Any, tau: Any, h: Any, parameters: Any) -> ContactStep:
    """The step of a robot that nothing touches."""
    a = aba(scene.mechanism, q, v, tau, parameters=parameters)
    velocity = v + h[..., None] * a
    batch, empty = velocity.shape[:-1], np.zeros((*velocity.shape[:-1], 0))
    status = np.where(np.isfinite(velocity).all(-1), int(Status.CONVERGED), int(Status.NOT_FINITE))
    build = partial(_problem, scene, (q, v, tau, h), {})
    return ContactStep(scene, model, velocity, empty, empty, empty, empty, np.zeros(batch, int), status, build)


def _step(time_step: Any) -> Any:
    h = np.asarray(time_step, float)
    if np.any(h <= 0.0) or np.any(np.isinf(h)):
        raise ContactProblemError(f"time_step is {time_step!r} s; it is positive and finite.")
    return h


def _rest(stabilization: Any, time: Any, parameters: Any) -> dict[str, Any]:
    share = np.asarray(stabilization, float)
    if np.any(share < 0.0) or np.any(share > 1.0):
        raise ContactProblemError(f"stabilization is {stabilization!r}; it is a share from 0 to 1.")
    given = {"stabilization": share if np.any(share) else None, "time": time, "parameters": parameters}
    return {name: value for name, value in given.items() if value is not None}


def _kept(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arrays as they are now: those of a simulation change in place."""
    return tuple(np.array(x, float) for x in arrays)
