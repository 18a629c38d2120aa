"""Types of cones and intervals: the admissible impulses of groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.common.checks import check_integer
from delassus.errors import BadArgument


class ConeError(BadArgument):
    """An invalid cone."""


@dataclass(frozen=True)
class Friction:
    """Coulomb's cone of a contact, ‖λ_t‖ ≤ friction · λ_n.

    Three rows are t1, t2, n: two tangents, then the normal. A fourth row adds torsional friction, a moment about the
    normal; six rows add rolling friction, moments about t1 and t2: t1, t2, n, spin, roll1, roll2. Torsional and rolling
    coefficients are lengths [m]; the cone is (λ_t/friction)² + (λ_s/torsional)² + (λ_r/rolling)² ≤ λ_n².
    """

    rows: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.rows, int) or self.rows not in (3, 4, 6):
            raise ConeError(
                f"Friction(rows={self.rows!r}): a contact has 3 rows (t1, t2, n), 4 with torsional friction, "
                "and 6 with torsional and rolling friction.",
                code="wrong-shape",
            )


@dataclass(frozen=True)
class Free:
    """Rows with impulses of any sign and size: bilateral constraints."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


@dataclass(frozen=True)
class NonNegative:
    """Rows that only push, λ ≥ 0: joint limits, contacts without friction."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


@dataclass(frozen=True)
class Interval:
    """Rows with impulses between two bounds, lower ≤ λ ≤ upper: joint friction, motors of limited torque."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


Cone = Friction | Free | NonNegative | Interval


def _check_rows(cone: Any) -> None:
    check_integer(f"rows of {type(cone).__name__}", cone.rows)
