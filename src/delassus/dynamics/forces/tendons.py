"""Springs and dampers of tendons over joints: lengths that are sums of coordinates, as in MJCF's `fixed` tendons.

The length of a tendon is l = Σ c q over its joints, its rate l̇ = r·v with the moment arms r (nv,), which are constant.
Its force f = -k δ - d l̇ acts as r f on the joints, δ being how far the length is from those at which it rests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.errors import BadArgument
from delassus.model.model import Model
from delassus.model.transmission import Tendon


class TendonState(NamedTuple):
    """A tendon in a state.

    Attributes:
        moment_arms: r (nv,), its rate per velocity.
        stiffness: [N/m], zero between the lengths at which it rests.
        damping: [N·s/m].
        stretch: δ, how far it is from these lengths [m].
        rate: The rate of its length [m/s].
    """

    moment_arms: NDArray[numpy.float64]
    stiffness: Any
    damping: float
    stretch: Any
    rate: Any

    @property
    def force(self) -> Any:
        """Of its spring and damper, along its length [N]."""
        return -self.stiffness * self.stretch - self.damping * self.rate

    @property
    def dofs(self) -> list[int]:
        """The velocities that move it."""
        return numpy.flatnonzero(self.moment_arms).tolist()

    def rate_at(self, v: Any) -> Any:
        """r·v [m/s] of other velocities (nv,)."""
        return _rate(self.moment_arms, v)

    def pulled(self, tau: Any, force: Any) -> Any:
        """tau + r f (nv,) for a force f along its length."""
        total = np.array(tau)
        for k in self.dofs:
            total[k] = total[k] + self.moment_arms[k] * force
        return total


def tendon_states(model: Model, q: Any, v: Any) -> list[TendonState]:
    """Those with a spring or a damper."""
    check_tendons(model)
    return [_state(model, tendon, q, v) for tendon in model.tendons if tendon.stiffness or tendon.damping]


def check_tendons(model: Model) -> None:
    """Raise if springs and dampers are on lengths that are no sums of coordinates, such as those of strings."""
    for tendon in model.tendons:
        if not (tendon.stiffness or tendon.damping):
            continue
        if tendon.stiffness and len(tendon.rest) != 2:
            raise BadArgument(
                f"the tendon {tendon.name!r} has a stiffness of {tendon.stiffness:g} N/m and rests at {tendon.rest}; "
                "give it the shortest and the longest length at which it does not pull, such as rest=(0.1, 0.1).",
                code="not-supported",
            )
        for name, _ in tendon.terms:
            joint = model.joint(name)
            if joint.kind.nv != 1:
                raise BadArgument(
                    f"the tendon {tendon.name!r} runs over {name!r}, a joint of {joint.kind.nv} velocities; tendons "
                    "run over joints of one.",
                    code="not-supported",
                )
        if not tendon.terms:
            raise BadArgument(
                f"the tendon {tendon.name!r} is a string through sites, with a spring or a damper; those of tendons "
                "over joints alone are known. Take dl.Distance or dl.Implicit with a compliance instead, and "
                "dataclasses.replace(model, tendons=()) for the robot.",
                code="not-supported",
            )


def _state(model: Model, tendon: Tendon, q: Any, v: Any) -> TendonState:
    moment_arms, length = numpy.zeros(model.nv), np.array(0.0)
    for name, factor in tendon.terms:
        joint, k = model.joint(name), model.joint_index(name)
        ratio, offset = (joint.mimic.ratio, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        moment_arms[model.v_starts[k]] += factor * ratio
        length = length + factor * (ratio * q[model.q_starts[k]] + offset)
    stiffness, stretch = np.array(tendon.stiffness), np.array(0.0)
    if tendon.stiffness:
        shortest, longest = tendon.rest
        stretch = length - np.clip(length, shortest, longest)
        if shortest < longest:
            stiffness = np.where(stretch != 0.0, stiffness, 0.0)
    return TendonState(moment_arms, stiffness, tendon.damping, stretch, _rate(moment_arms, v))


def _rate(moment_arms: NDArray[numpy.float64], v: Any) -> Any:
    """A sum over its joints alone: velocities that do not move it are not read."""
    return sum((moment_arms[k] * v[k] for k in numpy.flatnonzero(moment_arms).tolist()), np.array(0.0))
