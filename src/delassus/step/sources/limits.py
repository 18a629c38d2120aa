"""Joint limits as unilateral rows, one for each limited coordinate.

A joint cannot be at both of its limits, so its row is that of the nearer one. With s = +1 at the lower limit and -1 at
the upper, the row velocity is s q̇ and the gap is s (q - limit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

import delassus.numpy as np
from delassus.constraints.basis.constraint import Constraint, JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.kinds.joint_lock import JointLock
from delassus.constraints.kinds.rotation_angle import RotationAngle
from delassus.constraints.kinds.tendon_length import TendonLength
from delassus.constraints.kinds.unilateral import at_least, at_most
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.model import Model
from delassus.model.parts import Joint


@dataclass(frozen=True)
class JointLimit(Constraint):
    """One row for the nearer limit of the coordinate with the index `element` of a joint."""

    joint: str
    element: int = 0

    @property
    def label(self) -> str:
        """The joint's name."""
        return self.name or self.joint

    def count(self, model: Model) -> int:
        """The number of rows, 1."""
        return 1

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The row of the joint velocity, positive away from the limit."""
        sign, _ = self._nearer(motions)
        joint = motions.model.joint(self.joint)
        _, _, v = joint.kind.parts[self.element]
        start = motions.model.v_starts[motions.model.joint_index(self.joint)]
        return (JointRow(0, start + v, sign * (joint.mimic.ratio if joint.mimic else 1.0)),)

    def gap(self, motions: LinkMotions) -> Any:
        """The gap [rad, m]: the distance of the joint from its limit."""
        return self._nearer(motions)[1]

    def _nearer(self, motions: LinkMotions) -> tuple[Any, Any]:
        """The sign and the gap of the nearer limit."""
        model = motions.model
        joint = model.joint(self.joint)
        _, i, _ = joint.kind.parts[self.element]
        q = motions.q[model.q_starts[model.joint_index(self.joint)] + i]
        q = joint.mimic.ratio * q + joint.mimic.offset if joint.mimic else q
        lower, upper = _limits(joint, i)
        if not numpy.isfinite(upper):
            return 1.0, q - lower
        if not numpy.isfinite(lower):
            return -1.0, upper - q
        low = q - lower < upper - q
        return np.where(low, 1.0, -1.0), np.where(low, q - lower, upper - q)


def limits_of(model: Model) -> tuple[JointLimit, ...]:
    """A row for each coordinate that is an angle or a length and has a limit."""
    result = []
    for joint in model.joints:
        for k, (motion, i, _) in enumerate(joint.kind.parts):
            if motion.nq == 1 and any(numpy.isfinite(_limits(joint, i))):
                result.append(JointLimit(joint.name, k))
    return tuple(result)


def with_model_limits(mechanism: Mechanism) -> Mechanism:
    """A mechanism with the limits of its model's tendons and spherical joints as one-sided constraints."""
    limits: list[Constraint] = [
        at_most(RotationAngle(joint.name, joint.angle_limit, name=f"{joint.name}_limit"))
        for joint in mechanism.model.joints
        if numpy.isfinite(joint.angle_limit)
    ]
    for tendon in mechanism.model.tendons:
        if tendon.range:
            lower, upper = tendon.range
            ends = ((at_least, lower, "shortest"), (at_most, upper, "longest"))
            limits += [
                side(TendonLength(tendon.name, reference=end, name=f"{tendon.name}_{what}"))
                for side, end, what in ends
                if numpy.isfinite(end)
            ]
    if not limits:
        return mechanism
    every = (*mechanism.constraints, *mechanism.unilateral, *limits)
    model = getattr(mechanism, "parametric", None) or mechanism.model
    return Mechanism(model, every, mechanism.step, model_constraints=False)


def dry_joints(model: Model) -> tuple[tuple[Constraint, ...], tuple[float, ...]]:
    """Rows for the velocities with Coulomb friction, those of joints and then those of tendons, and the friction of
    each [N·m, N]."""
    rows: list[Constraint] = []
    bounds: list[float] = []
    for joint in model.joints:
        own = tuple(k for k, bound in enumerate(joint.friction) if bound > 0.0)
        if own:
            rows.append(JointLock(joint.name, rows=own))
            bounds += [joint.friction[k] for k in own]
    for tendon in model.tendons:
        if tendon.friction > 0.0:
            rows.append(TendonLength(tendon.name))
            bounds.append(tendon.friction)
    return tuple(rows), tuple(bounds)


def _limits(joint: Joint, i: int) -> tuple[float, float]:
    lower = joint.lower[i] if joint.lower else -numpy.inf
    upper = joint.upper[i] if joint.upper else numpy.inf
    return lower, upper
