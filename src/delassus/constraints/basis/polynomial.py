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
    """One row between a dependent coordinate y and a leading coordinate x, each of a named object."""

    coefficients: Any = (0.0, 1.0)
    reference: float = 0.0
    reference2: float = 0.0

    def check_polynomial(self, label: str) -> None:
        """Check and freeze the coefficients and the names; `label` describes the named objects, such as "joint"."""
        coefficients = frozen_numbers(
            f"coefficients of {self.label!r}", self.coefficients, "a list of numbers, (c₀, c₁, …)"
        )
        object.__setattr__(self, "coefficients", coefficients if isinstance(coefficients, tuple) else (coefficients,))
        for field in ("reference", "reference2"):
            number = frozen_numbers(f"{field} of {self.label!r}", getattr(self, field), "one number")
            if isinstance(number, tuple):
                raise ConstraintError(
                    f"{field} of {self.label!r} is {number!r}; it must be a single number.", code="wrong-shape"
                )
            object.__setattr__(self, field, number)
        for name in self.ends:
            if not isinstance(name, str):
                raise ConstraintError(
                    f"a coupling needs names of {label}s; got {short(repr(name))}.", code="wrong-type"
                )
        if len(set(self.ends)) < len(self.ends):
            raise ConstraintError(
                f"the {label} {self.ends[0]!r} cannot follow itself; name another {label} as the leading one.",
                code="immovable",
            )

    @property
    def ends(self) -> tuple[str, ...]:
        """The names of the dependent and, if there is one, the leading object."""
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
        """φ(x - x₀) or a derivative of it, by Horner's rule; x is None without a leading coordinate."""
        coefficients = [float(c) for c in polyder(self.coefficients, order)]
        if x is None:
            return coefficients[0] if order == 0 else 0.0
        x, value = x - self.reference2, 0.0
        for c in reversed(coefficients):
            value = value * x + c
        return value
