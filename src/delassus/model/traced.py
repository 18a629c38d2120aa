"""Parts of a model with traced values: inertias and placements; `TracedModel` contains them.

They have the interface of constant parts, exist while a kernel is traced, and are compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.array import contains_traced
from delassus.model.placement import Inertia, Placement
from delassus.spatial.inertias import inertia_from_parameters
from delassus.spatial.quaternions import quaternion_to_rotation


def has_nonzero(values: Iterable[Any]) -> bool:
    """Whether any value is nonzero, or known only at run time."""
    return any(not isinstance(x, (int, float)) or x != 0.0 for x in values)


def array_of(values: tuple[Any, ...]) -> Any:
    """Values as an array: plain, unless some of them are traced."""
    return np.array(values) if contains_traced(values) else numpy.array(values)


@dataclass(frozen=True, eq=False)
class TracedPlacement(Placement):
    """A placement whose rotation (3, 3) and translation (3,) are traced arrays."""

    @classmethod
    def of_parameters(cls, x: Any) -> TracedPlacement:
        """From seven numbers: a translation [m], then a unit quaternion (x, y, z, w)."""
        return cls(quaternion_to_rotation(x[3:]), x[:3])

    @property
    def R(self) -> Any:
        """The rotation (3, 3)."""
        return self.rotation

    @property
    def p(self) -> Any:
        """The translation (3,) [m]."""
        return self.translation

    def __mul__(self, inner: Placement) -> TracedPlacement:
        return _product(self, inner)

    def __rmul__(self, outer: Placement) -> TracedPlacement:
        return _product(outer, self)

    def inverse(self) -> TracedPlacement:
        """The outer frame in the inner."""
        R: Any = self.R.T
        return TracedPlacement(R, -(R @ self.p))


def _product(outer: Placement, inner: Placement) -> TracedPlacement:
    R: Any = outer.R
    return TracedPlacement(R @ inner.R, outer.p + R @ inner.p)


@dataclass(frozen=True, eq=False, kw_only=True)
class TracedInertia(Inertia):
    """An inertia whose mass, center (3,) and rotational inertia (3, 3) are traced.

    The first moment and the inertia about the origin are the parameters themselves, stored without recomputation.
    """

    first: Any
    about: Any

    @classmethod
    def of_parameters(cls, x: Any) -> TracedInertia:
        """From the ten numbers of `inertia_parameters`."""
        xx, xy, yy, xz, yz, zz = (x[k] for k in range(4, 10))
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return cls(*inertia_from_parameters(x), first=x[1:4], about=about)

    @classmethod
    def of_mass(cls, mass: Any, body: Inertia) -> TracedInertia:
        """The inertia of a body of constants with another density."""
        rotational, about = numpy.array(body.rotational) / body.mass, body.about_origin / body.mass
        first = mass * numpy.array(body.com)
        return cls(mass, body.com, mass * rotational, first=first, about=mass * about)

    @property
    def first_moment(self) -> Any:
        """m c (3,) [kg·m]."""
        return self.first

    @property
    def about_origin(self) -> Any:
        """The rotational inertia (3, 3) [kg·m²] about the origin of the body's frame."""
        return self.about

    def transform(self, placement: Placement) -> TracedInertia:
        """The body, described in a frame in which its present frame has this placement."""
        R: Any = placement.R
        p: Any = placement.p
        rotated, about = R @ self.first, R @ self.about @ R.T
        first = rotated + self.mass * p
        # Parallel axes, with the first moments before and after the move: all of it folds where p is zero.
        about = about + (rotated @ p + p @ first) * np.eye(3) - np.outer(rotated, p) - np.outer(p, first)
        return TracedInertia(self.mass, p + R @ self.com, R @ self.rotational @ R.T, first=first, about=about)
