"""A robot in contact: one step of time, and the contact problem of it."""

from __future__ import annotations

from typing import Any, Final

from delassus.common.checks import one_of
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.solvers.solve_pyramids import PYRAMID_SYSTEM
from delassus.step.contact.asked import Asked
from delassus.step.contact.origins import rigid_problem
from delassus.step.contact.steps import Relaxed, accelerations, free, relaxed, rigid, soft
from delassus.step.laws.relaxation import Relaxation
from delassus.step.laws.relaxed import CONES
from delassus.step.laws.softness import Softness

LAWS: Final = ("ncp", "ccp", "lcp", "relaxed", "soft")
"""The laws of contact."""


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
    faces: int = 4,
    pyramid: str = "inner",
    relaxation: Relaxation | None = None,
    impratio: Any = 1.0,
    cone: str = "elliptic",
    softness: Softness | None = None,
    rest_gap: float = 1e-6,
    rest_speed: float = 1e-6,
    time: Any = None,
    parameters: Any = None,
) -> Any:
    """Velocities after a step of time and the impulses of contacts, of one state or a batch: a `ContactStep`.

    With `time_step=None`, accelerations and forces instead: `ContactForces`.

    A step is one of the compliant scheme (see `compliant_step`) with α = β = 1, all of whose positions move with the
    velocity after it: M (v⁺ - v) = h (tau - c) + Jᵀ λ. Springs and dampers of joints are no part of it: add
    `passive_forces` to tau. Velocities of free and planar joints are in their axes after the step.

    Closed loops and other constraints of the mechanism, contacts, limits and dry friction of joints are solved for
    together. Arrays of contacts have one number for each point, or one for all, and may differ from state to state.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the step.
        tau: Generalised forces (…, nv) [N·m, N], those of springs and dampers (`passive_forces`) among them.
        contacts: Where it may touch: some `Contact`.
        time_step: (…) h [s], or None for accelerations and forces (see `rigid_forces`).
        model: "ncp" for Signorini's and Coulomb's laws; "ccp" for their convex relaxation; "lcp" for friction pyramids;
            "relaxed" for MuJoCo's model, in which rows give way; "soft" for springs and dampers.
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
        faces: Of a friction pyramid (model "lcp").
        pyramid: "inner" or "outer", whether it lies in the cone or around it (model "lcp").
        relaxation: How rows are relaxed, unless contacts say it themselves (model "relaxed").
        impratio: (…) by how much friction gives way less than the normal does (model "relaxed").
        cone: "elliptic" or "pyramidal" (model "relaxed").
        softness: How contacts give way, unless they say it themselves (model "soft").
        rest_gap: [m] points that are nearer to their plane touch it (without a step of time).
        rest_speed: [m/s] points that are slower rest (without a step of time).
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.
    """
    numbers = {"friction": friction, "torsional": torsional, "rolling": rolling, "restitution": restitution}
    numbers |= {"compliance": compliance, "normal": normal, "height": height}
    rest = {"stabilization": stabilization, "time": time, "parameters": parameters}
    solver = {"method": method, "tolerance": tolerance, "iterations": iterations, "start": start}
    one_of("model", model, LAWS, code="unknown-model")
    if model == "lcp":
        solver |= {"system": PYRAMID_SYSTEM, "law": "lcp"}
    rows = {"limits": limits, "joint_friction": joint_friction, "as_in_mujoco": model == "relaxed"}
    asked = Asked.of(mechanism, (q, v, tau), contacts, time_step, numbers, rest, solver, rows)
    if not asked.scene.m:
        return free(asked, model)
    if model == "relaxed":
        check_cone(cone)
        return relaxed(asked, Relaxed(relaxation, impratio, cone))
    if asked.step is None:
        if model in ("soft", "lcp"):
            raise ContactProblemError(
                f"time_step is missing: the model {model!r} makes steps.", code="missing-argument"
            )
        return accelerations(asked, model, rest_gap, rest_speed)
    return soft(asked, softness) if model == "soft" else rigid(asked, model, faces, pyramid)


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
    if time_step is None:
        raise ContactProblemError(
            "time_step is missing: the contact problem is one of a step of time.", code="missing-argument"
        )
    numbers = {"friction": friction, "torsional": torsional, "rolling": rolling, "restitution": restitution}
    numbers |= {"compliance": compliance, "normal": normal, "height": height}
    rest = {"stabilization": stabilization, "time": time, "parameters": parameters}
    rows = {"limits": limits, "joint_friction": joint_friction}
    asked = Asked.of(mechanism, (q, v, tau), contacts, time_step, numbers, rest, {}, rows)
    if not asked.scene.m:
        raise ContactProblemError(
            "there are no contacts, constraints or limits: there is nothing to solve.", code="nothing-to-do"
        )
    return rigid_problem(asked.scene, (*asked.state, asked.step), asked.numbers | asked.rest)


def check_cone(cone: Any) -> None:
    """Raise unless it is a cone of the relaxed model."""
    one_of("cone", cone, CONES)
