"""Forces of a step other than constraint and contact forces, and their implicit terms.

Forces of springs, dampers and servos are implicit. Their derivatives with respect to velocity are added to the mass
matrix, M̂ = M + diag(added) + Σ k r rᵀ + coupling, and `force` is evaluated for a step at constant velocity. A force
that is piecewise linear in the velocity, such as that of a servo with limits, is linear in each mode. A mode determines
an element of `added` and one of `force`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import RankOne

_ROUNDING: Final = 1e-9
"""A force that exceeds a limit by less than this fraction of the range counts as being at the limit."""


class LimitedServos(NamedTuple):
    """Servos with limits, in a state; within its limits, f = pull + slope (rate⁺ - rate), rate⁺ = r · v⁺.

    Attributes:
        pull: (servos,) the force at the velocity of the step's beginning [N·m, N].
        slope: (servos,) its derivative with respect to the rate.
        rate: (servos,) the rate of the joint or tendon at the beginning of the step [rad/s, m/s].
        moment_arms: r (nv,) for each servo.
        lower: (servos,) the lower force limit.
        upper: (servos,) the upper force limit.
        dofs: For each servo, the indices of nonzero elements of r.
    """

    pull: Any
    slope: Any
    rate: Any
    moment_arms: Any
    lower: Any
    upper: Any
    dofs: Any


class Forces(NamedTuple):
    """Generalized forces of a step, and their implicit parts.

    Attributes:
        force: (nv,) [N·m, N].
        added: (nv,) implicit terms on the diagonal of M; None for zero.
        rank_ones: Implicit terms k r rᵀ of tendons, which couple joints.
        coupling: (nv, nv) other implicit terms; None for zero.
        clipped: () the number of controls and actuators at their limits.
        modes: (servos,) 0 for a servo within its limits, 1 for one at the upper limit, -1 at the lower.
        servos: The servos with limits; None if there are none.
    """

    force: Any
    added: Any = None
    rank_ones: tuple[RankOne, ...] = ()
    coupling: Any = None
    clipped: Any = 0.0
    modes: Any = None
    servos: LimitedServos | None = None

    def resistance(self, v: Any) -> Any:
        """(M̂ - M) v (nv,)."""
        total = np.zeros(len(v)) if self.added is None else self.added * v
        for term in self.rank_ones:
            total = total + term.times(v)
        return total if self.coupling is None else total + self.coupling @ v


def servo_modes(forces: Forces, v: Any) -> Any:
    """The modes (servos,) of servos with limits at the velocity v (nv,) of the step's end."""
    servos = forces.servos
    if servos is None:
        return np.zeros(0)
    modes = []
    for k, arms in enumerate(servos.moment_arms):
        rate = sum(arms[j] * v[j] for j in servos.dofs[k])
        force = servos.pull[k] + servos.slope[k] * (rate - servos.rate[k])
        modes.append(force_mode(force, servos.lower[k], servos.upper[k]))
    return np.stack(modes)


def predict_servo_modes(servos: LimitedServos, M: Any, h: Any) -> Any:
    """A prediction of the modes (servos,) at the end of a step h [s], for servos that drive single joints.

    It neglects coupling: with the inertia m = M_jj and the moment arm c, a force f at the start of the step becomes
    f m / (m - h c² slope) at its end.
    """
    modes = []
    for k, arms in enumerate(servos.moment_arms):
        j = int(numpy.flatnonzero(arms)[0])
        stiff = np.maximum(-h * arms[j] * arms[j] * servos.slope[k], 0.0)
        modes.append(force_mode(servos.pull[k] * (M[j, j] / (M[j, j] + stiff)), servos.lower[k], servos.upper[k]))
    return np.stack(modes)


def force_mode(force: Any, lower: float, upper: float) -> Any:
    """1 beyond the upper limit, -1 beyond the lower one, 0 within; limits are extended by rounding errors."""
    slack = _ROUNDING * (upper - lower)
    return np.where(force > upper + slack, 1.0, np.where(force < lower - slack, -1.0, 0.0))
