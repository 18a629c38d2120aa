"""The data of a contact problem: checks, access to single problems, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from delassus.common.archives import read_arrays, write_arrays
from delassus.common.checks import boolean, real_array
from delassus.common.frozen import read_only
from delassus.common.options import Shortcuts
from delassus.contact.cones.kinds import Cone, Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.checks import (
    ContactFileError,
    ContactProblemError,
    ProblemIndexError,
    broadcast_rows,
    check_matrix,
    layout_of,
    not_negative,
    ordered,
)
from delassus.contact.problems.operators import operator_of
from delassus.errors import short

_KINDS: Final = {kind.__name__: kind for kind in (Friction, Free, NonNegative, Interval)}
_NUMBERS: Final = ("friction", "torsional", "rolling", "lower", "upper", "compliance")


class Bounds(NamedTuple):
    """Bounds (…, intervals) of the impulses of interval rows [N·s]; None without interval rows.

    >>> dl.contact.Bounds(lower=-1.0, upper=1.0).upper
    1.0
    """

    lower: Any = None
    upper: Any = None

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields."""
        return self._replace(**changes)


_PROBLEM: Final = Shortcuts("ContactProblem", "G g cones check", contact=ContactParameters(), bounds=Bounds())


@dataclass(frozen=True, eq=False, init=False)
class ContactData:
    """The data of a `ContactProblem`, as solvers and measures read them."""

    G: NDArray[np.float64]
    operator: Any
    g: NDArray[np.float64]
    layout: Layout
    friction: NDArray[np.float64] | None
    torsional: NDArray[np.float64] | None
    rolling: NDArray[np.float64] | None
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    compliance: NDArray[np.float64] | None

    def __init__(
        self,
        G: Any,
        g: Any,
        cones: Sequence[Cone] | None = None,
        *,
        contact: ContactParameters | None = None,
        bounds: Bounds | None = None,
        check: bool = True,
        **shortcuts: Any,
    ) -> None:
        """Create a problem and check its arrays.

        Args:
            G: (…, m, m) Delassus matrix, or an operator in its place (see `DelassusOperator`).
            g: (…, m) free velocities [m/s].
            cones: Cones of the rows, in order; by default every three rows t1, t2, n are a contact.
            contact: A `ContactParameters`, with one value for all or one for each: friction of the contacts, zero and
                infinity are allowed; torsional of contacts with four or more rows [m]; rolling of contacts with six
                rows [m]; compliance R of rows [1/kg].
            bounds: Lower and upper bounds of the interval rows [N·s].
            check: Whether to test that G is symmetric and positive semidefinite, which takes time for large batches.
            **shortcuts: friction, torsional, rolling, compliance (contact); lower, upper (bounds).
        """
        contact, bounds = _PROBLEM.fill(shortcuts, contact=contact, bounds=bounds)
        friction, torsional, rolling, restitution, compliance = contact
        if restitution is not None:
            raise ContactProblemError(
                "restitution is not an option of a contact problem: include it in g.", code="not-supported"
            )
        lower, upper = bounds
        operator = operator_of(G)
        G = G.toarray() if hasattr(G, "toarray") else G  # a sparse matrix
        # An operator has no entries; an array of zeros without memory provides its shape.
        form = "an array of real numbers"
        entries = np.broadcast_to(0.0, () if operator is None else operator.shape)
        G = real_array("G", G, form) if operator is None else entries
        g = real_array("g", g, form)
        layout = layout_of(G, g, cones)
        values = {
            "friction": broadcast_rows("friction", friction, layout.contacts, "contacts"),
            "torsional": broadcast_rows("torsional", torsional, layout.torsional, "contacts with torsional friction"),
            "rolling": broadcast_rows("rolling", rolling, layout.rolling, "contacts with rolling friction"),
            "lower": broadcast_rows("lower", lower, layout.intervals, "interval rows"),
            "upper": broadcast_rows("upper", upper, layout.intervals, "interval rows"),
            "compliance": None if compliance is None else broadcast_rows("compliance", compliance, layout.m, "rows"),
        }
        not_negative("compliance", values["compliance"])
        ordered(values["lower"], values["upper"])
        try:
            np.broadcast_shapes(G.shape[:-2], g.shape[:-1], *(x.shape[:-1] for x in values.values() if x is not None))
        except ValueError:
            shapes = {"G": G.shape, "g": g.shape} | {k: x.shape for k, x in values.items() if x is not None}
            description = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ContactProblemError(
                f"the batch axes do not broadcast: {description}.", code="batch-mismatch"
            ) from None
        boolean("check", check)
        if check and operator is None:
            check_matrix(G)
        for name, value in {"G": G, "operator": operator, "g": g, "layout": layout, **values}.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)

    @property
    def m(self) -> int:
        """The number of rows."""
        return self.layout.m

    @property
    def contacts(self) -> int:
        """The number of contacts with friction."""
        return self.layout.contacts

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: () for one problem."""
        arrays = [x.shape[:-1] for x in self.numbers.values()]
        return np.broadcast_shapes(self.G.shape[:-2], self.g.shape[:-1], *arrays)

    @cached_property
    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """The coefficients, bounds and compliances that are not None."""
        return {name: getattr(self, name) for name in _NUMBERS if getattr(self, name) is not None}

    def __getitem__(self, index: Any) -> Self:
        """Select one problem of a batch, or several."""
        batch = self.batch
        if not batch:
            raise IndexError("this is a single problem, not a batch; it cannot be indexed.")
        self._needs_entries("be taken apart")

        def at(x: NDArray[np.float64], core: int) -> NDArray[np.float64]:
            return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))[index]

        try:
            np.broadcast_to(False, batch)[index]
        except (IndexError, TypeError, ValueError, OverflowError):
            raise ProblemIndexError(f"there is no problem {short(repr(index))} in the batch {batch}.") from None

        parameters: dict[str, Any] = {name: at(x, 1) for name, x in self.numbers.items()}
        return type(self)(at(self.G, 2), at(self.g, 1), self.layout.cones, **parameters, check=False)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{type(c).__name__}({c.rows})" for c in self.layout.cones[:6])
        suffix = ", …" if len(self.layout.cones) > 6 else ""
        return f"{type(self).__name__}({self.m} rows: {kinds}{suffix}; batch {self.batch})"

    def save(self, path: str | Path) -> None:
        """Write the problem to a `.npz` file."""
        self._needs_entries("be saved")
        cones = np.array([f"{type(c).__name__} {c.rows}" for c in self.layout.cones])
        arrays: dict[str, Any] = {"G": self.G, "g": self.g, "cones": cones, **self.numbers}
        write_arrays("the contact problem", path, arrays, ContactFileError)

    def _needs_entries(self, purpose: str) -> None:
        if self.operator is not None:
            raise ContactProblemError(
                f"G is an operator: only a problem with a dense matrix can {purpose}.", code="not-supported"
            )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a problem from a file written by `save`."""
        arrays = read_arrays("the contact problem", path, ContactFileError)
        missing = {"G", "g", "cones"} - set(arrays)
        if missing:
            raise ContactProblemError(
                f"{path} is not a contact problem: it has no {', '.join(sorted(missing))}.", code="other-file"
            )
        texts = {name: x.shape for name, x in arrays.items() if (x.dtype.kind == "U") != (name == "cones")}
        if texts or arrays["cones"].ndim != 1:
            raise ContactProblemError(
                f"{path} is not a contact problem: cones must be a list of strings, and the rest numbers.",
                code="other-file",
            )
        cones = [_cone(str(text), path) for text in arrays["cones"]]
        parameters: dict[str, Any] = {name: arrays[name] for name in _NUMBERS if name in arrays}
        return cls(arrays["G"], arrays["g"], cones, **parameters)


def _cone(text: str, path: str | Path) -> Cone:
    name, _, rows = text.partition(" ")
    if name not in _KINDS or not rows.isdecimal() or len(rows) > 9:
        raise ContactProblemError(
            f"{path} has a cone {text!r}; there are {', '.join(_KINDS)}, each with a number of rows.", code="other-file"
        )
    cone: Cone = _KINDS[name](int(rows))
    return cone
