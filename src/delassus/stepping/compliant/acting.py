"""What acts in a step besides rows: what is added to M, on its diagonal and off it, and what pushes."""

from __future__ import annotations

from typing import Any, NamedTuple

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.stepping.compliant.geometric import geometric_stiffness, not_negative
from delassus.stepping.compliant.joints import Elements, Servo
from delassus.stepping.scheme.blend import Blend


class Acting(NamedTuple):
    """h α D + h² α β K (nv,) of the joints, h² α β K̃ (nv, nv), None each where there is none, and the push (nv,)."""

    added: Any
    more: Any
    push: Any

    @classmethod
    def of(
        cls, mechanism: Mechanism, q: Any, v: Any, tau: Any, blend: Blend, servo: Servo, geometric: Any, time: Any
    ) -> Acting:
        """In a state; `geometric` (m,) are impulses of the step before, whose forces turn with the robot, or None."""
        elements, more = Elements.of(mechanism.model, q, v, servo), None
        added, push = elements.added(blend), elements.push(tau, v, blend)
        if geometric is not None:
            h, alpha, beta = blend
            K = not_negative(geometric_stiffness(mechanism, q, geometric / h, time))
            more, push = h * h * alpha * beta * K, push - alpha * h * (K @ v)
        return cls(added, more, push)
