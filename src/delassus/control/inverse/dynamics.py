"""Constrained inverse dynamics: torques u of actuators and forces λ of constraints that produce a motion,

    M a + c = B u + Jᵀ λ,

c includes gravity, velocity products, springs and dampers (see `passive_forces`). Actuators do not drive all
velocities: a free base has none, nor have the passive joints of a linkage. Along the directions N without actuators (Nᵀ
B = 0, the same in all states), only constraints act,

    K λ = Nᵀ (M a + c),      K = Nᵀ Jᵀ,      and then      B u = M a + c - Jᵀ λ.

This is Mistry's orthogonal decomposition, applied to B instead of Jᵀ: Jᵀ changes from state to state, while B is
constant. The remaining system is small, six equations for a legged robot with any number of joints. K has any rank. If
its rank is less than the number of rows, torques and forces are not unique, and weighted squares of torques, of forces,
or of both are minimized (Righetti). Forces that are still free are the smallest in the natural norm of rows (see
`proximal`). If K λ = Nᵀ (M a + c) has no solution, the motion is infeasible, and the result is the least-squares
solution in the metric of M⁻¹:

    minimize rᵀ M⁻¹ r,   r = M a + c - B u - Jᵀ λ,

Its torques produce, of all feasible accelerations, the one nearest to a in the metric of M. An acceleration that
violates the constraints differs from the nearest feasible one by M⁻¹ Jᵀ μ: the torques are those of the feasible one,
and the forces include μ. Rows with compliance C have the force λ = -(J a + γ)/C, which acts like inertia, and the
metric is M + Jᵀ C⁻¹ J.

O(n d) operations for M and c, and O(k² m + m² p) for each Jacobi sweep of two small decompositions, k = nv - rank B, m
rows, p ≤ m.
References: M. Mistry, J. Buchli, S. Schaal, Inverse dynamics control of floating base systems using orthogonal
decomposition (2010); L. Righetti, J. Buchli, M. Mistry, S. Schaal, Inverse dynamics control of floating-base robots
with external constraints: a unified view (2011); S. Savin, Robotics with contact (2022).
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.options import Shortcuts
from delassus.common.types import Traced
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import joint_mobilities, row_mobilities
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.control.inverse.actuated import ActuatedMechanism, actuated
from delassus.control.inverse.distribution import Forces, distribute_forces, free_torques
from delassus.control.inverse.options import InverseOptions
from delassus.control.inverse.result import ControlStatus, InverseDynamics
from delassus.control.inverse.weights import INVERSE_INPUTS, NO_INPUTS, InverseInputs
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.forces.rnea import rnea
from delassus.dynamics.mass.crba import mass_matrix
from delassus.linalg.least_squares import RANK

_MET: Final = 1e-9
"""Largest accepted residual, relative to the forces at a joint, and to the accelerations of a row."""

_ROUNDING: Final = 1e-4
"""Joints and rows with small values are compared with this fraction of the largest, scaled by inertia."""

_SHORTCUTS: Final = Shortcuts("inverse_dynamics", "mechanism q v a actuation", options=InverseOptions())


def inverse_dynamics(
    mechanism: Any,
    q: Any,
    v: Any,
    a: Any,
    *,
    actuation: Any = None,
    options: InverseOptions | None = None,
    **shortcuts: Any,
) -> InverseDynamics:
    """Torques of the actuators and forces of the constraints that produce a motion, of one state or a batch.

    Without weights, the torques are the smallest that produce the motion. With `force_weight` alone, the forces are
    minimized; with both weights, the sum of both costs. Springs and dampers of the model's joints and tendons are
    included; joint friction is not.

    Args:
        mechanism: The robot and its constraints, a model, or an `ActuatedMechanism`.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        a: Target accelerations (…, nv) [rad/s², m/s²].
        actuation: A matrix (nv, nu), names or patterns of joints, or `Actuator`s; by default the model's own, or, if it
            has none, all joints except a free base. The torque of an actuator is its force before its gear.
        options: An `InverseOptions`: distribution, mask, time, tau, parameters.
        **shortcuts: Fields of the options and of the distribution: torque_weight, torque_target, force_weight,
            force_target, rank.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> still = dl.inverse_dynamics(loop, loop.model.posture("home"), np.zeros(3), np.zeros(3), actuation="crank_joint")
    >>> still.torque.shape
    (1,)
    """
    (options,) = _SHORTCUTS.fill(shortcuts, options=options)
    choice, robot = options.distribution, actuated(mechanism, actuation)
    weights = choice.torque_weight, choice.torque_target, choice.force_weight, choice.force_target, choice.rank
    setting = InverseInputs(options.mask, options.time, options.tau, *weights)
    result: InverseDynamics = actuated_inverse_dynamics(robot, q, v, a, setting=setting, parameters=options.parameters)
    return result


@kernel(
    "(nq),(nv),(nv)->(nu),(m),(nv),(),(m)",
    inputs={"setting": INVERSE_INPUTS},
    result=InverseDynamics,
)
def actuated_inverse_dynamics(
    robot: ActuatedMechanism, q: Traced, v: Traced, a: Traced, *, setting: InverseInputs = NO_INPUTS
) -> InverseDynamics:
    """The kernel of `inverse_dynamics`, for a mechanism with its actuators; can be specialized, bound and inlined.

    Fields of `setting` are also keywords: mask, time, tau, torque_weight, torque_target, force_weight, force_target,
    rank.

    >>> cart = dl.control.ActuatedMechanism(dl.load("cart_pole"))
    >>> dl.control.actuated_inverse_dynamics(cart, np.zeros(2), np.zeros(2), np.zeros(2)).torque.shape == (cart.nu,)
    True
    """
    mask, time, tau, *_, share = setting
    forces = [rnea(robot.model, q, v, a), -passive_forces(robot.model, q, v)]
    forces += [] if tau is None else [-tau]
    b = sum(forces)
    M = mass_matrix(robot.model, q)
    choice, rank = setting.choice, RANK if share is None else share
    if robot.m:
        problem = Problem.of(robot.mechanism, q, v, np.zeros(robot.nv), mask, time)
        J, gamma = jacobian_of(problem), bias_of(problem)
        moving = J @ a + gamma
        solution = distribute_forces(robot, M, b, J, moving, choice, rank)
    else:
        J, moving = np.zeros((0, robot.nv)), np.zeros(0)
        solution = Forces(free_torques(robot, M, b, choice), np.zeros(0))
    torque, force = solution
    constraint_torque = J.T @ force
    residual = b - robot.B @ torque - constraint_torque
    inputs = [x for x in (q, v, a, mask, tau, *choice, time, share) if x is not None]
    finite = np.isfinite(sum(np.sum(x) for x in (*inputs, residual, torque, force)))
    # Forces that cancel each other, such as a weight on a spring, leave rounding errors.
    size = sum(np.abs(f) for f in forces) + numpy.abs(robot.B) @ np.abs(torque) + np.abs(J).T @ np.abs(force)
    violation = moving
    if robot.m:
        violation = moving + problem.active(problem.rows.compliance * force)
    status = _status(robot, a, size, residual, violation, np.abs(J), moving - J @ a)
    status = np.where(finite, status, float(ControlStatus.NOT_FINITE))
    torque, force = np.where(finite, torque, 0.0), np.where(finite, force, 0.0)
    return InverseDynamics(torque, force, residual, status, violation)


def _status(robot: ActuatedMechanism, a: Any, size: Any, residual: Any, violation: Any, J: Any, gamma: Any) -> Any:
    """A value of `ControlStatus` for finite results; `size` (nv,) are the forces that meet at each joint."""
    mobility = numpy.array(joint_mobilities(robot.mechanism))
    unit = 1.0 / numpy.sqrt(mobility)
    scale = np.maximum(size, _ROUNDING * np.max(size / unit) * unit)
    is_met = np.all(np.abs(residual) <= _MET * scale)
    status = np.where(is_met, float(ControlStatus.REALISED), float(ControlStatus.NEAREST))
    if not robot.m:
        return status
    rows = J @ (np.abs(a) + mobility * size) + np.abs(gamma)
    row_unit = numpy.sqrt(numpy.array(row_mobilities(robot.mechanism)))
    scale = np.maximum(rows, _ROUNDING * np.max(rows / row_unit) * row_unit)
    breaks = np.any(np.abs(violation) > _MET * scale)
    return np.where(is_met & breaks, float(ControlStatus.BREAKS_CONSTRAINTS), status)
