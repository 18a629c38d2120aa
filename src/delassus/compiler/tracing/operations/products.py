"""Products of traced arrays, written out as sums of products.

Among booleans alone, sums are "or" and products are "and", as in NumPy.
"""

import string
from collections import Counter
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.tracing.array import Array, Ids
from delassus.compiler.tracing.flow import control
from delassus.compiler.tracing.handlers import HANDLERS, handles
from delassus.compiler.tracing.lifting import floats, lift
from delassus.compiler.tracing.shared import SharedArray

LARGEST_UNROLLED: Final = 1500
"""Products of two matrices with more terms than this are made in loops, which are as fast from some 500 terms on."""

ROWS: Final = 8
"""Rows of the first matrix that such a loop works on at once; fewer, or pieces, if they are longer than LONG / ROWS."""

LONG: Final = 1600

TILE: Final = 3
"""Rows and columns of a product whose sums are made side by side, in registers."""


@handles(np.einsum)
def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Array:
    """Sums of products in Einstein's notation; operands are multiplied from left to right."""
    if not isinstance(subscripts, str):
        raise TypeError("np.einsum on traced values takes its subscripts as a string, such as 'ij,jk->ik'.")
    arrays = lift(*operands)
    logical = all(array.truths for array in arrays)
    arrays = arrays if logical else floats(*arrays)
    terms, result = _parse(subscripts, arrays)
    if len(arrays) == 1 and set(terms[0]) == set(result):  # a view, as in NumPy
        return Array(arrays[0].origin, np.einsum(f"{terms[0]}->{result}", arrays[0].ids), logical)
    labels = result + "".join(sorted(set("".join(terms)) - set(result)))
    product: Array | None = None
    for term, array in zip(terms, arrays, strict=True):
        # Without a sum, einsum only moves elements, so NumPy's own works on the integers.
        labels_kept = "".join(label for label in labels if label in term)
        ids = np.einsum(f"{term}->{labels_kept}", array.ids)
        index = tuple(slice(None) if label in term else np.newaxis for label in labels)
        factor = Array(array.origin, ids[index], logical)
        product = factor if product is None else HANDLERS[np.multiply](product, factor)
    total: Array = HANDLERS[np.any if logical else np.sum](product, tuple(range(len(result), len(labels))))
    return total


