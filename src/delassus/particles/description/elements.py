"""Elements of one type, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.particles.description.kinds import ElementError, ElementKind

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements of one type between particles.

    Attributes:
        kind: The type: one of `dl.particles.stretch`, `bend`, …, or a user-defined one.
        points: (e, k) the indices of the particles of each element, from 0.
        numbers: (e, p) the parameters of each element, in the order of `kind.numbers`.
        compliance: (e,) C of elastic deformations, the inverse of a stiffness [m/N, rad/(N·m)]; None for rigid
            elements.
        damping: (e,) B of elastic deformations [N·s/m, N·m·s/rad], or None.

    >>> len(dl.particles.rope(segments=3).elements) > 0
    True
    """

    kind: ElementKind
    points: NDArray[np.int64]
    numbers: Array
    compliance: Array | None = None
    damping: Array | None = None

    def __post_init__(self) -> None:
        kind = self.kind
        if not isinstance(kind, ElementKind):
            raise ElementError(
                f"the kind is {kind!r}; it must be one of dl.particles.stretch, bend, …, or made by @energy.",
                code="wrong-type",
            )
        points = np.asarray(self.points)
        if points.ndim != 2 or points.shape[1] != kind.points or not np.issubdtype(points.dtype, np.integer):
            raise ElementError(
                f"the points of {kind.name} have shape {points.shape} and type {points.dtype}; they must be integers "
                f"(elements, {kind.points}).",
                code="wrong-shape",
            )
        count = len(points)
        parameters = self._broadcast("numbers", self.numbers, (count, kind.p))
        for name in ("compliance", "damping"):
            value = getattr(self, name)
            if value is not None and not kind.rows:
                raise ElementError(
                    f"{kind.name} is an energy and has no {name}; its parameters include its stiffness.",
                    code="conflicting-arguments",
                )
            if value is not None:
                value = self._broadcast(name, value, (count,))
                if not np.all(value >= 0.0):
                    raise ElementError(
                        f"{name} of {kind.name} is {np.min(value):g}; it must not be negative.", code="out-of-range"
                    )
                object.__setattr__(self, name, value)
        if self.damping is not None and not np.isfinite(self.damping).all():
            raise ElementError(
                f"damping of {kind.name} is infinite; for a rigid element omit compliance and damping.",
                code="conflicting-arguments",
            )
        if self.compliance is not None and self.damping is None and not np.isfinite(self.compliance).all():
            raise ElementError(
                f"compliance of {kind.name} is infinite and it has no damping, so it has no effect; omit it.",
                code="conflicting-arguments",
            )
        if self.damping is not None and self.compliance is None:
            raise ElementError(
                f"damping of {kind.name} is given without compliance; rigid elements have no damping.",
                code="conflicting-arguments",
            )
        if not np.isfinite(parameters).all():
            bad = int(np.argmin(np.isfinite(parameters).all(1)))
            raise ElementError(
                f"{kind.name} {bad} has the parameters {parameters[bad]}; they must be finite.", code="not-finite"
            )
        object.__setattr__(self, "points", np.ascontiguousarray(points, np.int64))
        object.__setattr__(self, "numbers", parameters)
        for array in (self.points, self.numbers, self.compliance, self.damping):
            if array is not None:
                array.flags.writeable = False

    def _broadcast(self, name: str, value: Any, shape: tuple[int, ...]) -> Array:
        try:
            return np.array(np.broadcast_to(np.asarray(value, float), shape))
        except (TypeError, ValueError):
            raise ElementError(
                f"{name} of {self.kind.name} has shape {np.shape(value)}; it must broadcast to {shape}.",
                code="wrong-shape",
            ) from None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def rows(self) -> int:
        """Total number of rows."""
        return len(self) * self.kind.rows

    @property
    def rigid(self) -> bool:
        """Whether they are rigid."""
        return bool(self.kind.rows) and self.compliance is None
