"""Tendons: lengths, moment arms, and forces of their springs and dampers.

The length of a tendon over joints (MJCF's `fixed`) is l = Σ c q, with constant moment arms. That of a tendon through
sites (MJCF's `spatial`) is a sum of distances (`spatial_tendons`). The rate is l̇ = r·v with the moment arms r (nv,).
The force f = -k δ - d l̇ acts on the joints as r f, where δ is the distance of the length from its range at rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.dynamics.forces.spatial_tendons import Line, string_line
from delassus.errors import BadArgument
from delassus.model.model import Model
from delassus.model.transmission import Tendon


class TendonState(NamedTuple):
    """A tendon in a state.

    Attributes:
        moment_arms: r (nv,), its rate per velocity.
        stiffness: [N/m], zero within the range of rest lengths.
        damping: [N·s/m].
        stretch: δ, the signed distance of its length from this range [m].
        rate: The rate of its length [m/s].
        dofs: The velocities that move it.
    """

    moment_arms: Any
    stiffness: Any
    damping: float
    stretch: Any
    rate: Any
    dofs: list[int]

    @property
    def force(self) -> Any:
        """The force f of its spring and damper along the tendon [N]."""
        return -self.stiffness * self.stretch - self.damping * self.rate

    def rate_at(self, v: Any) -> Any:
        """r·v [m/s]: the rate of its length at a velocity v (nv,)."""
        return rate_of(self.moment_arms, self.dofs, v)

    def add_force(self, tau: Any, force: Any) -> Any:
        """Add a force f along the tendon to tau: tau + r f (nv,)."""
        total = np.array(tau)
        for k in self.dofs:
            total[k] = total[k] + self.moment_arms[k] * force
        return total


def tendon_states(model: Model, q: Any, v: Any) -> list[TendonState]:
    """The states of the tendons with a spring or a damper."""
    check_tendons(model)
    return [tendon_state(model, tendon, q, v) for tendon in elastic_tendons(model)]


def elastic_tendons(model: Model) -> list[Tendon]:
    """The tendons with a spring or a damper."""
    return [tendon for tendon in model.tendons if tendon.stiffness or tendon.damping]


def tendon_named(model: Model, name: str) -> Tendon | None:
    """The tendon of this name; None if there is none."""
    return next((tendon for tendon in model.tendons if tendon.name == name), None)


def tendon_line(model: Model, tendon: Tendon, q: Any) -> Line:
    """The length of a tendon and its moment arms, which are constants for a tendon over joints."""
    if not tendon.terms:
        return string_line(model, tendon, q)
    moment_arms, length = numpy.zeros(model.nv), np.array(0.0)
    for name, factor in tendon.terms:
        joint, k = model.joint(name), model.joint_index(name)
        ratio, offset = (joint.mimic.ratio, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        moment_arms[model.v_starts[k]] += factor * ratio
        length = length + factor * (ratio * q[model.q_starts[k]] + offset)
    return Line(length, moment_arms, numpy.flatnonzero(moment_arms).tolist())


def rate_of(moment_arms: Any, dofs: list[int], v: Any) -> Any:
    """r·v, summed over the velocities with nonzero moment arms only."""
    return sum((moment_arms[k] * v[k] for k in dofs), np.array(0.0))


def check_tendons(model: Model) -> None:
    """Raise an error if a spring has no rest length, or a tendon runs over joints of several velocities."""
    for tendon in model.tendons:
        if tendon.stiffness and len(tendon.rest) != 2:
            raise BadArgument(
                f"the tendon {tendon.name!r} has a stiffness of {tendon.stiffness:g} N/m and the rest lengths "
                f"{tendon.rest}; they must be the shortest and the longest length at which its force is zero, such as "
                "rest=(0.1, 0.1).",
                code="not-supported",
            )
        for name, _ in tendon.terms:
            joint = model.joint(name)
            if joint.kind.nv != 1:
                raise BadArgument(
                    f"the tendon {tendon.name!r} runs over {name!r}, a joint with {joint.kind.nv} velocities; use "
                    "joints with one velocity.",
                    code="not-supported",
                )


def tendon_state(model: Model, tendon: Tendon, q: Any, v: Any) -> TendonState:
    """A tendon at q, and at the velocity v."""
    length, moment_arms, dofs = tendon_line(model, tendon, q)
    stiffness, stretch = np.array(tendon.stiffness), np.array(0.0)
    if tendon.stiffness:
        shortest, longest = tendon.rest
        stretch = length - np.clip(length, shortest, longest)
        if shortest < longest:
            stiffness = np.where(stretch != 0.0, stiffness, 0.0)
    return TendonState(moment_arms, stiffness, tendon.damping, stretch, rate_of(moment_arms, dofs, v), dofs)
