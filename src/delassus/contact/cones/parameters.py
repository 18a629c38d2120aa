"""`ContactParameters` and `RowParameters`: coefficients of contacts and rows, as inputs of kernels."""

from __future__ import annotations

from typing import Any, NamedTuple, Self


class ContactParameters(NamedTuple):
    """Parameters of contacts; None for a parameter that does not exist or has its default.

    Attributes:
        friction: Coefficients of Coulomb friction.
        torsional: Coefficients of torsional friction [m].
        rolling: Coefficients of rolling friction [m].
        restitution: Ratio of normal speeds after and before an impact, from 0 to 1.
        compliance: Of rows [m/(s·N·s)]; the function that takes it defines its meaning.

    >>> dl.contact.ContactParameters(friction=0.7).replace(restitution=0.5).restitution
    0.5
    """

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    restitution: Any = None
    compliance: Any = None

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields."""
        return self._replace(**changes)


class RowParameters(NamedTuple):
    """Parameters of the rows of a contact problem; None for those that do not exist.

    Attributes:
        friction: (contacts,) coefficients of Coulomb friction.
        torsional: (torsional,) coefficients of torsional friction [m].
        rolling: (rolling,) coefficients of rolling friction [m].
        lower: (intervals,) bounds of impulses [N·s].
        upper: (intervals,) likewise.
        compliance: (m,) R of σ = (G + R) λ + g [1/kg].

    >>> dl.contact.RowParameters(friction=0.7).friction
    0.7
    """

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    lower: Any = None
    upper: Any = None
    compliance: Any = None

    @property
    def rigid(self) -> Self:
        """The parameters without compliance: those that bound impulses."""
        return self._replace(compliance=None)

    @property
    def coefficients(self) -> tuple[Any, ...]:
        """The coefficients of friction: friction, torsional, rolling."""
        return self[:3]
