"""Types of cones and intervals: the admissible impulses of groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.common.checks import check_integer
from delassus.errors import BadArgument


class ConeError(BadArgument):
    """A cone that does not exist."""


@dataclass(frozen=True)
class Friction:
    """Coulomb's cone of a contact, ‖λ_t‖ ≤ friction · λ_n.

    Three rows are t1, t2, n: two tangents and the normal, which comes third. Four rows have torsional friction in
    addition, a moment about the normal, and six rolling friction, moments about t1 and t2: t1, t2, n, spin, roll1,
    roll2. Their coefficients are lengths [m]; the cone is (λ_t/friction)² + (λ_s/torsional)² + (λ_r/rolling)² ≤ λ_n².
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
    """Rows whose impulses may be any: bilateral constraints."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


@dataclass(frozen=True)
class NonNegative:
    """Rows that push and do not pull, λ ≥ 0: joint limits, contacts without friction."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


@dataclass(frozen=True)
class Interval:
    """Rows whose impulses lie between two bounds, lower ≤ λ ≤ upper: dry friction in joints, limited motors."""

    rows: int = 1

    def __post_init__(self) -> None:
        _check_rows(self)


Cone = Friction | Free | NonNegative | Interval


def _check_rows(cone: Any) -> None:
    check_integer(f"rows of {type(cone).__name__}", cone.rows)
