"""`ContactParameters`: the numbers of contacts, as kernels take them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self


class ContactParameters(NamedTuple):
    """Numbers of contacts; None for what does not exist, or has the default of whoever takes them.

    Attributes:
        friction: Coefficients of Coulomb friction.
        torsional: Coefficients of torsional friction [m].
        rolling: Coefficients of rolling friction [m].
        restitution: Shares of the approach speed after an impact, from 0 to 1.
        compliance: Of rows [m/(s·N·s)], as the one who takes them says.
    """

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    restitution: Any = None
    compliance: Any = None

    def replace(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        return self._replace(**changes)
