"""Which forces of contacts explain a motion, and which torques are left for the motors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import is_one_of, real_array
from delassus.constrained.rows.counts import whole
from delassus.contact.problems.checks import ContactProblemError
from delassus.errors import short
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.step.contact.asked import Asked, resting
from delassus.step.contact.dynamics import check_cone
from delassus.step.contact.explain import explain_relaxed, explain_rigid, explain_yielding
from delassus.step.contact.origins import Origin
from delassus.step.contact.result import InContact
from delassus.step.contact.steps import Relaxed, relaxed_numbers
from delassus.step.laws.inputs import structured
from delassus.step.laws.relaxation import Relaxation

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContactExplanation(InContact):
    """Forces of contacts that explain a motion, one state or a batch, and the torques that are left.

    Attributes:
        torque: (…, nv) tau = M a + c - Jᵀ f [N·m, N], of motors, springs and dampers together.
        force: (…, m) of all rows [N, N·m]: of a contact t1, t2, n, on its first body.
        unexplained: (…, nv) what is left to do for velocities without a motor [N·m, N].
    """

    torque: Array
    force: Array
    unexplained: Array


def contact_inverse_dynamics(
    mechanism: Any,
    q: Any,
    v: Any,
    a: Any,
    *,
    contacts: Any = (),
    time_step: Any = None,
    model: str = "ncp",
    yielding: Any = None,
    passive: Any = None,
    tau: Any = None,
    rest_speed: float = 1e-6,
    method: str = "auto",
    tolerance: float = 1e-8,
    iterations: int = 1000,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    compliance: Any = None,
    stabilization: Any = 0.0,
    normal: Any = None,
    height: Any = None,
    limits: bool = False,
    joint_friction: bool = False,
    relaxation: Relaxation | None = None,
    impratio: Any = 1.0,
    cone: str = "elliptic",
    time: Any = None,
    parameters: Any = None,
) -> ContactExplanation:
    """Forces of contacts that explain accelerations, and the torques of the motors, of one state or a batch.

    Rigid contacts do not tell their forces by the motion. Those that leave least to do for velocities without a motor
    are found; where several do, some of them. Rows that give way, by `yielding` or in the model "relaxed", tell their
    forces themselves.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the step.
        a: Accelerations (…, nv) [rad/s², m/s²]: the velocity after the step is v + h a, of free and planar joints in
            their axes then.
        contacts: Where it may touch: some `Contact`.
        time_step: (…) h [s]; the model "relaxed" needs none.
        model: "ncp", "ccp" or "relaxed", as for `contact_dynamics`.
        yielding: R [1/kg], one number or (…, m), by which all rows give way.
        passive: (nv,) not zero for velocities without a motor; by default those of free joints.
        tau: (…, nv) generalised forces of passive velocities, where they are known [N·m, N], such as `passive_forces`;
            by default none.
        rest_speed: [m/s] contacts that open more slowly push, and those that slide more slowly stick.
        method: A method of `ContactProblem.solve`.
        tolerance: As for `contact_dynamics`.
        iterations: As for `contact_dynamics`.
        friction, torsional, rolling, compliance, stabilization, normal, height, limits, joint_friction: As for
            `contact_dynamics`.
        relaxation, impratio, cone, time, parameters: As for `contact_dynamics`.
    """
    if not is_one_of(model, ("ncp", "ccp", "relaxed")):
        raise ContactProblemError(
            f"there is no inverse of the model {model!r}; the models are: ncp, ccp, relaxed.", code="unknown-model"
        )
    if time_step is None and model != "relaxed":
        raise ContactProblemError(
            "time_step is missing: rigid contacts are told apart by where a step leads.", code="missing-argument"
        )
    numbers = {"friction": friction, "torsional": torsional, "rolling": rolling, "compliance": compliance}
    numbers |= {"normal": normal, "height": height}
    rest = {"stabilization": stabilization, "time": time, "parameters": parameters}
    solver = {"method": method, "tolerance": tolerance, "iterations": iterations}
    rows = {"limits": limits, "joint_friction": joint_friction, "as_in_mujoco": model == "relaxed"}
    asked = Asked.of(mechanism, (q, v, a), contacts, time_step, numbers, rest, solver, rows)
    if "restitution" in asked.numbers:
        raise ContactProblemError(
            "a strike has no inverse: leave restitution out of the contacts.", code="not-supported"
        )
    if not asked.scene.m:
        raise ContactProblemError(
            "there are no contacts, constraints or limits: rnea gives the torques.", code="nothing-to-do"
        )
    where = _passive(asked, passive)
    if model == "relaxed":
        check_cone(cone)
        given = relaxed_numbers(asked, Relaxed(relaxation, impratio, cone))
        h = np.zeros(()) if asked.step is None else asked.step
        found = explain_relaxed(asked.scene, *asked.state, h, **structured(given), cone=cone)
        return _explanation(asked, model, where, tau, *found)
    if yielding is not None:
        R = real_array("yielding", yielding)
        if np.any(R <= 0.0) or (R.ndim and R.shape[-1] not in (1, asked.scene.m)):
            raise ContactProblemError(
                f"yielding is {short(repr(yielding))}; it is positive, one number or one for each of {asked.scene.m} "
                "rows.",
                code="out-of-range",
            )
        R = np.broadcast_to(R, (*R.shape[:-1], asked.scene.m))
        found = explain_yielding(
            asked.scene, *asked.state, asked.step, **structured(asked.numbers | asked.rest), yielding=R, law=model
        )
        return _explanation(asked, model, where, tau, *found)
    torque, force, residual, gap, made, status = explain_rigid(
        asked.scene,
        *asked.state,
        asked.step,
        **structured(asked.numbers | asked.rest | asked.solver),
        passive=where,
        tau=tau,
        rest_speed=resting("rest_speed", rest_speed),
    )
    return _explanation(asked, model, where, tau, torque, force, gap, status, residual, made)


def _passive(asked: Asked, passive: Any) -> Array:
    """1 or 0 (nv,)."""
    robot: Model = asked.scene.model
    if passive is None:
        found = np.zeros(robot.nv)
        for link in links_of(robot).links:
            if link.motion.is_free:
                found[list(link.dofs)] = 1.0
        return found
    given = real_array("passive", passive)
    if given.shape != (robot.nv,):
        raise ContactProblemError(
            f"passive has shape {given.shape}; it has one number for each of {robot.nv} velocities.", code="wrong-shape"
        )
    return np.where(given != 0.0, 1.0, 0.0)


def _explanation(
    asked: Asked,
    model: str,
    passive: Array,
    tau: Any,
    torque: Array,
    force: Array,
    gap: Array,
    status: Any,
    residual: Array | None = None,
    made: Any = None,
) -> ContactExplanation:
    return ContactExplanation(
        scene=asked.scene,
        model=model,
        gap=gap,
        residuals=np.zeros_like(force) if residual is None else residual,
        iterations=whole(np.zeros(np.shape(status)) if made is None else made),
        status=whole(status),
        origin=Origin("inverse dynamics", asked.scene),
        torque=torque,
        force=force,
        unexplained=passive * (torque if tau is None else torque - np.asarray(tau)),
    )
