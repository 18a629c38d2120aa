"""The data of one or many quadratic programs: checks, names, residuals at a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import elements, real_array
from delassus.common.deprecated import OldName
from delassus.common.frozen import read_only
from delassus.control.qp.shape import QPError, QPShape, pattern_of
from delassus.errors import short

Array = NDArray[np.float64]

SYMMETRIC: Final = 1e-10
"""Largest asymmetry of H, relative to its largest entry."""

_MATRICES = ("H", "A", "C", "K")
_VECTORS = {"g": None, "b": "A", "lower": "C", "upper": "C", "k": "K"}


@dataclass(frozen=True, eq=False)
class QPData:
    """The data of a `QP`, as back ends and measures read them."""

    H: Array
    g: Array
    A: Array = None  # type: ignore[assignment]
    b: Array = None  # type: ignore[assignment]
    C: Array = None  # type: ignore[assignment]
    lower: Array = None  # type: ignore[assignment]
    upper: Array = None  # type: ignore[assignment]
    K: Array = None  # type: ignore[assignment]
    k: Array = None  # type: ignore[assignment]
    cones: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    shape: QPShape = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        g = real_array("g", self.g)
        if g.ndim < 1 or not g.shape[-1]:
            raise QPError(
                f"g has shape {g.shape}; its last axis must have one value for each unknown.",
                code="wrong-shape",
            )
        n = g.shape[-1]
        arrays = {name: getattr(self, name) for name in (*_MATRICES, *_VECTORS)}
        for name in _MATRICES:
            arrays[name] = _matrix(name, arrays[name], n)
        if arrays["H"].shape[-2] != n:
            raise QPError(
                f"H has shape {arrays['H'].shape}; with {n} unknowns it must be (…, {n}, {n}).", code="wrong-shape"
            )
        uneven = np.abs(arrays["H"] - np.swapaxes(arrays["H"], -1, -2))
        if np.any(uneven > SYMMETRIC * np.max(np.abs(arrays["H"]), (-1, -2), keepdims=True)):
            raise QPError(
                f"H differs from its transpose by {np.nanmax(uneven):.3g}; it must be symmetric: pass (H + Hᵀ) / 2.",
                code="not-symmetric",
            )
        for name, of in _VECTORS.items():
            rows = n if of is None else arrays[of].shape[-2]
            none = {"lower": -np.inf, "upper": np.inf}.get(name, 0.0)
            arrays[name] = _vector(name, arrays[name], rows, none)
        sizes = elements(self.cones)
        if not all(isinstance(size, (int, np.integer)) for size in sizes):
            raise QPError(
                f"cones is {short(repr(self.cones))}; it must have the number of rows of each cone.",
                code="not-a-whole-number",
            )
        for label in ("names", "unknowns"):
            if not all(isinstance(name, str) for name in elements(getattr(self, label))):
                raise QPError(
                    f"{label} is {short(repr(getattr(self, label)))}; they must be strings.", code="wrong-type"
                )
        cones = tuple(int(size) for size in sizes)
        if sum(cones) != arrays["K"].shape[-2] or any(size < 1 for size in cones):
            raise QPError(
                f"cones is {cones}; each cone must have one or more of the {arrays['K'].shape[-2]} rows of K, together "
                "all of them.",
                code="wrong-shape",
            )
        for name, value in arrays.items():
            object.__setattr__(self, name, read_only(value))
        object.__setattr__(self, "cones", cones)
        equalities, rows = arrays["A"].shape[-2], arrays["C"].shape[-2]
        default_names = [f"equality {i}" for i in range(equalities)] + [f"row {i}" for i in range(rows)]
        default_names += [f"cone {i}" for i in range(len(cones))]
        names = tuple(self.names) or tuple(default_names)
        if len(names) != len(default_names) or len(set(names)) != len(names):
            raise QPError(
                f"names has {len(names)} names, of which {len(set(names))} are different; it must have "
                f"{len(default_names)} different ones, one for each row and cone.",
                code="wrong-shape",
            )
        object.__setattr__(self, "names", names)
        unknowns = tuple(self.unknowns) or tuple(f"x {i}" for i in range(n))
        if len(unknowns) != n:
            raise QPError(
                f"unknowns has {len(unknowns)} names; it must have {n}, one for each unknown.", code="wrong-shape"
            )
        object.__setattr__(self, "unknowns", unknowns)
        try:
            _ = self.batch
        except ValueError:
            axes = [f"{name} {getattr(self, name).shape[:-2]}" for name in _MATRICES]
            axes += [f"{name} {getattr(self, name).shape[:-1]}" for name in _VECTORS]
            raise QPError(f"the batch axes do not broadcast: {', '.join(axes)}.", code="batch-mismatch") from None
        if self.shape is None:
            H, A, C, K = (pattern_of(arrays[name]) for name in _MATRICES)
            object.__setattr__(self, "shape", QPShape(n, equalities, rows, cones, (H, A, C, K)))

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes."""
        return np.broadcast_shapes(
            *(getattr(self, name).shape[:-2] for name in _MATRICES),
            *(getattr(self, name).shape[:-1] for name in _VECTORS),
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """H, g, A, b, C, lower, upper, K and k."""
        return (self.H, self.g, self.A, self.b, self.C, self.lower, self.upper, self.K, self.k)

    @property
    def bounded_names(self) -> tuple[str, ...]:
        """Names of the rows of C and of the cones."""
        return self.names[self.shape.equalities :]

    @property
    def places(self) -> dict[str, slice]:
        """The slice of each name among all multipliers."""
        single = self.shape.equalities + self.shape.rows
        slices = {name: slice(i, i + 1) for i, name in enumerate(self.names[:single])}
        for name, span in zip(self.names[single:], self.shape.spans, strict=True):
            slices[name] = slice(single + span.start, single + span.stop)
        return slices

    def item(self, *index: Any) -> Self:
        """One program of a batch."""
        batch, arrays = self.batch, {}
        for name in (*_MATRICES, *_VECTORS):
            value = getattr(self, name)
            core = 2 if name in _MATRICES else 1
            try:
                np.broadcast_to(False, batch)[index]
            except (IndexError, TypeError, ValueError, OverflowError):
                raise QPError(
                    f"there is no program {short(repr(index))} in the batch {batch}.", code="index-out-of-range"
                ) from None
            arrays[name] = np.broadcast_to(value, (*batch, *value.shape[-core:]))[index]
        return replace(self, **arrays)

    def row_violation(self, x: Any) -> Array:
        """(…, multipliers) violation of each row by x, in its units; rows of one cone share its distance."""
        x = self._unknowns(x)
        equal = np.abs(_times(self.A, x) - self.b)
        rows = _times(self.C, x)
        excess = np.maximum(np.maximum(rows - self.upper, self.lower - rows), 0.0)
        parts = [equal, excess]
        parts += [np.maximum(-slack, 0.0)[..., None] * np.ones(size) for slack, size in self._cones_left(x)]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts], axis=-1)

    missed = OldName("row_violation")

    def _unknowns(self, x: Any) -> Array:
        unknowns = real_array("x", x)
        if unknowns.shape[-1:] != (self.shape.n,):
            raise QPError(
                f"x has shape {unknowns.shape}; its last axis must have the {self.shape.n} unknowns.",
                code="wrong-shape",
            )
        return unknowns

    def slack(self, x: Any) -> Array:
        """(…, rows + cones) distance of x from the nearer bound of each row of C and from the boundary of each cone."""
        x = self._unknowns(x)
        rows = _times(self.C, x)
        parts = [np.minimum(self.upper - rows, rows - self.lower)]
        parts += [margin[..., None] for margin, _ in self._cones_left(x)]
        return np.concatenate(parts, axis=-1)

    def _cones_left(self, x: Array) -> list[tuple[Array, int]]:
        s = _times(self.K, x) + self.k
        slacks = []
        for span, size in zip(self.shape.spans, self.cones, strict=True):
            part = s[..., span]
            slacks.append(((part[..., -1] - np.linalg.norm(part[..., :-1], axis=-1)), size))
        return slacks

    def value(self, x: Any) -> Array:
        """(…) ½ xᵀ H x + gᵀ x."""
        x = self._unknowns(x)
        value: Array = np.sum(x * (0.5 * _times(self.H, x) + self.g), -1)
        return value

    def __repr__(self) -> str:
        shape = self.shape
        return (
            f"{type(self).__name__}({shape.n} unknowns, {shape.equalities} equalities, {shape.rows} rows, "
            f"{len(shape.cones)} cones, batch {self.batch})"
        )


def _times(M: Array, x: Array) -> Array:
    product: Array = np.matmul(M, x[..., None])[..., 0]
    return product


def _matrix(name: str, value: Any, n: int) -> Array:
    if value is None:
        return np.zeros((0, n))
    matrix = real_array(name, value)
    if matrix.ndim < 2 or matrix.shape[-1] != n:
        raise QPError(
            f"{name} has shape {matrix.shape}; its last axis must have the size {n}, the number of unknowns.",
            code="wrong-shape",
        )
    return matrix


def _vector(name: str, value: Any, rows: int, none: float) -> Array:
    vector = real_array(name, none if value is None else value)
    if vector.ndim == 0:
        vector = np.full(rows, float(vector))
    if vector.shape[-1] != rows:
        raise QPError(f"{name} has shape {vector.shape}; its last axis must have {rows} values.", code="wrong-shape")
    return vector
