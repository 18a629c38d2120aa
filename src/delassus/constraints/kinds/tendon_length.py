"""The length of a tendon: fixed, coupled to another tendon, or unilateral as a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jvp
from delassus.constraints.basis.constraint import JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import RowResponse
from delassus.constraints.basis.polynomial import PolynomialRow
from delassus.dynamics.forces.spatial_tendons import string_dofs
from delassus.dynamics.forces.tendons import rate_of, tendon_line, tendon_named
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.model.model import Model
from delassus.model.transmission import Tendon


@accept_groups("tendon tendon2 * coefficients reference reference2 name", response=RowResponse())
@dataclass(frozen=True)
class TendonLength(PolynomialRow):
    """A tendon length is a polynomial of another: l - l₀ = φ(l' - l₀'), φ(x) = Σ cₖ xᵏ. One row.

    Its force [N] acts along the tendon; positive values lengthen it. Without `tendon2`, the length is fixed at l₀ + c₀:
    `at_most(TendonLength("cord", reference=0.4))` is a cord of at most 0.4 m.

    Attributes:
        tendon: The tendon l of the model, over joints or through sites.
        tendon2: The leading tendon l'.
        coefficients: c₀, c₁, … [m per power of m].
        reference: l₀ [m].
        reference2: l₀' [m].
    """

    tendon: str
    tendon2: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_polynomial("tendon")

    @property
    def ends(self) -> tuple[str, ...]:
        """The names of the coupled tendons."""
        return (self.tendon,) if self.tendon2 is None else (self.tendon, self.tendon2)

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The velocities that move one of the tendons."""
        return tuple(sorted(set().union(*(_dofs(model, self._tendon(model, name)) for name in self.ends))))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The gradient r - φ'(x) r'."""
        arms = self._gradient(motions.model, motions.q)
        return tuple(JointRow(0, k, arms[k]) for k in self.velocities(motions.model))

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """ṙ·v, the derivative of the rate along the motion with constant v."""
        model, v = motions.model, motions.v
        dofs = list(self.velocities(model))

        def rate(q: Any) -> Any:
            return rate_of(self._gradient(model, q), dofs, v)

        return np.stack([jvp(rate, (motions.q,), (coordinate_rates(model, motions.q, v),))[1]])

    def position_error(self, motions: LinkMotions) -> Traced:
        """l - l₀ - φ(l' - l₀')."""
        length = tendon_line(motions.model, self._tendon(motions.model, self.tendon), motions.q).length
        return np.stack([length - self.reference - self._polynomial(motions.model, motions.q, 0)])

    def _tendon(self, model: Model, name: str) -> Tendon:
        tendon = tendon_named(model, name)
        if tendon is None:
            raise UnknownName("tendon", name, [t.name for t in model.tendons], code="unknown-name")
        return tendon

    def _gradient(self, model: Model, q: Any) -> Any:
        """The gradient (nv,) of the row."""
        arms = np.array(tendon_line(model, self._tendon(model, self.tendon), q).moment_arms)
        if self.tendon2 is None:
            return arms
        other = tendon_line(model, self._tendon(model, self.tendon2), q).moment_arms
        return arms - self._polynomial(model, q, 1) * np.array(other)

    def _polynomial(self, model: Model, q: Any, order: int) -> Any:
        """φ or a derivative of it."""
        if self.tendon2 is None:
            return self.polynomial(None, order)
        return self.polynomial(tendon_line(model, self._tendon(model, self.tendon2), q).length, order)


def _dofs(model: Model, tendon: Tendon) -> set[int]:
    """The velocities that move a tendon."""
    if tendon.terms:
        return {model.v_slice(name).start for name, factor in tendon.terms if factor}
    return string_dofs(model, tendon)
