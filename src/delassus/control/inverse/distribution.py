"""Load distribution: actuator torques and constraint forces where they are not unique, by weights.

u and λ of b = B u + Jᵀ λ; see `dynamics` for the equations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.delassus.scales import row_mobilities
from delassus.control.inverse.actuated import ActuatedMechanism
from delassus.linalg.ldl import Ldl, ldl
from delassus.linalg.staged_least_squares import first_stage, second_stage


class Choice(NamedTuple):
    """Weights and targets of torques and forces; None for the defaults."""

    torque_weight: Any = None
    torque_target: Any = None
    force_weight: Any = None
    force_target: Any = None

    @property
    def weights_forces_only(self) -> bool:
        """Whether only forces have weights."""
        return self.force_weight is not None and self.torque_weight is None and self.torque_target is None


class Forces(NamedTuple):
    """u (nu,) and λ (m,)."""

    torque: Any
    force: Any


def distribute_forces(
    robot: ActuatedMechanism, M: Any, b: Any, J: Any, moving: Any, choice: Choice, rank: Any
) -> Forces:
    """u and λ of b = B u + Jᵀ λ, for b = M a + c (nv,) and J a + γ = moving (m,)."""
    compliance = robot.mechanism_compliance
    soft, compliant_force = compliance > 0.0, np.zeros(robot.m)
    if numpy.any(soft):
        give = numpy.where(soft, 1.0 / numpy.where(soft, compliance, 1.0), 0.0)
        compliant_force, M = -moving * give, M + J.T @ (J * give[:, None])
    target = compliant_force if choice.force_target is None else np.where(soft, compliant_force, choice.force_target)
    load = b - J.T @ target
    rigid = J * numpy.where(soft, 0.0, 1.0)[:, None]
    weight = 1.0 / numpy.sqrt(numpy.array(row_mobilities(robot.mechanism)))
    Y = rigid.T * weight  # x = λ / weight, so that its entries are comparable
    N, S = robot.passive, passive_inertia(robot, M)
    stage = first_stage(S.whiten(N.T @ Y), S.whiten(N.T @ load), rank)
    actuated_part = _reachable(robot, M, S, load - Y @ stage.x) + Y @ stage.x
    rows, right = _cost(robot, Y, actuated_part, weight, choice)
    x = second_stage(stage, rows, right)
    return Forces(_torques_of(robot, actuated_part - Y @ x, choice), target + weight * x)


def passive_inertia(robot: ActuatedMechanism, M: Any) -> Ldl:
    """The factors of Nᵀ M N (k, k), the inertia along directions without actuators."""
    N = robot.passive
    return ldl(N.T @ M @ N)


def _reachable(robot: ActuatedMechanism, M: Any, S: Ldl, r: Any) -> Any:
    """The component of r (nv,) in the range of the actuators, nearest in the metric of M⁻¹."""
    N = robot.passive
    if not N.shape[1]:
        return r
    return r - M @ (N @ S.solve(N.T @ r))


def free_torques(robot: ActuatedMechanism, M: Any, b: Any, choice: Choice) -> Any:
    """u (nu,) without constraints."""
    return _torques_of(robot, _reachable(robot, M, passive_inertia(robot, M), b), choice)


def _torques_of(robot: ActuatedMechanism, generalized_force: Any, choice: Choice) -> Any:
    """u (nu,) with B u = `pushed` (nv,), the smallest if actuators are redundant."""
    if robot.rank == robot.nu:
        return robot.inverse @ generalized_force
    # B u = Q R u for orthonormal Q, R of full row rank: u = u* + W⁻¹ Rᵀ (R W⁻¹ Rᵀ)⁻¹ (Qᵀ b - R u*).
    Q, R, weight = robot.reach, robot.reach.T @ robot.B, _torque_weight(robot, choice)
    target = np.zeros(robot.nu) if choice.torque_target is None else choice.torque_target
    mismatch = Q.T @ generalized_force - R @ target
    return target + (R.T @ ldl((R / weight) @ R.T).solve(mismatch)) / weight


def _torque_weight(robot: ActuatedMechanism, choice: Choice) -> Any:
    return robot.default_weight if choice.torque_weight is None else choice.torque_weight


def _cost(robot: ActuatedMechanism, Y: Any, actuated_part: Any, weight: Any, choice: Choice) -> tuple[Any, Any]:
    """F (p, m) and t (p,) of the cost |F x - t|², which is minimized over the free directions of x."""
    rows, right = [], []
    if not choice.weights_forces_only:
        W = _torque_weight(robot, choice)
        if robot.rank == robot.nu:
            F, t = robot.inverse @ Y, robot.inverse @ actuated_part
            t = t if choice.torque_target is None else t - choice.torque_target
            scale = np.sqrt(W)
            rows, right = [F * scale[:, None]], [t * scale]
        else:
            Q, R = robot.reach, robot.reach.T @ robot.B
            S = ldl((R / W) @ R.T)
            t = Q.T @ actuated_part
            t = t if choice.torque_target is None else t - R @ choice.torque_target
            rows, right = [S.whiten(Q.T @ Y)], [S.whiten(t)]
    if choice.force_weight is not None:
        rows.append(np.diag(np.sqrt(choice.force_weight) * weight))
        right.append(np.zeros(robot.m))
    return np.concatenate(rows), np.concatenate(right)
