"""Options of `inverse_dynamics` and `linearize`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class DistributionOptions(Options):
    """How torques and forces are chosen where several make the motion.

    Attributes:
        torque_weight: (…, nu) or one number: Σ w (u - u*)² is made least where there is a choice.
        torque_target: (…, nu) u* [N·m, N], by default zero.
        force_weight: (…, m) or one number: Σ w (λ - λ*)² is made least.
        force_target: (…, m) λ* [N, N·m], by default zero.
        rank: Squares of singular values of K below this share of the largest count as zero; 1e-12 unless given.

    >>> dl.control.DistributionOptions(force_weight=1.0).force_weight
    1.0
    """

    torque_weight: Any = None
    torque_target: Any = None
    force_weight: Any = None
    force_target: Any = None
    rank: Any = None


@dataclass(frozen=True, eq=False)
class InverseOptions(Options):
    """Options of `inverse_dynamics`.

    Attributes:
        distribution: How torques and forces are chosen.
        mask: (…, m) not zero for rows that act; by default all.
        time: (…) [s] what references move with, needed where they do.
        tau: (…, nv) other generalized forces on the robot [N·m, N], besides those of its springs and dampers.
        parameters: (…, nparameters) those of a mechanism whose model has some.

    >>> dl.control.InverseOptions(tau=np.zeros(3)).tau.shape
    (3,)
    """

    distribution: DistributionOptions = field(default=DistributionOptions())
    mask: Any = None
    time: Any = None
    tau: Any = None
    parameters: Any = None


@dataclass(frozen=True, eq=False)
class LinearizationOptions(Options):
    """Options of `linearize`.

    Attributes:
        tau: (…, nv) other generalized forces, constant [N·m, N], besides those of springs and dampers.
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.

    >>> dl.control.LinearizationOptions(time=0.5).time
    0.5
    """

    tau: Any = None
    time: Any = None
    parameters: Any = None
