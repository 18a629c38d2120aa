"""Forces of a step other than constraint and contact forces, and their implicit terms.

Forces of springs, dampers and servos are those of the step's end: M̂ = M + diag(added) + Σ k r rᵀ + coupling, and
`force` is what remains at the velocity of the beginning. A law that changes with the velocity of the end, such as a
servo with limits, is linear in each of its modes: a mode is an element of `added`, and one of `force`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import RankOne

_ROUNDING: Final = 1e-9
"""A force that exceeds a limit by less than this fraction of the range counts as being at the limit."""


class LimitedServos(NamedTuple):
    """Servos with limits, in a state: f = pull + slope (rate⁺ - rate) within them, rate⁺ = r · v⁺.

    Attributes:
        pull: (servos,) the force at the velocity of the step's beginning [N·m, N].
        slope: (servos,) its derivative by the rate.
        rate: (servos,) of the joint or tendon as the step begins [rad/s, m/s].
        moment_arms: Of each servo r (nv,).
        lower: (servos,) the least force.
        upper: (servos,) the largest one.
        dofs: Of each servo the velocities that r is of.
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
        added: (nv,) to the diagonal of M; None for nothing.
        rank_ones: What couples joints by the moment arms of tendons.
        coupling: (nv, nv) what else couples them; None for nothing.
        clipped: () controls and actuators at their limits.
        modes: (servos,) whether each servo with limits is within (0), or at its upper (1) or lower (-1) one.
        servos: These servos; None if there are none.
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
        pull = servos.pull[k] + servos.slope[k] * (rate - servos.rate[k])
        modes.append(force_mode(pull, servos.lower[k], servos.upper[k]))
    return np.stack(modes)


def predict_servo_modes(servos: LimitedServos, M: Any, h: Any) -> Any:
    """The modes (servos,) that servos of single joints will have at the end of a step h [s], by their own inertia.

    With the inertia m = M_jj, a servo that begins with the force f ends with f m / (m - h c² slope).
    """
    modes = []
    for k, arms in enumerate(servos.moment_arms):
        j = int(numpy.flatnonzero(arms)[0])
        stiff = np.maximum(-h * arms[j] * arms[j] * servos.slope[k], 0.0)
        modes.append(force_mode(servos.pull[k] * (M[j, j] / (M[j, j] + stiff)), servos.lower[k], servos.upper[k]))
    return np.stack(modes)


def force_mode(force: Any, lower: float, upper: float) -> Any:
    """1 beyond the upper limit, -1 beyond the lower one, 0 within; a force at its limit but for rounding is within."""
    slack = _ROUNDING * (upper - lower)
    return np.where(force > upper + slack, 1.0, np.where(force < lower - slack, -1.0, 0.0))
