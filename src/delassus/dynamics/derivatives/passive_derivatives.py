"""Derivatives of passive forces: springs and dampers of joints and tendons.

A spring of a coordinate has -k on the diagonal, a damper -d; a tendon with moment arms r has -k r rᵀ and -d r rᵀ. The
compiler differentiates the other forces: springs of spherical and free joints, whose δ is not a difference of
coordinates; spatial tendons, whose moment arms depend on q; gravity compensation; and a medium. Cost: O(n).
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.forces.compensation import compensation_forces, is_compensated
from delassus.dynamics.forces.fluid import fluid_forces
from delassus.dynamics.forces.passive import joint_forces, joint_gains
from delassus.dynamics.forces.tendons import check_tendons, elastic_tendons, tendon_state
from delassus.dynamics.kinematics.manifold import coordinate_rates, parts
from delassus.model.model import Model


@kernel("(nq),(nv)->(nv,nv),(nv,nv)")
def passive_derivatives(model: Model, q: Traced, v: Traced) -> tuple[Floats, Floats]:
    """Derivatives (nv, nv) of `passive_forces`: ∂f/∂q along tangent vectors [N·m/rad, N/m], and ∂f/∂v.

    At the ends of the range of rest lengths of a tendon, derivatives are one-sided.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].

    >>> by_q, by_v = dl.derivatives.passive_derivatives(dl.load("pendulum"), [0.3], [0.1])
    >>> by_q.shape, by_v.shape
    ((1, 1), (1, 1))
    """
    stiffness, damping = joint_gains(model)
    by_q, by_v = np.array(-numpy.diag(stiffness)), np.array(-numpy.diag(damping))
    for motion, _, start in parts(model):
        at = list(range(start, start + motion.nv))
        if not motion.is_euclidean and stiffness[at].any():
            block = _block(model, q, at)
            for i, row in enumerate(at):
                for j, column in enumerate(at):
                    by_q[row, column] = block[i, j]
    check_tendons(model)
    spatial_tendons = []
    for described in elastic_tendons(model):
        tendon = tendon_state(model, described, q, v)
        r = tendon.moment_arms
        spatial_tendons += [] if described.terms else [described]
        for i in tendon.dofs:
            for j in tendon.dofs:
                if described.terms:
                    by_q[i, j] = by_q[i, j] - tendon.stiffness * (r[i] * r[j])
                by_v[i, j] = by_v[i, j] - tendon.damping * (r[i] * r[j])
    is_immersed = model.medium.is_felt
    if is_immersed:
        by_v = by_v + jacobian(lambda velocity: fluid_forces(model, q, velocity))(v)
    if spatial_tendons or is_immersed or is_compensated(model):

        def forces_after(step: Any) -> Any:
            q_moved = q + coordinate_rates(model, q, step)
            total = compensation_forces(model, q_moved)
            if is_immersed:
                total = total + fluid_forces(model, q_moved, v)
            for described in spatial_tendons:
                tendon = tendon_state(model, described, q_moved, v)
                total = tendon.add_force(total, tendon.force)
            return total

        by_q = by_q + jacobian(forces_after)(np.zeros(model.nv))
    return by_q, by_v


def _block(model: Model, q: Any, at: list[int]) -> Any:
    """The block (n, n) of ∂f/∂q of a joint's spring, for the joint's velocities `at`, without tendons."""

    def force(step: Any) -> Any:
        padded = np.zeros(model.nv)
        padded[at] = step
        return joint_forces(model, q + coordinate_rates(model, q, padded), np.zeros(model.nv))[at]

    return jacobian(force)(np.zeros(len(at)))
