"""The line search of a Newton step, and the proximal parameter ε.

`articulated.newton` and `bodies.newton` halve a step until the merit decreases, and increase ε when steps are short.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in

_NEAR: Final = {"float64": 1e-7, "float32": 1e-5}
"""Smallest ε for each precision, a regularization against rounding."""

_GROWTH: Final = 10.0
"""Factor by which ε grows after a step shorter than a quarter of the full one, and shrinks after others."""

_GROWN: Final = 1e4
"""Largest product of these factors."""

SMALL: Final = 1e-12
"""Energy [J] of impulses that counts as zero."""

SHORTEST: Final = 1.0 / 32.0
"""Shortest step, as a fraction of the full one."""

_DECREASE: Final = 0.1
"""Required decrease of the merit, as a fraction of the step length."""


class Proximal(NamedTuple):
    """ε as a share of the error relative to the impulses, as in the Levenberg–Marquardt method, within limits.

    Two sticking points of a foot are redundant along the line between them; there, the length of a step is the error
    divided by ε.
    """

    share: float
    largest: float
    smallest: float = 0.0

    def epsilon(self, growth: Any, merit: Any, size: Any) -> Any:
        """ε for impulses with the energy `size` [J]."""
        smallest = max(self.smallest, _NEAR[computing_in().name])
        return np.clip(self.share * growth * np.sqrt(merit / size), smallest, self.largest)


def is_decrease(merit: Any, share: Any, before: Any) -> Any:
    """Whether the merit decreases enough for this step length."""
    return merit <= (1.0 - _DECREASE * share) * before


def adapt_growth(growth: Any, short: Any, share: Any) -> tuple[Any, Any]:
    """The growth of ε, and the number of consecutive short steps, after a step of this length."""
    is_short = share < 0.2
    grown = np.where(is_short, np.minimum(_GROWTH * growth, _GROWN), np.maximum(growth / _GROWTH, 1.0))
    return grown, np.where(is_short, short + 1.0, 0.0)