def _parse(subscripts: str, arrays: list[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, "..." replaced by labels of its own."""
    operands, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = operands.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum got {len(arrays)} operands for the {len(terms)} terms of {subscripts!r}.")
    free = [label for label in string.ascii_letters if label not in subscripts]
    ranks = [
        array.ndim - len(term.replace("...", "")) for term, array in zip(terms, arrays, strict=True) if "..." in term
    ]
    dots = "".join(free[: max(ranks, default=0)])
    expanded = []
    for term, array in zip(terms, arrays, strict=True):
        rank = array.ndim - len(term.replace("...", ""))
        if rank < 0 or (rank > 0 and "..." not in term):
            raise ValueError(f"einsum: the term {term!r} does not fit an operand of shape {array.shape}.")
        expanded.append(term.replace("...", dots[len(dots) - rank :]))
    if not arrow:
        letters = "".join(terms).replace("...", "")
        result = "..." + "".join(sorted(label for label in set(letters) if letters.count(label) == 1))
    if dots and "..." not in result:
        raise ValueError(f"einsum: the result of {subscripts!r} needs an ellipsis, as its operands have one.")
    result = result.replace("...", dots)
    invalid = [label for label, count in Counter(result).items() if count > 1 or label not in "".join(expanded)]
    if invalid:
        raise ValueError(f"einsum: {invalid[0]!r} in the result of {subscripts!r} is twice there, or in no operand.")
    return expanded, result


@handles(np.matmul)
def matmul(a: Any, b: Any) -> Array:
    """The matrix product, with NumPy's rules for vectors and leading axes."""
    x, y = lift(a, b)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: an operand is a scalar; use * instead.")
    _check_fit("matmul", x, -1, y, -2 if y.ndim > 1 else 0)
    if x.ndim <= 2 and y.ndim <= 2 and x.size and y.size and not (x.truths or y.truths):
        return _matrix_product(x, y)
    left = "k" if x.ndim == 1 else "...ik"
    right = "k" if y.ndim == 1 else "...kj"
    return einsum(f"{left},{right}->...{left[-2:-1].strip('.')}{right[-1:].strip('k')}", x, y)


def _matrix_product(x: Array, y: Array) -> Array:
    """The product of two matrices (or vectors), term by term: what einsum would make, in a fraction of the time.

    Columns of a shared matrix can be read as well as rows, so that there are always enough sums at once.
    """
    rows = x.ids.reshape(-1, x.shape[-1])
    columns = y.ids.reshape(y.shape[0], -1).T
    terms = int(np.sum(np.count_nonzero(rows, 0) * np.count_nonzero(columns, 0)))
    if terms > LARGEST_UNROLLED:
        left, right = Array(x.origin, rows), Array(x.origin, columns)
        is_transposed = isinstance(y, SharedArray) and len(rows) < min(ROWS, len(columns))
        product = (_product_in_loops(right, left).T if is_transposed else _product_in_loops(left, right)).ids
    else:
        product = _product_values(x.origin.builder, rows, columns)
    return Array(x.origin, product.reshape(x.shape[:-1] + y.shape[1:]))


def _product_values(g: Builder, rows: Ids, columns: Ids) -> Ids:
    """All inner products of rows and columns, both as lists of vectors; exact zeros cost nothing.

    The order is that of tiles, whose sums grow side by side: each factor is read once for a tile.
    """
    add, mul = g.add, g.mul
    product = np.full((len(rows), len(columns)), ZERO, np.int64)
    for i in range(0, len(rows), TILE):
        for j in range(0, len(columns), TILE):
            row_tile, column_tile = rows[i : i + TILE].T.tolist(), columns[j : j + TILE].T.tolist()
            totals = [[ZERO] * len(column_tile[0]) for _ in row_tile[0]]
            for left, right in zip(row_tile, column_tile, strict=True):
                for a, sums in zip(left, totals, strict=True):
                    if a != ZERO:
                        for n, b in enumerate(right):
                            if b != ZERO:
                                sums[n] = add(sums[n], mul(a, b))
            product[i : i + TILE, j : j + TILE] = totals
    return product


def _product_in_loops(rows: Array, columns: Array) -> Array:
    """All inner products in loops over blocks of rows and over columns.

    A block has so many rows that their sums do not wait for each other, and is small enough for the nearest cache.
    """
    is_vector = len(columns) == 1
    block = min(len(rows), ROWS) if is_vector else max(1, min(len(rows), ROWS, LONG // rows.shape[1]))
    full_rows = len(rows) // block * block

    def of_block(part: Array) -> Any:
        if is_vector:
            return _with_one(part, columns[0])[:, None]
        return control.map(lambda column: _sums(part, column, [ZERO] * len(part)), columns).T

    parts = [control.map(of_block, rows[:full_rows].reshape(-1, block, rows.shape[1])).reshape(full_rows, len(columns))]
    if full_rows < len(rows):
        parts.append(of_block(rows[full_rows:]))
    result: Array = HANDLERS[np.concatenate](parts)
    return result


def _with_one(rows: Array, column: Array) -> Array:
    """The inner products of a few rows with one column; beyond `LONG` terms, all but the first ones in a loop."""
    length, none = len(column), [ZERO] * len(rows)
    if length * len(rows) <= LONG:
        return _sums(rows, column, none)
    count = -(-length * ROWS // LONG)
    piece = length // count
    first = length - (count - 1) * piece
    later = (rows[:, first:].reshape(-1, count - 1, piece).transpose(1, 0, 2), column[first:].reshape(-1, piece))
    totals, _ = control.scan(
        lambda totals, item: (_sums(item[0], item[1], totals.ids.tolist()), None),
        _sums(rows[:, :first], column[:first], none),
        later,
    )
    result: Array = totals
    return result


def _sums(rows: Array, column: Array, totals: list[int]) -> Array:
    """Totals so far, and the products of rows with a column added to them."""
    row_values, column = lift(rows, column)
    g = column.origin.builder
    for terms, b in zip(row_values.ids.T.tolist(), column.ids.tolist(), strict=True):
        totals = [g.add(total, g.mul(a, b)) for total, a in zip(totals, terms, strict=True)]
    return Array(column.origin, np.array(totals, np.int64))


def _check_fit(name: str, x: Array, i: int, y: Array, j: int) -> None:
    """Lengths that are summed over must be equal: einsum alone would stretch a length of 1."""
    if x.shape[i] != y.shape[j]:
        raise ValueError(f"{name}: shapes {x.shape} and {y.shape} do not fit: the inner lengths differ.")


@handles(np.dot)
def dot(a: Any, b: Any) -> Array:
    """NumPy's dot: over the last axis of `a` and the last but one of `b`."""
    x, y = lift(a, b)
    if x.ndim and 1 <= y.ndim <= 2:
        return matmul(x, y)
    return _sum_over(x, -1, y, -2)


def _sum_over(x: Array, i: int, y: Array, j: int) -> Array:
    """Sum over an axis of each; numbers multiply."""
    if x.ndim == 0 or y.ndim == 0:
        result: Array = x * y
        return result
    return tensordot(x, y, ([i], [j]))


@handles(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Array:
    """Sum over some axes of each operand."""
    x, y = lift(a, b)
    if isinstance(axes, int):
        axes = (list(range(-axes, 0)), list(range(axes)))
    normalize = np.lib.array_utils.normalize_axis_tuple
    over_x, over_y = normalize(axes[0], x.ndim, "a"), normalize(axes[1], y.ndim, "b")
    labels_x = list(string.ascii_letters[: x.ndim])
    labels_y = list(string.ascii_letters[x.ndim : x.ndim + y.ndim])
    for i, j in zip(over_x, over_y, strict=True):
        _check_fit("tensordot", x, i, y, j)
        labels_y[j] = labels_x[i]
    result = [label for label in labels_x + labels_y if not (label in labels_x and label in labels_y)]
    return einsum(f"{''.join(labels_x)},{''.join(labels_y)}->{''.join(result)}", x, y)


@handles(np.inner)
def inner(a: Any, b: Any) -> Array:
    """Sum over the last axis of both."""
    x, y = lift(a, b)
    return _sum_over(x, -1, y, -1)


@handles(np.vdot)
def vdot(a: Any, b: Any) -> Array:
    """The inner product of the flattened operands."""
    x, y = lift(a, b)
    return matmul(x.ravel(), y.ravel())


@handles(np.outer)
def outer(a: Any, b: Any) -> Array:
    """All products of two flattened operands."""
    x, y = lift(a, b)
    return einsum("i,j->ij", x.ravel(), y.ravel())


@handles(np.kron)
def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: every element of `a` times the whole of `b`."""
    x, y = lift(a, b)
    rank = max(x.ndim, y.ndim)
    outer_shape, inner_shape = ((1,) * (rank - z.ndim) + z.shape for z in (x, y))
    spread = x.reshape([length for n in outer_shape for length in (n, 1)])
    product: Array = spread * y.reshape([length for n in inner_shape for length in (1, n)])
    return product.reshape([m * n for m, n in zip(outer_shape, inner_shape, strict=True)])


@handles(np.cross, np.linalg.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross product of vectors of length 3."""
    x, y = lift(a, b)
    if x.shape == y.shape == (3,) and not (x.truths or y.truths):
        return _cross_of_two(x, y)
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = HANDLERS[np.moveaxis](x, axisa, -1), HANDLERS[np.moveaxis](y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(f"cross: vectors of length 3 expected, got {x.shape[-1]} and {y.shape[-1]}.")
    x0, x1, x2 = (x[..., i] for i in range(3))
    y0, y1, y2 = (y[..., i] for i in range(3))
    parts = HANDLERS[np.stack]([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1)
    result: Array = HANDLERS[np.moveaxis](parts, -1, axisc)
    return result


def _cross_of_two(x: Array, y: Array) -> Array:
    """The cross product of two vectors, without the general way through axes."""
    g = x.origin.builder
    (x0, x1, x2), (y0, y1, y2) = x.ids.tolist(), y.ids.tolist()
    pairs = ((x1, y2, x2, y1), (x2, y0, x0, y2), (x0, y1, x1, y0))
    return Array(x.origin, np.array([g.sub(g.mul(a, b), g.mul(c, d)) for a, b, c, d in pairs], np.int64))


@handles(np.vecdot, np.linalg.vecdot)
def vecdot(a: Any, b: Any, *, axis: int = -1) -> Array:
    """Inner products of vectors along an axis."""
    x, y = (HANDLERS[np.moveaxis](z, axis, -1) for z in lift(a, b))
    _check_fit("vecdot", x, -1, y, -1)
    return einsum("...i,...i->...", x, y)


def matvec(a: Any, b: Any) -> Array:
    """Matrices times vectors."""
    x, y = lift(a, b)
    _check_fit("matvec", x, -1, y, -1)
    return einsum("...ij,...j->...i", x, y)


def vecmat(a: Any, b: Any) -> Array:
    """Vectors times matrices."""
    x, y = lift(a, b)
    _check_fit("vecmat", x, -1, y, -2)
    return einsum("...i,...ij->...j", x, y)


@handles(np.linalg.outer)
def linalg_outer(a: Any, b: Any) -> Array:
    """All products of two vectors."""
    x, y = lift(a, b)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"linalg.outer: two vectors are needed, got shapes {x.shape} and {y.shape}.")
    return outer(x, y)


if hasattr(np, "matvec"):
    handles(np.matvec)(matvec)
    handles(np.vecmat)(vecmat)
handles(np.linalg.matmul)(matmul)
handles(np.linalg.tensordot)(tensordot)
handles(np.linalg.trace)(lambda a, **kwargs: HANDLERS[np.trace](a, axis1=-2, axis2=-1, **kwargs))
