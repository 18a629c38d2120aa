"""Updates of a plan from samples: the best sample, a weighted mean, or the mean of the elite.

Costs are compared with each other alone: other units of the cost change nothing. A cost that is no finite number has no
weight.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST: Final = 0.02
"""Of the noise at first: it never gets smaller."""


class SamplingDistribution(NamedTuple):
    """Mean of the next samples: knots (knots, nu), and standard deviations of the same shape."""

    mean: Array
    noise: Array


def best(samples: Array, costs: Array, drawn: SamplingDistribution) -> SamplingDistribution:
    """The sample (samples, knots, nu) that costs least (samples,): predictive sampling in its plainest form."""
    return drawn._replace(mean=samples[np.argmin(np.where(np.isfinite(costs), costs, np.inf))])


def mppi(samples: Array, costs: Array, drawn: SamplingDistribution, temperature: float) -> SamplingDistribution:
    """Their mean with weights exp(-(J - J_min) / (temperature · spread)): model predictive path integral control.

    The spread is the median of the costs above the least of them: a few rollouts that crash do not change it.
    """
    finite = np.isfinite(costs)
    half = 0.5 * np.where(finite, costs, np.inf)  # the difference of the largest numbers is still one
    above = half - half[finite].min()
    scale = temperature * float(np.median(above[finite]))
    weights = np.exp(-above / scale) if scale > 0.0 else np.where(above == 0.0, 1.0, 0.0)
    mean = np.einsum("n,nku->ku", weights / weights.sum(), samples)
    return drawn._replace(mean=mean)


def cross_entropy(
    samples: Array, costs: Array, drawn: SamplingDistribution, elites: float, widest: Array
) -> SamplingDistribution:
    """Mean and standard deviation of a share of the samples, the better ones; the next are drawn with these."""
    finite = int(np.isfinite(costs).sum())
    count = min(max(math.ceil(elites * finite), 2), finite)
    order = np.argsort(np.where(np.isfinite(costs), costs, np.inf), kind="stable")[:count]
    chosen = samples[order]
    return SamplingDistribution(chosen.mean(0), np.clip(chosen.std(0), LEAST * widest, widest))
