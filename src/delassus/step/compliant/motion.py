"""`compliant_motion`: the bare kernel of a step, for hot loops: configurations and velocities, and how it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

from delassus.compiler.host.kernel import kernel
from delassus.step.compliant.inputs import INPUTS
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.scene import Scene


class Motion(NamedTuple):
    """q⁺ (…, nq) [rad, m], v⁺ (…, nv) [rad/s, m/s], and numbers (…) of `Status`."""

    q: Any
    v: Any
    status: Any


@kernel("(nq),(nv),(nv),()->(nq),(nv),()", inputs=INPUTS, result=Motion)
def compliant_motion(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    compliance: Any = None,
    compliance_matrix: Any = None,
    damping: Any = None,
    servo_stiffness: Any = None,
    servo_damping: Any = None,
    servo_target: Any = None,
    driven_velocity: Any = None,
    restitution: Any = None,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    start: Any = None,
    tolerance: Any = None,
    iterations: Any = None,
    normal: Any = None,
    height: Any = None,
    geometric: Any = None,
    time: Any = None,
    elastic: tuple[int, ...] = (),
    driven: tuple[int, ...] = (),
    coupled: tuple[tuple[int, int], ...] = (),
    stabilization: str = "none",
    midpoint: bool = False,
    impacts: str = "newton",
    method: str = "auto",
) -> Motion:
    """A step of the compliant scheme, without checks and impulses: it can be specialized whatever rows there are.

    Args:
        scene: What `compliant_step` has found to be compiled: `step.scene`.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        alpha, beta: (…) as for `compliant_step`, and so what follows; but
        compliance, damping: (…, m) of all rows of the scene, contacts first; normals of contacts have theirs.
        compliance_matrix: (…, m, m) with the matrices of constraints that have one.
        servo_stiffness, servo_damping, servo_target: (…, nv), (…, nv) and (…, nq).
        driven_velocity: (…, nv) of driven joints.
        restitution, friction, torsional, rolling, normal, height: Of contacts.
        start, tolerance, iterations, method: Of the solver.
        geometric: (…, m) impulses of the step before, for their geometric stiffness.
        time: (…) [s].
        elastic: The rows that are elastic, by their numbers.
        driven: The velocities that are driven, by their numbers.
        coupled: The first row, and the one after the last, of constraints with a matrix.
        stabilization, midpoint, impacts: As for `compliant_step`.
    """
    found = compliant_kernel(
        scene,
        q,
        v,
        tau,
        time_step,
        alpha=alpha,
        beta=beta,
        compliance=compliance,
        compliance_matrix=compliance_matrix,
        damping=damping,
        servo_stiffness=servo_stiffness,
        servo_damping=servo_damping,
        servo_target=servo_target,
        driven_velocity=driven_velocity,
        restitution=restitution,
        friction=friction,
        torsional=torsional,
        rolling=rolling,
        start=start,
        tolerance=tolerance,
        iterations=iterations,
        normal=normal,
        height=height,
        geometric=geometric,
        time=time,
        elastic=elastic,
        driven=driven,
        coupled=coupled,
        stabilization=stabilization,
        midpoint=midpoint,
        impacts=impacts,
        method=method,
    )
    return Motion(found.q, found.v, found.status)
