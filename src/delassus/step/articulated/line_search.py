"""The line search of a Newton step, and the proximal parameter ε.

`articulated.newton` and `bodies.newton` halve a step until its merit falls, and let ε grow where steps are short.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in

_NEAR: Final = {"float64": 1e-7, "float32": 1e-5}
"""The least ε by precision: for the numbers alone."""

_FAR: Final = 0.1
"""The largest ε."""

_SHARE: Final = 1e-3
"""ε as a share of the error relative to the impulses, as in the method of Levenberg and Marquardt: two points of a foot
that stick are redundant along the line that joins them, and there a step goes as far as the error over ε."""

_GROWTH: Final = 10.0
"""By what ε is multiplied after a step that goes less than a quarter of its way, and divided after others."""

_GROWN: Final = 1e4
"""The product of these, at most."""

SMALL: Final = 1e-12
"""Energy [J] of impulses that counts as none."""

SHORTEST: Final = 1.0 / 32.0
"""Of a step, as a share of the whole of it."""

_DECREASE: Final = 0.1
"""The share of a step by which the merit has to fall at least."""

PATIENCE: Final = 2.5
"""Short steps in a row, after which a whole one is made."""


def proximal(growth: Any, merit: Any, size: Any) -> Any:
    """ε, where the impulses have the energy `size` [J]."""
    return np.clip(_SHARE * growth * np.sqrt(merit / size), _NEAR[computing_in().name], _FAR)


def is_decrease(merit: Any, share: Any, before: Any) -> Any:
    """Whether the merit falls enough on a share of a step."""
    return merit <= (1.0 - _DECREASE * share) * before


def adapt_growth(growth: Any, short: Any, share: Any) -> tuple[Any, Any]:
    """By what ε has grown, and the number of short steps in a row, after a step of which a share was taken."""
    is_short = share < 0.2
    grown = np.where(is_short, np.minimum(_GROWTH * growth, _GROWN), np.maximum(growth / _GROWTH, 1.0))
    return grown, np.where(is_short, short + 1.0, 0.0)
