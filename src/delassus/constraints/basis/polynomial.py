"""The base of polynomial couplings of two coordinates: y - y₀ = φ(x - x₀), φ(x) = Σ cₖ xᵏ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.polynomial.polynomial import polyder

from delassus.constraints.basis.constraint import Constraint, ConstraintError, frozen_numbers
from delassus.errors import short
from delassus.model.model import Model


@dataclass(frozen=True, kw_only=True)
class PolynomialRow(Constraint):
    """One row, between a coordinate y that follows and one that leads, x, each that of something with a name."""

    coefficients: Any = (0.0, 1.0)
    reference: float = 0.0
    reference2: float = 0.0

    def check_polynomial(self, label: str) -> None:
        """Freeze the numbers, and refuse names that are none, or equal; `label` names the things, "joint" or such."""
        numbers = frozen_numbers(f"coefficients of {self.label!r}", self.coefficients, "a list of numbers, (c₀, c₁, …)")
        object.__setattr__(self, "coefficients", numbers if isinstance(numbers, tuple) else (numbers,))
        for field in ("reference", "reference2"):
            number = frozen_numbers(f"{field} of {self.label!r}", getattr(self, field), "one number")
            if isinstance(number, tuple):
                raise ConstraintError(
                    f"{field} of {self.label!r} is {number!r}; it must be one number.", code="wrong-shape"
                )
            object.__setattr__(self, field, number)
        for name in self.ends:
            if not isinstance(name, str):
                raise ConstraintError(
                    f"a coupling ties {label}s by their names, not by {short(repr(name))}.", code="wrong-type"
                )
        if len(set(self.ends)) < len(self.ends):
            raise ConstraintError(
                f"the {label} {self.ends[0]!r} cannot follow itself: name the {label} that leads.", code="immovable"
            )

    @property
    def ends(self) -> tuple[str, ...]:
        """The name of what follows, and of what leads if there is such a thing."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The name, or those of both ends."""
        return self.name or "-".join(map(str, self.ends))

    @property
    def has_reference(self) -> bool:
        """True: the polynomial is a position."""
        return True

    def count(self, model: Model) -> int:
        """The number of rows, 1."""
        return 1

    def polynomial(self, x: Any, order: int) -> Any:
        """φ(x - x₀) or a derivative of it, by Horner's rule; x is None where nothing leads."""
        coefficients = [float(c) for c in polyder(self.coefficients, order)]
        if x is None:
            return coefficients[0] if order == 0 else 0.0
        x, value = x - self.reference2, 0.0
        for c in reversed(coefficients):
            value = value * x + c
        return value
