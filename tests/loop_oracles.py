"""Closed loops by Pinocchio: rows and their bias from its frames, the dense answer, and its own solvers.

Of a loop, r is the gap, ṙ = J v its velocity, r̈ = J a + γ its acceleration, all in the axes of the first frame c₁:

- point:       ṙ = R₁ᵀ (ṗ₁ - ṗ₂),       r̈ = R₁ᵀ (p̈₁ - p̈₂), classical accelerations;
- weld, hinge: ṙ = Ad(c₁)⁻¹ (v₁ - v₂),   r̈ = dṙ/dt = (a₁ - a₂)|c₁ + v₁|c₁ × v₂|c₁, spatial ones.

Rows and bias are made of Jacobians and accelerations of frames, not of Pinocchio's constraints. Every function makes
Data of its own, since what is left in Data by one call is felt by the next one.
"""

from typing import Any

import numpy as np
import pinocchio as pin

import delassus as dl
from delassus.model.model import Model
from delassus.model.parts import WORLD
from in_pinocchio import Loop, rigid_constraints, to_pinocchio
from mechanisms import Dense


def jacobian(theirs: pin.Model, loops: tuple[Loop, ...], q: Any) -> Any:
    """J (m, nv) at a configuration in Pinocchio's layout."""
    data = theirs.createData()
    pin.computeJointJacobians(theirs, data, q)
    pin.updateFramePlacements(theirs, data)
    return np.concatenate([_jacobian(theirs, data, loop)[loop.chosen] for loop in loops])


def _jacobian(theirs: pin.Model, data: pin.Data, loop: Loop) -> Any:
    one, other = _frames(theirs, loop)
    J = pin.getFrameJacobian(theirs, data, one, pin.LOCAL)
    if other is None:
        return J
    J_other = pin.getFrameJacobian(theirs, data, other, pin.LOCAL)
    inner = data.oMf[one].actInv(data.oMf[other])
    if loop.kind == "weld":
        return J - inner.action @ J_other
    return J - np.kron(np.eye(2), inner.rotation) @ J_other  # each frame at its own origin


def bias(theirs: pin.Model, loops: tuple[Loop, ...], q: Any, v: Any) -> Any:
    """γ (m,): accelerations of the gaps when no joint accelerates."""
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q, v, np.zeros(theirs.nv))
    pin.updateFramePlacements(theirs, data)
    return np.concatenate([_bias(theirs, data, loop)[loop.chosen] for loop in loops])


def _bias(theirs: pin.Model, data: pin.Data, loop: Loop) -> Any:
    one, other = _frames(theirs, loop)
    acceleration = pin.getFrameAcceleration if loop.kind == "weld" else pin.getFrameClassicalAcceleration
    a = acceleration(theirs, data, one, pin.LOCAL)
    if other is None:
        return a.vector
    a_other = acceleration(theirs, data, other, pin.LOCAL)
    inner = data.oMf[one].actInv(data.oMf[other])
    v, v_other = (pin.getFrameVelocity(theirs, data, frame, pin.LOCAL) for frame in (one, other))
    if loop.kind == "weld":
        v_other = inner.act(v_other)
        return (a - inner.act(a_other) + (v - v_other).cross(v_other)).vector
    R = inner.rotation
    angular = a.angular - R @ a_other.angular + np.cross(v.angular, R @ v_other.angular)
    return np.concatenate([a.linear - R @ a_other.linear, angular])


def gaps(theirs: pin.Model, loops: tuple[Loop, ...], q: Any) -> Any:
    """How far the rows are from closed [m, rad], in the axes of the first frames; zero for what the world holds."""
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, q)
    return np.concatenate([_gap(theirs, data, loop) for loop in loops])


def _gap(theirs: pin.Model, data: pin.Data, loop: Loop) -> Any:
    one, other = _frames(theirs, loop)
    if other is None:
        return np.zeros(len(loop.chosen))
    between = data.oMf[one].actInv(data.oMf[other])
    if loop.kind == "point":
        return -between.translation[loop.chosen]
    if loop.kind == "hinge":  # what is left once the best turn about the axis is taken out
        k = "xyz".index(loop.axis)
        tilt = np.cross(between.rotation[:, k], np.eye(3)[k])
        return np.concatenate([-between.translation, tilt])[loop.chosen]
    return -pin.log6(between).vector[loop.chosen]


