"""Checks of the data of contact problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import FRICTIONS, RESTITUTIONS, elements, numbers_in_range, real_array
from delassus.contact.cones.kinds import Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.errors import BadArgument

_CONES: Final = (Free, Friction, Interval, NonNegative)

_RANGES: Final = {"friction": FRICTIONS, "torsional": FRICTIONS, "rolling": FRICTIONS, "restitution": RESTITUTIONS}

_ASYMMETRY: Final = 1e-8
"""Largest asymmetry of a matrix, relative to its largest entry."""

_INDEFINITE: Final = 1e-6
"""Largest negative eigenvalue of a matrix, relative to its largest eigenvalue: allows for files with eight digits, and
for a thousand rows that add up rounding errors.
"""


class ContactProblemError(BadArgument):
    """Invalid data of a contact problem."""


class ProblemIndexError(ContactProblemError, IndexError):
    """An index outside a batch of problems; ends a loop over the batch."""

    code = "index-out-of-range"


class ContactFileError(ContactProblemError, OSError):
    """A contact problem that cannot be written or read."""

    code = "unreadable-file"


def layout_of(G: NDArray[np.float64], g: NDArray[np.float64], cones: Any) -> Layout:
    """The cones of a problem; by default contacts of three rows each."""
    if G.ndim < 2 or G.shape[-1] != G.shape[-2]:
        raise ContactProblemError(
            f"G has shape {G.shape}; it must be a square matrix (…, m, m), one row for each of g.", code="wrong-shape"
        )
    m = G.shape[-1]
    if g.ndim < 1 or g.shape[-1] != m:
        raise ContactProblemError(
            f"g has shape {g.shape}, and G has {m} rows: g needs {m} numbers in its last axis.", code="wrong-shape"
        )
    if cones is None:
        if m % 3:
            raise ContactProblemError(
                f"G has {m} rows, which is not a multiple of 3: without cones, every three rows t1, t2, n are "
                "a contact. Name the cones, such as cones=[dl.cones.Friction(), dl.cones.Free(2)].",
                code="wrong-shape",
            )
        cones = [Friction()] * (m // 3)
    cones = list(elements(cones)) if isinstance(cones, Iterable) else [cones, None]
    if not all(isinstance(cone, _CONES) for cone in cones):
        raise ContactProblemError(
            f"cones has {cones[0]!r}; it must be a list of cones, such as [dl.cones.Friction(), dl.cones.Free(2)].",
            code="wrong-type",
        )
    layout = Layout(tuple(cones))
    if layout.m != m:
        description = ", ".join(f"{type(c).__name__}({c.rows})" for c in layout.cones)
        raise ContactProblemError(
            f"the cones ({description}) have {layout.m} rows together, and G has {m}.", code="wrong-shape"
        )
    if not m:
        raise ContactProblemError("the problem has no rows: there is nothing to solve.", code="nothing-to-do")
    return layout


def broadcast_rows(name: str, value: Any, count: int, rows: str) -> NDArray[np.float64] | None:
    """Values (…, count) from one for all or one for each; None if no row needs them."""
    if value is not None:
        value = numbers_in_range(name, value, _RANGES[name]) if name in _RANGES else real_array(name, value)
    if not count:
        if value is not None and value.size:
            raise ContactProblemError(
                f"{name} is given, but no cone has {rows}: omit it, or add such a cone.",
                code="conflicting-arguments",
            )
        return None
    if value is None:
        raise ContactProblemError(
            f"{name} is missing: {count} {rows} need it, such as {name}=0.5.", code="missing-argument"
        )
    values: NDArray[np.float64] = value
    if values.ndim == 0:
        return np.full(count, float(values))
    if values.shape[-1] != count and values.shape[-1] != 1:
        raise ContactProblemError(
            f"{name} has shape {values.shape}; its last axis has one number for each of {count} {rows}, or one "
            "for all.",
            code="wrong-shape",
        )
    return np.broadcast_to(values, (*values.shape[:-1], count))


def not_negative(name: str, values: NDArray[np.float64] | None) -> None:
    """Raise an error if a value is negative. NaN is allowed: it affects only its own problem."""
    if values is not None and np.any(values < 0.0):
        raise ContactProblemError(f"{name} is {np.nanmin(values):.6g}; it cannot be negative.", code="out-of-range")


def ordered(lower: NDArray[np.float64] | None, upper: NDArray[np.float64] | None) -> None:
    """Raise an error if a lower bound is above its upper bound."""
    if lower is None or upper is None:
        return
    try:
        below, above = np.broadcast_arrays(lower, upper)
    except ValueError:
        return  # the caller reports batch axes that do not fit
    if np.any(below > above):
        at = np.unravel_index(int(np.argmax(below - above)), below.shape)
        raise ContactProblemError(
            f"a lower bound, {below[at]:.6g}, is above its upper bound, {above[at]:.6g}.", code="empty-interval"
        )


def check_matrix(G: NDArray[np.float64]) -> None:
    """Raise an error unless all matrices without NaN are symmetric and positive semidefinite up to rounding."""
    matrices = G.reshape(-1, *G.shape[-2:])
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(matrices).all((-2, -1)))
    matrices = matrices[finite]
    if not len(matrices):
        return
    size = np.abs(matrices).max((-2, -1))
    asymmetry = np.abs(matrices - matrices.mT).max((-2, -1))
    if np.any(asymmetry > _ASYMMETRY * size):
        at = int(np.argmax(asymmetry / np.where(size > 0.0, size, 1.0)))
        raise ContactProblemError(
            f"G is not symmetric: {_describe_index(finite, at)}entries differ by up to {asymmetry[at]:.3g}, of "
            f"{size[at]:.3g}.",
            code="not-symmetric",
        )
    values = np.linalg.eigvalsh(0.5 * (matrices + matrices.mT))
    largest = np.abs(values).max(-1)
    if np.any(values[:, 0] < -_INDEFINITE * largest):
        at = int(np.argmin(values[:, 0] / np.where(largest > 0.0, largest, 1.0)))
        raise ContactProblemError(
            f"G is not positive semidefinite: {_describe_index(finite, at)}its smallest eigenvalue is "
            f"{values[at, 0]:.3g}, its largest {values[at, -1]:.3g}. J M⁻¹ Jᵀ has no negative ones.",
            code="not-semidefinite",
        )


def _describe_index(finite: NDArray[np.bool_], at: int) -> str:
    return f"in problem {int(np.flatnonzero(finite)[at])} of the batch, " if len(finite) > 1 else ""
