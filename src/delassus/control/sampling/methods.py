"""Updates of a plan from samples: the best sample, a weighted mean, or the mean of the elite.

Only differences of costs matter, so the unit of the cost has no effect. A cost that is not finite has zero weight.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST: Final = 0.02
"""Smallest noise, relative to the initial noise."""


class SamplingDistribution(NamedTuple):
    """Distribution of the next samples: mean knots (knots, nu), and standard deviations of the same shape."""

    mean: Array
    noise: Array


def best(samples: Array, costs: Array, distribution: SamplingDistribution) -> SamplingDistribution:
    """The sample (samples, knots, nu) of lowest cost (samples,): predictive sampling in its simplest form."""
    return distribution._replace(mean=samples[np.argmin(np.where(np.isfinite(costs), costs, np.inf))])


def mppi(samples: Array, costs: Array, distribution: SamplingDistribution, temperature: float) -> SamplingDistribution:
    """Weighted mean with weights exp(-(J - J_min) / (temperature · spread)): model predictive path integral control.

    The spread is the median of the costs minus the lowest, which is robust against a few failed rollouts.
    """
    finite = np.isfinite(costs)
    half = 0.5 * np.where(finite, costs, np.inf)  # so that differences do not overflow
    above = half - half[finite].min()
    scale = temperature * float(np.median(above[finite]))
    weights = np.exp(-above / scale) if scale > 0.0 else np.where(above == 0.0, 1.0, 0.0)
    mean = np.einsum("n,nku->ku", weights / weights.sum(), samples)
    return distribution._replace(mean=mean)


def cross_entropy(
    samples: Array, costs: Array, distribution: SamplingDistribution, elites: float, widest: Array
) -> SamplingDistribution:
    """Mean and standard deviation of the best fraction of the samples, from which the next are drawn."""
    finite = int(np.isfinite(costs).sum())
    count = min(max(math.ceil(elites * finite), 2), finite)
    order = np.argsort(np.where(np.isfinite(costs), costs, np.inf), kind="stable")[:count]
    elite = samples[order]
    return SamplingDistribution(elite.mean(0), np.clip(elite.std(0), LEAST * widest, widest))
