"""Products of traced arrays: everything that is a sum of products, written out term by term."""

import string
from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.handlers import HANDLERS, handles
from delassus.compiler.lifting import floats


@handles(np.einsum)
def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Array:
    """Sums of products in Einstein's notation; operands are multiplied from left to right."""
    arrays = floats(*operands)
    terms, result = _parse(subscripts, arrays)
    labels = result + "".join(sorted(set("".join(terms)) - set(result)))
    product: Array | None = None
    for term, array in zip(terms, arrays, strict=True):
        # Without a sum, einsum only moves elements, so NumPy's own works on the integers.
        kept = "".join(label for label in labels if label in term)
        moved = np.einsum(f"{term}->{kept}", array.ids)
        index = tuple(slice(None) if label in term else np.newaxis for label in labels)
        factor = Array(array.origin, moved[index])
        product = factor if product is None else HANDLERS[np.multiply](product, factor)
    total: Array = HANDLERS[np.sum](product, tuple(range(len(result), len(labels))))
    return total


def _parse(subscripts: str, arrays: list[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, "..." replaced by labels of its own."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
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
    return expanded, result.replace("...", dots)


@handles(np.matmul)
def matmul(a: Any, b: Any) -> Array:
    """The matrix product, with NumPy's rules for vectors and leading axes."""
    x, y = floats(a, b)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: an operand is a scalar; use * instead.")
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape} do not fit: the inner lengths differ.")
    left = "k" if x.ndim == 1 else "...ik"
    right = "k" if y.ndim == 1 else "...kj"
    return einsum(f"{left},{right}->...{left[-2:-1].strip('.')}{right[-1:].strip('k')}", x, y)


@handles(np.dot)
def dot(a: Any, b: Any) -> Array:
    """NumPy's dot: over the last axis of `a` and the last but one of `b`."""
    x, y = floats(a, b)
    if x.ndim == 0 or y.ndim == 0:
        result: Array = x * y
        return result
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, ([-1], [-2]))


@handles(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Array:
    """Sum over some axes of each operand."""
    x, y = floats(a, b)
    if isinstance(axes, int):
        axes = (list(range(x.ndim - axes, x.ndim)), list(range(axes)))
    over_x, over_y = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    labels_x = list(string.ascii_letters[: x.ndim])
    labels_y = list(string.ascii_letters[x.ndim : x.ndim + y.ndim])
    for i, j in zip(over_x, over_y, strict=True):
        labels_y[j] = labels_x[i]
    result = [label for label in labels_x + labels_y if not (label in labels_x and label in labels_y)]
    return einsum(f"{''.join(labels_x)},{''.join(labels_y)}->{''.join(result)}", x, y)


@handles(np.inner)
def inner(a: Any, b: Any) -> Array:
    """Sum over the last axis of both."""
    x, y = floats(a, b)
    if x.ndim == 0 or y.ndim == 0:
        result: Array = x * y
        return result
    return tensordot(x, y, ([-1], [-1]))


@handles(np.vdot)
def vdot(a: Any, b: Any) -> Array:
    """The inner product of the flattened operands."""
    x, y = floats(a, b)
    return einsum("i,i->", x.ravel(), y.ravel())


@handles(np.outer)
def outer(a: Any, b: Any) -> Array:
    """All products of two flattened operands."""
    x, y = floats(a, b)
    return einsum("i,j->ij", x.ravel(), y.ravel())


@handles(np.kron)
def kron(a: Any, b: Any) -> Array:
    """The Kronecker product of two matrices."""
    x, y = floats(a, b)
    if x.ndim != 2 or y.ndim != 2:
        raise TypeError("np.kron on traced values takes two matrices.")
    return einsum("ij,kl->ikjl", x, y).reshape(x.shape[0] * y.shape[0], x.shape[1] * y.shape[1])


@handles(np.cross, np.linalg.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross product of vectors of length 3."""
    x, y = floats(a, b)
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


if hasattr(np, "vecdot"):
    handles(np.vecdot, np.linalg.vecdot)(lambda a, b, **_: einsum("...i,...i->...", a, b))
if hasattr(np, "matvec"):
    handles(np.matvec)(lambda a, b, **_: einsum("...ij,...j->...i", a, b))
    handles(np.vecmat)(lambda a, b, **_: einsum("...i,...ij->...j", a, b))
handles(np.linalg.matmul)(matmul)
handles(np.linalg.outer)(outer)
handles(np.linalg.tensordot)(tensordot)
handles(np.linalg.trace)(lambda a, **kwargs: HANDLERS[np.trace](a, axis1=-2, axis2=-1, **kwargs))
