"""Stage 3 of a compliant step: forces of joint springs, dampers, servos and tendons, and geometric stiffness.

    W = M + h α D + h² α β K,      c = W v + h (τ - bias + f - α h K v),

with their forces f = -K δ - D v at the start of the step, where δ leads from the rest position of the joint, or the
target of the servo, to q. K and D of joints are diagonal and are added in the recursion (see `articulated`), so an
elastic arm costs as much as a rigid one. Those of tendons and the geometric stiffness are not diagonal: with them, W is
formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.compensation import is_compensated
from delassus.dynamics.forces.passive import PassiveElements
from delassus.dynamics.forces.tendons import TendonState
from delassus.dynamics.kinematics.manifold import difference
from delassus.model.model import Model
from delassus.model.traced import has_nonzero
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.geometric import geometric_stiffness, not_negative
from delassus.step.scheme.blend import Blend


class Servo(NamedTuple):
    """Servos with a target (nq,), stiffness (nv,) [N·m/rad, N/m] and damping (nv,) [N·m·s/rad, N·s/m], or None."""

    stiffness: Any = None
    damping: Any = None
    target: Any = None


class Elements(NamedTuple):
    """K (nv,), D (nv,) and the forces (nv,) of joints and servos, each None if there are none; and the tendons."""

    stiffness: Any
    damping: Any
    force: Any
    tendons: list[TendonState]

    @classmethod
    def of(cls, model: Model, q: Any, v: Any, servo: Servo) -> Elements:
        """The elements of a model in a state."""
        passive = PassiveElements.of(model, q, v)
        K, D = (gains if has_nonzero(gains) else None for gains in (passive.stiffness, passive.damping))
        acts = K is not None or D is not None or passive.tendons or is_compensated(model) or model.medium.is_felt
        force = passive.force if acts else None
        if servo.stiffness is not None:
            pull = servo.stiffness * difference(model, q, servo.target)
            K, force = _sum(K, servo.stiffness), _sum(force, pull)
        if servo.damping is not None:
            D, force = _sum(D, servo.damping), _sum(force, -servo.damping * v)
        return cls(K, D, force, passive.tendons)

    def added(self, blend: Blend) -> Any:
        """h α D + h² α β K (nv,), the part of W due to joints and servos; None if it is zero."""
        h, alpha, beta = blend
        damped = None if self.damping is None else h * alpha * self.damping
        return damped if self.stiffness is None else _sum(damped, h * h * alpha * beta * self.stiffness)

    def push(self, tau: Any, v: Any, blend: Blend) -> Any:
        """τ + f - α h K v (nv,), the explicit part of the forces."""
        tau = tau if self.force is None else tau + self.force
        tau = tau if self.stiffness is None else tau - blend.alpha * blend.h * self.stiffness * v
        for tendon in self.tendons:
            tau = tendon.add_force(tau, -blend.alpha * blend.h * tendon.stiffness * tendon.rate_at(v))
        return tau


def compliant_forces(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, blend: Blend, servo: Servo, geometric: Any, time: Any
) -> Forces:
    """The forces of a step, with h α D + h² α β K of joints (nv,) and of tendons and rows (nv, nv), each None if zero.

    `geometric` (m,) are the impulses of the previous step, whose geometric stiffness is added, or None.
    """
    (h, alpha, beta), coupling = blend, None
    elements = Elements.of(mechanism.model, q, v, servo)
    added, push = elements.added(blend), elements.push(tau, v, blend)
    for tendon in elements.tendons:
        own = h * alpha * tendon.damping + h * h * alpha * beta * tendon.stiffness
        coupling = _sum(coupling, own * np.outer(tendon.moment_arms, tendon.moment_arms))
    if geometric is not None:
        K = not_negative(geometric_stiffness(mechanism, q, geometric / h, time))
        coupling, push = _sum(coupling, h * h * alpha * beta * K), push - alpha * h * (K @ v)
    return Forces(push, added, coupling=coupling)


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one + other
