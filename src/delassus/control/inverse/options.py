"""Options of `inverse_dynamics` and `linearize`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class DistributionOptions(Options):
    """Weights that select torques and forces which are not unique.

    Attributes:
        torque_weight: (…, nu) or one value: Σ w (u - u*)² is minimized.
        torque_target: (…, nu) u* [N·m, N], by default zero.
        force_weight: (…, m) or one value: Σ w (λ - λ*)² is minimized.
        force_target: (…, m) λ* [N, N·m], by default zero.
        rank: Squared singular values of K below this fraction of the largest count as zero; by default 1e-12.

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
        distribution: Weights of torques and forces.
        mask: (…, m) nonzero for active rows; by default all.
        time: (…) [s] time of moving references, required if there are any.
        tau: (…, nv) other generalized forces on the robot [N·m, N], in addition to springs and dampers.
        parameters: (…, nparameters) values for a model with parameters.

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
        tau: (…, nv) other constant generalized forces [N·m, N], in addition to springs and dampers.
        time: (…) [s] time of moving references, required if there are any.
        parameters: (…, nparameters) values for a model with parameters.

    >>> dl.control.LinearizationOptions(time=0.5).time
    0.5
    """

    tau: Any = None
    time: Any = None
    parameters: Any = None