def close(model: Model, loops: tuple[Loop, ...], q: Any) -> Any:
    """The configuration near q in which loops are closed, by Newton's method; it needs a pose of full rank nearby."""
    theirs, pq = to_pinocchio(model), dl.q_to_pinocchio(model, q)
    for _ in range(30):
        gap = gaps(theirs, loops, pq)
        if np.max(abs(gap)) < 1e-14:
            break
        pq = pin.integrate(theirs, pq, -np.linalg.pinv(jacobian(theirs, loops, pq), rcond=1e-8) @ gap)
    return dl.q_from_pinocchio(model, pq)


def dense(model: Model, loops: tuple[Loop, ...], q: Any, v: Any, tau: Any) -> Dense:
    """M, h, J, γ of a model with loops; its `answer` is that of Gauss' principle, the rank decided by SVD."""
    theirs, pq = to_pinocchio(model), dl.q_to_pinocchio(model, q)
    h = tau - pin.nonLinearEffects(theirs, theirs.createData(), pq, v)
    return Dense(mass_matrix(theirs, pq), h, jacobian(theirs, loops, pq), bias(theirs, loops, pq, v))


def mass_matrix(theirs: pin.Model, q: Any) -> Any:
    """M (nv, nv) by columns of inverse dynamics: `pin.crba` is wrong where the joints are not in depth-first order."""
    rest = np.zeros(theirs.nv)
    gravity = pin.rnea(theirs, theirs.createData(), q, rest, rest)
    return np.stack([pin.rnea(theirs, theirs.createData(), q, rest, e) - gravity for e in np.eye(theirs.nv)], axis=1)


def constraint_dynamics(
    model: Model, loops: tuple[Loop, ...], q: Any, v: Any, tau: Any, mu: float = 1e-6, iterations: int = 10
) -> tuple[Any, Any]:
    """Accelerations (nv,) and forces (m,) by `pin.constraintDynamics`; points and welds with all rows only."""
    if not is_depth_first(model):
        raise ValueError(
            f"the joints of {model.name!r} are not in depth-first order, without which constraintDynamics is wrong."
        )
    theirs, data, models, datas, settings = _setting(model, loops, mu, iterations)
    pin.initConstraintDynamics(theirs, data, models, datas)
    a = pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(model, q), v, tau, models, datas, settings)
    return a.copy(), data.lambda_c.copy()


def lcaba(
    model: Model, loops: tuple[Loop, ...], q: Any, v: Any, tau: Any, mu: float = 1e-6, iterations: int = 10
) -> Any:
    """Accelerations (nv,) by `pin.lcaba`; points and welds with all rows only.

    It divides by μ, which costs digits: 1e-6 leaves eight or so. With Data that has served before, every second answer
    is wrong where loops have welds, and without an ordering it ends the process.
    """
    theirs, data, models, datas, settings = _setting(model, loops, mu, iterations)
    pin.computeJointMinimalOrdering(theirs, data, models)
    return pin.lcaba(theirs, data, dl.q_to_pinocchio(model, q), v, tau, models, datas, settings).copy()


def is_depth_first(model: Model) -> bool:
    """Whether every joint comes right after its parent's last descendant: then subtrees are contiguous."""
    way: list[int] = [WORLD]
    for i, joint in enumerate(model.joints):
        if joint.parent not in way:
            return False
        way = [*way[: way.index(joint.parent) + 1], i]
    return True


def _setting(model: Model, loops: tuple[Loop, ...], mu: float, iterations: int) -> tuple[Any, ...]:
    """Their model, new data, constraints, and settings that stop after a number of iterations and not before."""
    theirs = to_pinocchio(model)
    return (
        theirs,
        theirs.createData(),
        *rigid_constraints(theirs, loops),
        pin.ProximalSettings(0.0, 0.0, mu, iterations),
    )


def _frames(theirs: pin.Model, loop: Loop) -> tuple[int, int | None]:
    other = None if loop.frame2 is None else theirs.getFrameId(loop.frame2)
    return theirs.getFrameId(loop.frame1), other
