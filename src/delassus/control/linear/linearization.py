"""Linearization of constrained dynamics about a state, in independent coordinates.

The states that satisfy the constraints, J v = 0 and zero position errors, form a manifold. Nearby states are

    q ⊕ Z ξ,      v + Z η + S ξ,      S = -J⁺ ∂(J v)/∂q Z,

where Z (nv, p) is a basis of the null space of J, orthonormal in the metric of D = diag M, at any rank of J, and S
keeps the velocity consistent after a displacement. Along a motion, Z is transported such that Zᵀ D Ż = 0, so Ż = -J⁺ J̇
Z. With the derivatives of constrained dynamics (see `constrained_derivatives`)

    ξ̇ = η - Zᵀ D ad(v) Z ξ,
    η̇ = Zᵀ D (∂a/∂q Z + ∂a/∂v S) ξ + Żᵀ D S ξ + Zᵀ D ∂a/∂v Z η + Zᵀ D ∂a/∂tau B u,

ad(v) is the rotation rate of tangent vectors of rotating joints. Springs and dampers of joints and tendons are forces
f(q, v) in addition to tau: ∂a/∂q includes ∂a/∂tau ∂f/∂q, and ∂a/∂v likewise. At rest S and Ż vanish. The rank is
determined from singular values of J, with rows scaled by mobility and joints by D, so that it is independent of units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.common.checks import TIME_STEPS, array_of_shape, number_in_range, real_array
from delassus.common.options import Shortcuts
from delassus.common.types import ArrayLike, Traced
from delassus.compiler.tracing.trace import current
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.solvers.derivatives import constrained_derivatives
from delassus.constrained.solvers.dynamics import constrained_dynamics
from delassus.constraints.mechanism.mechanism import Mechanism, Robot
from delassus.constraints.mechanism.rows import compliance_of
from delassus.control.inverse.actuated import ActuatedMechanism, actuated
from delassus.control.inverse.options import LinearizationOptions
from delassus.control.linear.constraints import LinearizationError, check_constraints, constraint_rates
from delassus.control.linear.exponential import discretize
from delassus.dynamics.derivatives.passive_derivatives import passive_derivatives
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.kinematics.manifold import difference, integrate, parts
from delassus.dynamics.mass.crba import crba
from delassus.linalg.least_squares import RANK
from delassus.model.model import Model
from delassus.spatial.motions import motion_cross

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linearization:
    """A linear model x' = A x + B u at a state, x = (ξ, η) its freedoms and their velocities; one or a batch.

    Attributes:
        A: (…, 2p, 2p) rate of x per x, or, with a `time_step`, the next x per x.
        B: (…, 2p, nu) likewise, per change of the actuators' forces.
        drift: (…, 2p) rate of the state at the linearization point: zero in an equilibrium.
        basis: Z (…, nv, p).
        lift: S (…, nv, p), zero at rest.
        metric: D (…, nv).
        q, v, torque: The state, and the forces of the actuators.
        robot: The mechanism with its actuators.
        time_step: [s] during which inputs are constant; None for rates.

    >>> cart = dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    >>> dl.control.linearize(cart, np.zeros(2)).B.shape
    (4, 1)
    """

    A: Floats
    B: Floats
    drift: Floats
    basis: Floats
    lift: Floats
    metric: Floats
    q: Floats
    v: Floats
    torque: Floats
    robot: ActuatedMechanism
    time_step: float | None = None

    @property
    def freedoms(self) -> int:
        """p, the number of freedoms."""
        return int(self.basis.shape[-1])

    def coordinates(self, q: Traced, v: Traced) -> Traced:
        """x (…, 2p) of states near the linearization point; inside kernels, of one state."""
        projector = self.basis * self.metric[..., None]
        if current() is None:
            q, v = _check_size("q", q, self.robot.nq), _check_size("v", v, self.robot.nv)
        displacement, velocity_change = difference(self.robot.mechanism.plain.model, self.q, q), dnp.asarray(v) - self.v
        if projector.ndim == 2:
            return dnp.concatenate([displacement @ projector, velocity_change @ projector], -1)
        return np.concatenate([np.matvec(projector.mT, displacement), np.matvec(projector.mT, velocity_change)], -1)

    def state(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """q (…, nq) and v (…, nv) of coordinates (…, 2p); they satisfy the constraints to first order."""
        p = self.freedoms
        x = _check_size("x", x, 2 * p)
        xi, eta = x[..., :p], x[..., p:]
        q: Floats = integrate(self.robot.mechanism.plain.model, self.q, np.matvec(self.basis, xi))
        return q, self.v + np.matvec(self.basis, eta) + np.matvec(self.lift, xi)

    def discrete(self, time_step: float) -> Linearization:
        """Discretize with a time step [s] during which the actuators' forces are constant; exact for the linear
        model.
        """
        if self.time_step is not None:
            raise LinearizationError(
                f"the model has a time step of {self.time_step:g} s already.", code="conflicting-arguments"
            )
        time_step = number_in_range("time_step", time_step, TIME_STEPS)
        A, B = discretize(self.A, self.B, time_step)
        return replace(self, A=A, B=B, time_step=time_step)


_SHORTCUTS: Final = Shortcuts("linearize", "mechanism q v torque actuation time_step", options=LinearizationOptions())


def linearize(
    mechanism: Robot | ActuatedMechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    torque: ArrayLike | None = None,
    *,
    actuation: Any = None,
    time_step: float | None = None,
    options: LinearizationOptions | None = None,
    **shortcuts: Any,
) -> Linearization:
    """Linearize a constrained robot at a state, in independent coordinates; one state or a batch.

    Springs and dampers of joints and tendons are included; joint friction, which has no derivative at rest, is not.

    Args:
        mechanism: The robot and its constraints, a model, or an `ActuatedMechanism`.
        q: Configurations (…, nq) [rad, m] that satisfy the constraints.
        v: Velocities (…, nv) [rad/s, m/s] that satisfy the constraints; by default zero.
        torque: (…, nu) forces of the actuators [N·m, N]; by default zero. `gravity_compensation` computes those at
            rest.
        actuation: As for `inverse_dynamics`.
        time_step: [s] for a discrete model with piecewise constant inputs; by default rates.
        options: A `LinearizationOptions`: tau, time, parameters.
        **shortcuts: tau, time, parameters (options).

    Raises:
        LinearizationError: If a state violates the constraints, or the model does not exist.

    >>> cart = dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    >>> dl.control.linearize(cart, np.zeros(2)).A.shape
    (4, 4)
    """
    (options,) = _SHORTCUTS.fill(shortcuts, options=options)
    tau, time, parameters = options.tau, options.time, options.parameters
    robot = actuated(mechanism, actuation)
    model, plain_mechanism = robot.mechanism.plain.model, robot.mechanism
    for constraint in plain_mechanism.constraints:
        if not constraint.holds_positions:
            raise LinearizationError(
                f"the constraint {constraint.label!r} constrains only velocities, so positions and velocities have "
                "different freedoms, which linearize does not support.",
                code="not-supported",
            )
    q, v = real_array("q", q), np.zeros(robot.nv) if v is None else real_array("v", v)
    torque = np.zeros(robot.nu) if torque is None else real_array("torque", torque)
    for name, x, size in (("q", q, robot.nq), ("v", v, robot.nv), ("torque", torque, robot.nu)):
        _check_size(name, x, size)
    total = np.matvec(robot.B, torque) + (0.0 if tau is None else _check_size("tau", tau, robot.nv))
    inputs: dict[str, Any] = {
        name: real_array(name, values)
        for name, values in (("time", time), ("parameters", parameters))
        if values is not None
    }
    if not all(np.all(np.isfinite(x)) for x in (q, v, total)):
        raise LinearizationError("the state or its torques are not finite numbers.", code="not-finite")
    input_shapes = (np.shape(inputs.get("time", 0.0)), np.shape(inputs.get("parameters", 0.0))[:-1])
    try:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], total.shape[:-1], *input_shapes)
    except ValueError:
        raise LinearizationError(
            "the batch axes of q, v, torques, time and parameters do not broadcast.", code="batch-mismatch"
        ) from None
    q, v, total = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v, total))
    check_constraints(plain_mechanism, q, v, inputs)
    total, (by_q, by_v) = total + passive_forces(model, q, v), passive_derivatives(model, q, v)
    a_q, a_v, a_tau, *_ = constrained_derivatives(plain_mechanism, q, v, total, converged=True, iterations=10, **inputs)
    a_q, a_v = a_q + a_tau @ by_q, a_v + a_tau @ by_v
    a = constrained_dynamics(plain_mechanism, q, v, total, **inputs).acceleration
    D = np.diagonal(crba(model, q), axis1=-2, axis2=-1)
    rigid = np.flatnonzero(compliance_of(plain_mechanism) == 0.0)
    Z, pseudo_inverse = _basis(plain_mechanism, rigid, q, D, inputs)
    jacobian_rate, rate = (
        constraint_rates(plain_mechanism, q, v, **inputs) if len(rigid) and np.any(v) else (None, None)
    )
    S = np.zeros_like(Z) if jacobian_rate is None else -pseudo_inverse @ jacobian_rate[..., rigid, :] @ Z
    Z_rate = np.zeros_like(Z) if rate is None else -pseudo_inverse @ rate[..., rigid, :] @ Z
    projector = (Z * D[..., None]).mT
    p = Z.shape[-1]
    A = np.zeros((*batch, 2 * p, 2 * p))
    A[..., :p, :p] = -projector @ _turning(model, v) @ Z
    A[..., :p, p:] = np.eye(p)
    A[..., p:, :p] = projector @ (a_q @ Z + a_v @ S) + (Z_rate * D[..., None]).mT @ S
    A[..., p:, p:] = projector @ a_v @ Z
    B = np.concatenate([np.zeros((*batch, p, robot.nu)), projector @ a_tau @ robot.B], -2)
    drift = np.concatenate([np.matvec(projector, v), np.matvec(projector, a)], -1)
    result = Linearization(A, B, drift, Z, S, D, q, v, np.broadcast_to(torque, (*batch, robot.nu)), robot)
    return result if time_step is None else result.discrete(time_step)


def _check_size(name: str, value: Any, size: int) -> Floats:
    return array_of_shape(name, value, (..., size))


def _basis(mechanism: Mechanism, rigid: Any, q: Floats, D: Floats, inputs: dict[str, Any]) -> tuple[Floats, Floats]:
    """Z (…, nv, p), and J⁺ (…, nv, rigid rows), both in the metric of D; compliant rows remove no freedoms."""
    root = np.sqrt(D)
    if not len(rigid):
        Z = np.zeros((*D.shape, D.shape[-1]))
        Z[..., range(D.shape[-1]), range(D.shape[-1])] = 1.0 / root
        return Z, np.zeros((*D.shape, 0))
    weight = 1.0 / np.sqrt(row_mobilities(mechanism))[rigid]
    J = constraint_jacobian(mechanism, q, **inputs)[..., rigid, :] * weight[:, None] / root[..., None, :]
    U, s, Vt = np.linalg.svd(J)
    is_independent = s > np.sqrt(RANK) * np.maximum(np.max(s, -1, keepdims=True), 1.0)
    ranks = np.unique(np.sum(is_independent, -1))
    if len(ranks) > 1:
        raise LinearizationError(
            f"the states have {', '.join(str(mechanism.nv - r) for r in ranks)} freedoms; linearize them one by one.",
            code="not-supported",
        )
    r = int(ranks[0]) if len(ranks) else 0
    Z = Vt[..., r:, :].mT / root[..., None]
    pseudo_inverse = (Vt[..., :r, :].mT / s[..., None, :r]) @ U[..., :r].mT * weight / root[..., None]
    return Z, pseudo_inverse


def _turning(model: Model, v: Floats) -> Floats:
    """ad(v) (…, nv, nv): tangent vectors of rotating joints change at the rate -ad(v), with the joint's frame."""
    matrix = np.zeros((*v.shape, v.shape[-1]))
    for motion, _, start in parts(model):
        if motion.is_euclidean:
            continue
        directions = list(motion.directions)
        twist = np.zeros((*v.shape[:-1], 6))
        twist[..., directions] = v[..., start : start + len(directions)]
        for k, direction in enumerate(directions):
            unit = np.eye(6)[direction]
            for index in np.ndindex(v.shape[:-1]):
                matrix[(*index, slice(start, start + len(directions)), start + k)] = motion_cross(twist[index], unit)[
                    directions
                ]
    return matrix
