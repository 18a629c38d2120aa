"""Options of `Sampling`: noise, updates, splines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from delassus.common.checks import POSITIVE, Range, check_integer, iteration_count, number_in_range, one_of
from delassus.common.options import Options
from delassus.control.sampling.splines import SPLINES

MOST: Final = 10**7
"""Maximum number of periods of a horizon, and of samples; larger values are probably mistakes."""

_NARROWEST: Final = Range(1e-6, 1.0, "a share of the noise, from 1e-6 to 1, such as 0.01")
_ELITES: Final = Range(0.0, 1.0, "a share of the samples, above 0 and up to 1, such as 0.1", open_below=True)


@dataclass(frozen=True, eq=False)
class PathIntegral(Options):
    """The mean of the samples, weighted by their costs (MPPI).

    Attributes:
        temperature: Cost difference, relative to the spread of costs, at which a sample's weight falls to 1/e.

    >>> dl.control.PathIntegral(temperature=0.2).temperature
    0.2
    """

    name: ClassVar[str] = "mppi"
    temperature: float = 0.1

    def __post_init__(self) -> None:
        number_in_range("temperature", self.temperature, POSITIVE)


@dataclass(frozen=True, eq=False)
class CrossEntropy(Options):
    """Mean and standard deviation of the best samples.

    Attributes:
        elites: Fraction of the samples that is used.

    >>> dl.control.CrossEntropy(elites=0.2).elites
    0.2
    """

    name: ClassVar[str] = "cross_entropy"
    elites: float = 0.1

    def __post_init__(self) -> None:
        number_in_range("elites", self.elites, _ELITES)


@dataclass(frozen=True, eq=False)
class BestSample(Options):
    """The sample of lowest cost.

    >>> dl.control.BestSample().name
    'best'
    """

    name: ClassVar[str] = "best"


SAMPLING_METHODS: Final = (PathIntegral(), CrossEntropy(), BestSample())


@dataclass(frozen=True, eq=False)
class SplineOptions(Options):
    """Parametrization of plans.

    Attributes:
        knots: Number of knots of the spline; by default 8, or the horizon if that is shorter.
        spline: "hold", "linear" or "cubic".

    >>> dl.control.SplineOptions(knots=10, spline="cubic").knots
    10
    """

    knots: int | None = None
    spline: str = "linear"

    def __post_init__(self) -> None:
        one_of("spline", self.spline, SPLINES)
        if self.knots is not None:
            check_integer("knots", self.knots)


@dataclass(frozen=True, eq=False)
class SearchOptions(Options):
    """Options of the search.

    Attributes:
        samples: Number of plans per iteration; the first of them is the current plan.
        noise: Standard deviation of the knots, for all controls or (nu,); by default 0.3 of half their range.
        narrowest: Ratio of the noise of the last sample to that of the first, with a geometric sequence between: 0.01
            for plans that need large changes to be found and small ones to be refined.
        iterations: Number of sampling iterations in one call.

    >>> dl.control.SearchOptions(samples=256, noise=5.0).samples
    256
    """

    samples: int = 1024
    noise: Any = None
    narrowest: float = 1.0
    iterations: int = 1

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 2, MOST)
        number_in_range("narrowest", self.narrowest, _NARROWEST)
        iteration_count("iterations", self.iterations)
