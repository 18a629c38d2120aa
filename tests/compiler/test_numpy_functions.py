"""Every NumPy function that has a traced form, against NumPy itself on the same numbers."""

import copy
import re

import numpy
import pytest

import delassus.numpy
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.handlers import HANDLERS
from delassus.compiler.tracing.record import record

NAN, INF = numpy.nan, numpy.inf
SPECIAL = numpy.array([0.0, -0.0, 1.0, -2.5, INF, -INF, NAN])
UNSIGNED = SPECIAL[numpy.arange(7) != 1]  # the sign of zero counts for nothing in a graph
TIES = numpy.array([1.0, 2.0, 2.0, -1.0, 0.0, -1.0])
OTHER = numpy.array([1.0, 1.0, 3.0, -1.0, 0.0, 2.0])
HALVES = numpy.array([0.0, 0.3, 0.5, 1.0, 1.5, 2.5, -0.25, -0.5, -1.0, -2.5, 7.0, 1e9, INF, -INF, NAN])
PLAIN = numpy.array([[1.5, -2.0, 0.25], [3.0, 0.0, -1.0]])


def parts(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def inputs_of(shapes):
    """The arrays of a case: random ones for shapes, copies of those that are given."""
    rng = numpy.random.default_rng(sum(map(numpy.size, shapes)) + len(shapes))
    return [s.copy() if isinstance(s, numpy.ndarray) else rng.normal(size=s) for s in shapes]


def assert_traced_agrees(function, shapes, module=delassus.numpy, rtol=1e-12):
    """`function(numpy, *arrays)` on plain arrays against `function(module, *arrays)` on traced ones."""
    with numpy.errstate(all="ignore"):
        expected = [numpy.asarray(e) for e in parts(function(numpy, *inputs_of(shapes)))]
    kinds = []

    def body(*arrays):
        results = parts(function(module, *arrays))
        kinds.extend(getattr(r, "dtype", None) for r in results)
        return tuple(results)

    arrays = inputs_of(shapes)
    program = record(
        "case",
        body,
        tuple(Operand(f"x{k}", a.shape) for k, a in enumerate(arrays)),
        tuple(Operand(f"y{k}", e.shape) for k, e in enumerate(expected)),
    )
    for got, kind, e in zip(evaluate(program, *arrays), kinds, expected, strict=True):
        numpy.testing.assert_allclose(got, e.astype(float), rtol=rtol, atol=1e-13)
        assert (kind == numpy.bool_) == (e.dtype == numpy.bool_), "booleans in one, numbers in the other"


CASES = [
    # --- arithmetic ---------------------------------------------------------------------------------------------
    ("add", lambda np, x, y: np.add(x, y), (3,), (2, 3)),
    ("add", lambda np, x, y: np.add(x > 0, y > 0), (9,), (9,)),
    ("add", lambda np, x: np.add(x, 2), (2, 1, 3)),
    ("subtract", lambda np, x, y: np.subtract(x, y), (2, 1), (1, 3)),
    ("subtract", lambda np, x: np.subtract(1.0, x), (3,)),
    ("multiply", lambda np, x, y: np.multiply(x, y), (2, 3), ()),
    ("multiply", lambda np, x, y: np.multiply(x > 0, y > 0), (9,), (9,)),
    ("multiply", lambda np, x, y: np.multiply(x > 0, y), (9,), (9,)),
    ("divide", lambda np, x, y: np.divide(x, y), (4, 1), (4,)),
    ("divide", lambda np, x: np.divide(x, 8.0), (4,)),
    ("divide", lambda np, x: np.divide(1.0, x), SPECIAL[2:]),
    ("divide", lambda np, x: np.divide(x, 0.0), SPECIAL[2:]),
    ("negative", lambda np, x: np.negative(x), SPECIAL),
    ("positive", lambda np, x: np.positive(x), (3,)),
    ("conjugate", lambda np, x: np.conjugate(x), (3,)),
    ("power", lambda np, x: np.power(x, 3), (3,)),
    ("power", lambda np, x: np.power(x, 0), SPECIAL),
    ("power", lambda np, x: np.power(x, -2), (3,)),
    ("power", lambda np, x: np.power(np.absolute(x), 2.5), (3,)),
    ("power", lambda np, x: np.power(np.absolute(x), -0.5), (3,)),
    ("power", lambda np, x: np.power(x, [[0], [1], [2], [7], [-1], [13]]), (3,)),
    ("power", lambda np, x: np.power(np.absolute(x), [0.3, 2, -1.25]), (3,)),
    ("power", lambda np, x, y: np.power(x, y), UNSIGNED[:, None], UNSIGNED),
    ("power", lambda np, x, y: np.absolute(x) ** y, (2, 3), (3,)),
    ("power", lambda np, x: 2.0**x, SPECIAL),
    ("float_power", lambda np, x: np.float_power(x, 4), (3,)),
    ("square", lambda np, x: np.square(x), SPECIAL),
    ("reciprocal", lambda np, x: np.reciprocal(x), SPECIAL[2:]),
    ("sqrt", lambda np, x: np.sqrt(x), SPECIAL),
    ("absolute", lambda np, x: np.absolute(x), SPECIAL),
    ("absolute", lambda np, x: np.absolute(x > 0), (5,)),
    ("fabs", lambda np, x: np.fabs(x), SPECIAL),
    ("sign", lambda np, x: np.sign(x), SPECIAL),
    ("floor", lambda np, x: np.floor(x), HALVES),
    ("ceil", lambda np, x: np.ceil(x), HALVES),
    ("rint", lambda np, x: np.rint(x), HALVES),
    ("trunc", lambda np, x: np.trunc(x), HALVES),
    ("remainder", lambda np, x, y: np.remainder(x, y), HALVES[:, None], HALVES),
    ("mod", lambda np, x: np.mod(x, -1.5), HALVES),
    ("floor_divide", lambda np, x, y: np.floor_divide(x, y), HALVES[:, None], HALVES),
    ("interp", lambda np, x: np.interp(x, [-1.0, 0.25, 2.0], [3.0, -1.0, 7.0]), HALVES),
    ("interp", lambda np, x: np.interp(x, [-1.0, 0.25, 2.0], [3.0, -1.0, 7.0], left=8.0, right=NAN), HALVES),
    ("interp", lambda np, x: np.interp(x, [0.5], [3.0], left=8.0, right=9.0), HALVES),
    ("interp", lambda np, x, fp: np.interp(x, [-1.0, 0.0, 0.0, 2.0, INF], fp), HALVES, (5,)),
    ("interp", lambda np, x, xp: np.interp(x, np.concatenate([xp - 1.0, xp, xp + 2.0]), SPECIAL[2:5]), HALVES, (1,)),
    ("interp", lambda np, x: np.interp(x, [0.0, 1.0, 2.0], [INF, INF, 1.0]), HALVES),
    ("interp", lambda np, x: np.interp(x, numpy.arange(-20.0, 20.0), numpy.cos(numpy.arange(40.0))), HALVES),
    ("interp", lambda np, x, fp: np.interp(x, numpy.arange(-20.0, 20.0), fp), (9,), (40,)),
    ("sort", lambda np, x: np.sort(x), (3, 7)),
    ("sort", lambda np, x: np.sort(x, axis=0), (5, 2)),
    ("sort", lambda np, x: np.sort(x, axis=None, stable=True), (2, 3)),
    ("sort", lambda np, x: np.sort(x), HALVES[::-1].copy()),
    ("sort", lambda np, x: np.sort(x > 0), (9,)),
    ("argsort", lambda np, x: np.argsort(x, axis=1), (2, 6, 2)),
    ("argsort", lambda np, x: np.argsort(x, kind="stable"), numpy.concatenate([TIES, HALVES, OTHER, HALVES])),
    ("argmin", lambda np, x: np.argmin(x), TIES),
    ("argmin", lambda np, x: (np.argmin(x), np.argmin(x, axis=1, keepdims=True)), HALVES.reshape(3, 5)),
    ("argmin", lambda np, x: np.argmin(x, axis=-2), (2, 4, 3)),
    ("argmax", lambda np, x: np.argmax(x), TIES),
    ("argmax", lambda np, x: (np.argmax(x, keepdims=True), np.argmax(x, axis=0)), HALVES.reshape(3, 5)),
    ("argmax", lambda np, x: np.argmax(x > 0.5, axis=1), (4, 6)),
    ("sin", lambda np, x: np.sin(x), SPECIAL),
    ("cos", lambda np, x: np.cos(x), SPECIAL),
    ("tan", lambda np, x: np.tan(x), SPECIAL),
    ("arcsin", lambda np, x: np.arcsin(x), SPECIAL),
    ("arccos", lambda np, x: np.arccos(x), SPECIAL),
    ("arctan", lambda np, x: np.arctan(x), SPECIAL),
    ("arctan2", lambda np, x, y: np.arctan2(x, y), UNSIGNED[:, None], UNSIGNED),
    ("hypot", lambda np, x, y: np.hypot(x, y), SPECIAL[:, None], SPECIAL),
    ("exp", lambda np, x: np.exp(x), SPECIAL),
    ("expm1", lambda np, x: np.expm1(x), SPECIAL),
    ("log", lambda np, x: np.log(x), SPECIAL),
    ("log1p", lambda np, x: np.log1p(x), SPECIAL),
    ("sinh", lambda np, x: np.sinh(x), SPECIAL),
    ("cosh", lambda np, x: np.cosh(x), SPECIAL),
    ("tanh", lambda np, x: np.tanh(x), SPECIAL),
    ("minimum", lambda np, x, y: np.minimum(x, y), SPECIAL[:, None], SPECIAL),
    ("minimum", lambda np, x, y: np.minimum(x > 0, y > 0), (9,), (9,)),
    ("maximum", lambda np, x, y: np.maximum(x, y), SPECIAL[:, None], SPECIAL),
    ("maximum", lambda np, x, y: np.maximum(x > 0, y > 0), (9,), (9,)),
    ("clip", lambda np, x: np.clip(x, -1.0, 2.0), SPECIAL),
    ("clip", lambda np, x: np.clip(x, None, 0.5), SPECIAL),
    ("clip", lambda np, x: np.clip(x, 0.5, None), SPECIAL),
    ("clip", lambda np, x, low, high: np.clip(x, low, high), (9,), (9,), (9,)),
    ("clip", lambda np, x: np.clip(PLAIN, x, 1.0), (2, 1)),
    ("deg2rad", lambda np, x: np.deg2rad(x), (3,)),
    ("radians", lambda np, x: np.radians(x), (3,)),
    ("rad2deg", lambda np, x: np.rad2deg(x), (3,)),
    ("degrees", lambda np, x: np.degrees(x), (3,)),
    # --- booleans -------------------------------------------------------------------------------------------
    ("less", lambda np, x, y: np.less(x, y), TIES, OTHER),
    ("less_equal", lambda np, x, y: np.less_equal(x, y), TIES, OTHER),
    ("greater", lambda np, x, y: np.greater(x, y), TIES, OTHER),
    ("greater_equal", lambda np, x, y: np.greater_equal(x, y), TIES, OTHER),
    ("equal", lambda np, x, y: np.equal(x, y), TIES, OTHER),
    ("equal", lambda np, x: np.equal(x, x), SPECIAL),
    ("equal", lambda np, x, y: np.equal(x > 0, y > 0), TIES, OTHER),
    ("not_equal", lambda np, x, y: np.not_equal(x, y), TIES, OTHER),
    ("not_equal", lambda np, x: np.not_equal(x, x), SPECIAL),
    ("logical_and", lambda np, x, y: np.logical_and(x > 0, y > 0), (9,), (9,)),
    ("logical_and", lambda np, x, y: np.logical_and(x, y), SPECIAL[:, None], SPECIAL),
    ("logical_or", lambda np, x, y: np.logical_or(x, y > 0), SPECIAL[:, None], SPECIAL),
    ("logical_xor", lambda np, x, y: np.logical_xor(x, y), SPECIAL[:, None], SPECIAL),
    ("logical_not", lambda np, x: np.logical_not(x), SPECIAL),
    ("bitwise_and", lambda np, x, y: np.bitwise_and(x > 0, y > 0), (9,), (9,)),
    ("bitwise_or", lambda np, x, y: np.bitwise_or(x > 0, y > 0), (9,), (9,)),
    ("bitwise_xor", lambda np, x, y: np.bitwise_xor(x > 0, y > 0), (9,), (9,)),
    ("invert", lambda np, x: np.invert(x > 0), (9,)),
    ("isnan", lambda np, x: np.isnan(x), SPECIAL),
    ("isfinite", lambda np, x: np.isfinite(x), SPECIAL),
    ("isinf", lambda np, x: np.isinf(x), SPECIAL),
    ("where", lambda np, x, y: np.where(x > 0, x, y), (2, 3), (3,)),
    ("where", lambda np, x: np.where(x, 1.0, 2.0), SPECIAL),
    ("where", lambda np, x, y: np.where(x > 0, y > 0, x > 1), (9,), (9,)),
    ("where", lambda np, x, y: np.where(x > 0, y > 0, y), (9,), (9,)),
    ("where", lambda np, x, y: np.where(x > 0, np.stack([x > 0, y]), np.stack([y, y > 0])), (9,), (9,)),
    ("where", lambda np, x: np.where([[True], [False]], x, -x), (3,)),
    ("any", lambda np, x: np.any(x > 1), (3,)),
    ("any", lambda np, x: np.any(x > 0, axis=-1, keepdims=True), (4, 3)),
    ("any", lambda np, x: np.any(x[:0] > 0), (3,)),
    ("all", lambda np, x: np.all(x > 0, axis=(0, 2)), (2, 3, 2)),
    ("all", lambda np, x: np.all(x), SPECIAL),
    ("all", lambda np, x: np.all(x[:, :0] > 0, axis=1), (3, 2)),
    # --- sums and products --------------------------------------------------------------------------------------
    ("sum", lambda np, x: np.sum(x), (2, 3)),
    ("sum", lambda np, x: np.sum(x), ()),
    ("sum", lambda np, x: np.sum(x, axis=1), (2, 3, 4)),
    ("sum", lambda np, x: np.sum(x, axis=(-1, 0)), (2, 3, 4)),
    ("sum", lambda np, x: np.sum(x, axis=()), (2, 3)),
    ("sum", lambda np, x: np.sum(x, axis=-2, keepdims=True), (2, 3, 4)),
    ("sum", lambda np, x: np.sum(x, keepdims=True), (2, 3)),
    ("sum", lambda np, x: np.sum(x > 0, axis=0), (7, 2)),
    ("sum", lambda np, x: np.sum(x[:0]), (3, 2)),
    ("sum", lambda np, x: np.sum(x[:0], axis=0), (3, 2)),
    ("sum", lambda np, x: np.sum(x[:0], axis=1), (3, 2)),
    ("prod", lambda np, x: np.prod(x, axis=0), (4, 2)),
    ("prod", lambda np, x: np.prod(x[:0]), (4,)),
    ("prod", lambda np, x: np.prod(x > 0, axis=0), (2, 9)),
    ("mean", lambda np, x: np.mean(x), (2, 3)),
    ("mean", lambda np, x: np.mean(x, axis=(0, 2), keepdims=True), (2, 3, 4)),
    ("mean", lambda np, x: np.mean(x > 0, axis=-1), (2, 3)),
    ("min", lambda np, x: np.min(x, axis=1), (3, 4)),
    ("min", lambda np, x: np.min(x), SPECIAL),
    ("min", lambda np, x: np.min(x > 0, axis=0), (2, 9)),
    ("max", lambda np, x: np.max(x, axis=-1, keepdims=True), (3, 4)),
    ("max", lambda np, x: np.max(x), SPECIAL),
    ("max", lambda np, x: np.max(x > 0, axis=0), (2, 9)),
    ("trace", lambda np, x: np.trace(x), (3, 4)),
    ("trace", lambda np, x: np.trace(x, offset=-1), (3, 4)),
    ("trace", lambda np, x: np.trace(x, 1, axis1=2, axis2=0), (3, 2, 4)),
    ("trace", lambda np, x: np.trace(x > 0), (6, 6)),
    ("dot", lambda np, x, y: np.dot(x, y), (3,), (3,)),
    ("dot", lambda np, x, y: np.dot(x, y), (2, 3), (3, 4)),
    ("dot", lambda np, x, y: np.dot(x, y), (3,), (3, 4)),
    ("dot", lambda np, x, y: np.dot(x, y), (2, 3), (3,)),
    ("dot", lambda np, x, y: np.dot(x, y), (5, 2, 3), (3, 4)),
    ("dot", lambda np, x, y: np.dot(x, y), (2, 3), (5, 3, 4)),
    ("dot", lambda np, x, y: np.dot(x, y), (), (2, 3)),
    ("dot", lambda np, x: np.dot(PLAIN, x), (3,)),
    ("vdot", lambda np, x, y: np.vdot(x, y), (2, 3), (3, 2)),
    ("inner", lambda np, x, y: np.inner(x, y), (2, 3), (4, 3)),
    ("inner", lambda np, x, y: np.inner(x, y), (), (4, 3)),
    ("outer", lambda np, x, y: np.outer(x, y), (2, 2), (3,)),
    ("outer", lambda np, x, y: np.outer(x > 0, y > 0), (3,), (3,)),
    ("kron", lambda np, x, y: np.kron(x, y), (2, 3), (4, 2)),
    ("kron", lambda np, x, y: np.kron(x, y), (2,), (3,)),
    ("kron", lambda np, x, y: np.kron(x, y), (2,), (2, 3, 2)),
    ("cross", lambda np, x, y: np.cross(x, y), (3,), (3,)),
    ("cross", lambda np, x, y: np.cross(x, y), (4, 1, 3), (2, 3)),
    ("cross", lambda np, x, y: np.cross(x, y, axisa=0, axisb=1, axisc=0), (3, 4), (4, 3)),
    ("cross", lambda np, x, y: np.cross(x, y, axis=0), (3, 4), (3, 4)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (2, 3), (3, 4)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (3,), (3,)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (5, 1, 2, 3), (4, 3, 2)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (3,), (4, 3, 2)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (4, 2, 3), (3,)),
    ("matmul", lambda np, x, y: np.matmul(x > 0, y > 0), (4, 2), (2, 4)),
    ("matmul", lambda np, x: np.matmul(x, np.zeros((0, 2))), (3, 0)),
    ("matvec", lambda np, x, y: np.matvec(x, y), (4, 2, 3), (3,)),
    ("vecmat", lambda np, x, y: np.vecmat(x, y), (4, 2), (2, 3)),
    ("vecdot", lambda np, x, y: np.vecdot(x, y), (4, 3), (3,)),
    ("vecdot", lambda np, x, y: np.vecdot(x, y, axis=0), (3, 3), (3, 3)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y), (2, 3, 4), (3, 4, 5)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y, 1), (2, 3), (3, 2)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y, 0), (2,), (3,)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y, ([-1, 0], [0, 1])), (2, 3, 4), (4, 2)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y, (0, -1)), (2, 3), (4, 2)),
    ("einsum", lambda np, x, y: np.einsum("ij,jk->ik", x, y), (2, 3), (3, 4)),
    ("einsum", lambda np, x, y: np.einsum("ij,jk", x, y), (2, 3), (3, 4)),
    ("einsum", lambda np, x, y: np.einsum("ba , b", x, y), (2, 3), (2,)),
    ("einsum", lambda np, x: np.einsum("ii", x), (3, 3)),
    ("einsum", lambda np, x: np.einsum("ii->i", x), (3, 3)),
    ("einsum", lambda np, x: np.einsum("ba", x), (3, 2)),
    ("einsum", lambda np, x: np.einsum("Ba", x), (3, 2)),
    ("einsum", lambda np, x: np.einsum("iij,kj->ki", x, x[0, :, :2]), (2, 2, 2)),
    ("einsum", lambda np, x: np.einsum("...ij->...ji", x), (2, 4, 3)),
    ("einsum", lambda np, x: np.einsum("i...->...", x), (2, 4, 3)),
    ("einsum", lambda np, x, y: np.einsum("...ij,...j->...i", x, y), (5, 1, 2, 3), (4, 3)),
    ("einsum", lambda np, x, y: np.einsum("...,...", x, y), (2, 3), (3,)),
    ("einsum", lambda np, x, y: np.einsum("i...,i", x, y), (2, 3), (2,)),
    ("einsum", lambda np, x, y: np.einsum("...i,i->i...", x, y), (3, 2), (2,)),
    ("einsum", lambda np, x, y: np.einsum("i,i->i", x, y), (1,), (3,)),
    ("einsum", lambda np, x, y, z: np.einsum("ij,kj,k->i", x, y, z, optimize=True), (2, 3), (4, 3), (4,)),
    ("einsum", lambda np, x, y: np.einsum("i,j->", x, y), (2,), (3,)),
    ("einsum", lambda np, x, y: np.einsum(",ij->ji", x, y), (), (2, 3)),
    ("einsum", lambda np, x, y: np.einsum("ij,jk->ik", x > 0, y > 0), (3, 2), (2, 3)),
    ("einsum", lambda np, x: np.einsum("ij->i", x > 0), (3, 2)),
    ("einsum", lambda np, x: np.einsum("ij,j->i", PLAIN, x), (3,)),
    # --- shapes -------------------------------------------------------------------------------------------------
    ("reshape", lambda np, x: np.reshape(x, (3, -1)), (2, 3)),
    ("reshape", lambda np, x: np.reshape(x, (3, 2), order="F"), (2, 3)),
    ("ravel", lambda np, x: np.ravel(x), (2, 3)),
    ("ravel", lambda np, x: np.ravel(x, order="F"), (2, 3)),
    ("transpose", lambda np, x: np.transpose(x, (2, 0, 1)), (2, 3, 4)),
    ("transpose", lambda np, x: np.transpose(x), (2, 3, 4)),
    ("matrix_transpose", lambda np, x: np.matrix_transpose(x), (2, 3, 4)),
    ("swapaxes", lambda np, x: np.swapaxes(x, 0, -1), (2, 3, 4)),
    ("moveaxis", lambda np, x: np.moveaxis(x, 0, -1), (2, 3, 4)),
    ("expand_dims", lambda np, x: np.expand_dims(x, (0, 2)), (2, 3)),
    ("squeeze", lambda np, x: np.squeeze(x, axis=1), (2, 1, 3, 1)),
    ("broadcast_to", lambda np, x: np.broadcast_to(x, (2, 4, 3)), (4, 1)),
    ("broadcast_arrays", lambda np, x, y: np.broadcast_arrays(x, y, 1.0), (4, 1), (3,)),
    ("diag", lambda np, x: np.diag(x), (3,)),
    ("diag", lambda np, x: np.diag(x, -1), (3,)),
    ("diag", lambda np, x: np.diag(x, 1), (3, 4)),
    ("diag", lambda np, x: np.diag(x > 0) + np.diag(x > 0), (4,)),
    ("diagonal", lambda np, x: np.diagonal(x, 1, 2, 0), (3, 2, 4)),
    ("tril", lambda np, x: np.tril(x, -1), (2, 3, 3)),
    ("tril", lambda np, x: np.tril(x > 0), (4, 4)),
    ("triu", lambda np, x: np.triu(x, k=1), (3, 4)),
    ("flip", lambda np, x: np.flip(x, axis=0), (3, 4)),
    ("fliplr", lambda np, x: np.fliplr(x), (3, 4)),
    ("flipud", lambda np, x: np.flipud(x), (3, 4)),
    ("roll", lambda np, x: np.roll(x, -1, axis=1), (3, 4)),
    ("roll", lambda np, x: np.roll(shift=2, a=x), (3, 4)),
    ("rot90", lambda np, x: np.rot90(x, 3), (3, 4)),
    ("tile", lambda np, x: np.tile(x, (2, 1, 2)), (3, 2)),
    ("repeat", lambda np, x: np.repeat(x, [1, 0, 2], axis=0), (3, 2)),
    ("take", lambda np, x: np.take(x, [2, 0, 0], axis=1), (2, 3)),
    ("take", lambda np, x: np.take(x, 4), (2, 3)),
    ("copy", lambda np, x: np.copy(x), (2, 3)),
    ("stack", lambda np, x, y: np.stack([x, y, [1.0, 2.0, 3.0]], axis=1), (3,), (3,)),
    ("stack", lambda np, x: np.stack((x[0], 1.0, x[1])), (2,)),
    ("stack", lambda np, x: np.stack([x > 0, x])[0] + np.stack([x > 0, x])[0], (5,)),
    ("concatenate", lambda np, x: np.concatenate([x, PLAIN], axis=-1), (2, 1)),
    ("concatenate", lambda np, x: np.concatenate([x, PLAIN], axis=None), (2, 1)),
    ("concatenate", lambda np, x: np.concatenate([x > 0, x]), (3,)),
    ("concatenate", lambda np, x: np.concatenate([x > 0, [True, False]]), (3,)),
    ("concatenate", lambda np, x: np.concatenate([x > 0, x[:0]]) * 2, (3,)),
    ("vstack", lambda np, x, y: np.vstack([x, y]), (3,), (2, 3)),
    ("hstack", lambda np, x, y: np.hstack([x, y, 0.5]), (3,), (2,)),
    ("dstack", lambda np, x, y: np.dstack([x, y]), (3,), (3,)),
    ("column_stack", lambda np, x, y: np.column_stack([x, y]), (3,), (3, 2)),
    ("block", lambda np, x, y: np.block([[x, y], [np.zeros((1, 2)), 1.0]]), (2, 2), (2, 1)),
    ("split", lambda np, x: np.split(x, [1, 3]), (5, 2)),
    ("array_split", lambda np, x: np.array_split(x, 2, axis=1), (2, 3)),
    ("append", lambda np, x: np.append(PLAIN, x, axis=0), (1, 3)),
    ("append", lambda np, x: np.append(x, [1.0, 2.0]), (2, 2)),
    ("append", lambda np, x: np.append(x > 0, x), (3,)),
    ("delete", lambda np, x: np.delete(x, [0, 2], axis=1), (2, 4)),
    ("atleast_1d", lambda np, x: np.atleast_1d(x), ()),
    ("atleast_2d", lambda np, x: np.atleast_2d(x), (3,)),
    ("shape", lambda np, x: np.ones(np.shape(x)), (2, 3)),
    ("ndim", lambda np, x: np.ndim(x) * np.ones(2), (2, 3)),
    ("size", lambda np, x: np.size(x) + np.size(x, 1) * np.ones(2), (2, 3)),
    ("zeros_like", lambda np, x: np.zeros_like(x), (2, 3)),
    ("zeros_like", lambda np, x: np.zeros_like(x, shape=(4,)), (2, 3)),
    ("zeros_like", lambda np, x: np.zeros_like(x > 0), (2, 3)),
    ("ones_like", lambda np, x: np.ones_like(x), (2, 3)),
    ("ones_like", lambda np, x: np.ones_like(x > 0), (2, 3)),
    ("ones_like", lambda np, x: np.ones_like(x > 0, dtype=float), (2, 3)),
    ("empty_like", lambda np, x: np.empty_like(x) * 0.0, (2, 3)),
    ("full_like", lambda np, x: np.full_like(x, 2.5), (2, 3)),
    ("full_like", lambda np, x: np.full_like(x, x[0]), (2, 3)),
    ("full_like", lambda np, x: np.full_like(x > 0, 2.5), (2, 3)),
    # --- linalg (more of it in test_small_algebra.py) -----------------------------------------------------------
    ("linalg.norm", lambda np, x: np.linalg.norm(x), (3,)),
    ("linalg.cholesky", lambda np, x: np.linalg.cholesky(np.identity(3) + x @ x.T), (3, 3)),
    ("linalg.solve", lambda np, x, y: np.linalg.solve(x, y), (3, 3), (3,)),
    ("linalg.inv", lambda np, x: np.linalg.inv(x), (3, 3)),
    ("linalg.det", lambda np, x: np.linalg.det(x), (3, 3)),
    ("linalg.cross", lambda np, x, y: np.linalg.cross(x, y), (4, 3), (4, 3)),
    ("linalg.cross", lambda np, x, y: np.linalg.cross(x, y, axis=0), (3, 2), (3, 2)),
    ("linalg.diagonal", lambda np, x: np.linalg.diagonal(x, offset=1), (2, 3, 4)),
    ("linalg.matmul", lambda np, x, y: np.linalg.matmul(x, y), (2, 3), (3, 2)),
    ("linalg.matrix_transpose", lambda np, x: np.linalg.matrix_transpose(x), (2, 3, 4)),
    ("linalg.outer", lambda np, x, y: np.linalg.outer(x, y), (2,), (3,)),
    ("linalg.tensordot", lambda np, x, y: np.linalg.tensordot(x, y, axes=1), (2, 3), (3, 2)),
    ("linalg.trace", lambda np, x: np.linalg.trace(x, offset=1), (2, 3, 4)),
    ("linalg.vecdot", lambda np, x, y: np.linalg.vecdot(x, y), (2, 3), (2, 3)),
    ("linalg.vecdot", lambda np, x, y: np.linalg.vecdot(x, y, axis=0), (3, 2), (3, 2)),
]


def exists(name):
    return hasattr(numpy.linalg if "." in name else numpy, name.rpartition(".")[2])


CASES = [case for case in CASES if exists(case[0])]  # matvec and vecmat are younger than NumPy 2.0
TABLE = pytest.mark.parametrize(
    ("function", "shapes"), [(c[1], c[2:]) for c in CASES], ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)


@TABLE
def test_a_function_on_traced_arrays_gives_the_numbers_of_numpy(function, shapes):
    assert_traced_agrees(function, shapes)


@TABLE
def test_the_function_of_numpy_itself_finds_its_traced_form(function, shapes):
    assert_traced_agrees(function, shapes, numpy)


@TABLE
def test_outside_a_trace_a_function_gives_exactly_what_numpy_gives(function, shapes):
    with numpy.errstate(all="ignore"):
        expected = parts(function(numpy, *inputs_of(shapes)))
        got = parts(function(delassus.numpy, *inputs_of(shapes)))
    for g, e in zip(got, expected, strict=True):
        assert type(g) is type(e)
        numpy.testing.assert_array_equal(g, e, strict=True)


SYNTAX = [
    # --- operators, with plain operands on both sides -----------------------------------------------------------
    ("x + 1", lambda np, x: x + 1, (3,)),
    ("1 + x", lambda np, x: 1 + x, (3,)),
    ("x - 1", lambda np, x: x - 1, (3,)),
    ("1 - x", lambda np, x: 1 - x, (3,)),
    ("x * 2", lambda np, x: x * 2, (3,)),
    ("2 * x", lambda np, x: 2 * x, (3,)),
    ("x / 3", lambda np, x: x / 3, (3,)),
    ("3 / x", lambda np, x: 3 / x, (3,)),
    ("x ** 2", lambda np, x: x**2, (3,)),
    ("x ** 0.5", lambda np, x: (x * x) ** 0.5, (3,)),
    ("x // 2, x % 2", lambda np, x: (x // 2, x % 2, 7.5 // x, 7.5 % x), HALVES),
    ("-x, +x, abs(x)", lambda np, x: (-x, +x, abs(x)), SPECIAL),
    ("ndarray + x", lambda np, x: PLAIN + x, (3,)),
    ("ndarray - x", lambda np, x: PLAIN - x, (3,)),
    ("ndarray * x", lambda np, x: PLAIN * x, (2, 1)),
    ("ndarray / x", lambda np, x: PLAIN / x, (3,)),
    ("ndarray @ x", lambda np, x: PLAIN @ x, (3, 2)),
    ("x @ ndarray", lambda np, x: x @ PLAIN, (2,)),
    ("list - x", lambda np, x: [1.0, 2.0, 3.0] - x, (3,)),
    ("x * nested list", lambda np, x: x * [[1.0], [2.0]], (3,)),
    ("np.float64 - x", lambda np, x: numpy.float64(2.0) - x, (3,)),
    ("np.float32 * x", lambda np, x: numpy.float32(0.1) * x, (3,)),
    ("integers * x", lambda np, x: numpy.arange(3) * x, (3,)),
    ("x / integers", lambda np, x: x / numpy.arange(1, 4), (3,)),
    ("comparisons", lambda np, x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), TIES, OTHER),
    ("plain comparisons", lambda np, x: (1.0 < x, 2 >= x, OTHER < x, OTHER == x, x != OTHER, x == 1), TIES),
    ("& | ^ ~", lambda np, x, y: ((x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), ~(x > 0)), (9,), (9,)),
    ("plain & x", lambda np, x: (numpy.array([True, False, True]) & (x > 0), True ^ (x > 0), (x > 0) | False), (3,)),
    ("truth + truth", lambda np, x, y: (x > 0) + (y > 0), (9,), (9,)),
    ("truth * truth", lambda np, x, y: (x > 0) * (y > 0), (9,), (9,)),
    ("truth + 1", lambda np, x: (x > 0) + 1, (9,)),
    ("truth - 1", lambda np, x: (x > 0) - 1.0, (9,)),
    ("1 - truth", lambda np, x: 1 - (x > 0), (9,)),
    ("truth * x", lambda np, x: (x > 0) * x + x * (x < 1), (9,)),
    ("truth / truth", lambda np, x: (x > -9) / (x > -8), (9,)),
    ("truth == truth", lambda np, x, y: (x > 0) == (y > 0), TIES, OTHER),
    ("truth + truth + float", lambda np, x, y: (x > 0) + (y > 0) + 1.0, (9,), (9,)),
    ("truth.sum()", lambda np, x: (x > 0).sum() / 2, (9,)),
    ("truth.astype", lambda np, x: (x > 0).astype(float) + (x > 0).astype(float), (9,)),
    ("float.astype(bool)", lambda np, x: x.astype(bool), SPECIAL),
    # --- methods and attributes ---------------------------------------------------------------------------------
    ("sums", lambda np, x: (x.sum(0), x.prod(-1), x.mean(axis=1, keepdims=True)), (2, 3)),
    ("extremes", lambda np, x: (x.min(), x.max(1), (x > 0).any(0), (x > -9).all()), (2, 3)),
    ("dot, trace, clip", lambda np, x: (x.dot(x), x.trace(), x.clip(-0.5, 0.5), x.clip(max=0.0)), (3, 3)),
    ("reshape, flatten", lambda np, x: (x.reshape(3, 2), x.reshape((6,)), x.flatten(), x.ravel()), (2, 3)),
    ("transpose, T, mT", lambda np, x: (x.transpose(2, 0, 1), x.transpose((1, 0, 2)), x.T, x.mT), (2, 3, 4)),
    ("squeeze, swapaxes", lambda np, x: (x.squeeze(1), x.swapaxes(0, 2), x[:, 0].diagonal()), (2, 1, 2)),
    ("repeat, take, copy", lambda np, x: (x.repeat(2, axis=0), x.take([1, 0], axis=1), x.copy()), (2, 3)),
    ("argsort, argmin, argmax", lambda np, x: (x.argsort(), x.argmin(0), x.argmax()), (2, 3)),
    ("shape, ndim, size, len", lambda np, x: numpy.array([*x.shape, x.ndim, x.size, len(x)]) * 1.0, (2, 3)),
    # --- indexing -----------------------------------------------------------------------------------------------
    ("x[i], x[-1], x[i, j]", lambda np, x: (x[0], x[-1], x[1, 2]), (2, 3)),
    ("slices", lambda np, x: (x[1:, ::-1], x[..., 0], x[:, None, 1:], x[::2]), (3, 4)),
    ("fancy", lambda np, x: (x[[2, 0]], x[[0, 1], [2, 2]], x[:, [True, False, True, False]]), (3, 4)),
    ("a plain mask", lambda np, x: x[PLAIN > 0], (2, 3)),
    ("iteration", lambda np, x: [row * k for k, row in enumerate(x)], (3, 2)),
    ("unpacking", lambda np, x: np.stack([*x, *x[::-1]]), (3, 2)),
]


@pytest.mark.parametrize(("function", "shapes"), [(c[1], c[2:]) for c in SYNTAX], ids=[c[0] for c in SYNTAX])
def test_operators_methods_and_indices_give_the_numbers_of_numpy(function, shapes):
    assert_traced_agrees(function, shapes)


def statement(function):
    """A case whose function changes its arrays; the changed arrays are the result."""

    def changed(np, *arrays):
        extra = function(np, *arrays)
        return (*arrays, *(() if extra is None else parts(extra)))

    return changed


def assign(x, key, value):
    x[key] = value


def set_items(np, x, y):
    x[0] = y
    x[1, 1] = 2.0
    x[2, ::2] = y[:2] * 3.0
    x[[3, 3], [0, 1]] = [7.0, y[1]]


def set_through_views(np, x, y):
    x[0][1] = y[0]
    x.T[2, 0] = y[1]
    x.reshape(-1)[4] = y[2]
    x.ravel()[5] = 11.0
    x[1:][:, ::-1][0, 2] = 12.0
    x.swapaxes(0, 1)[0, 3] = 13.0
    x[..., 1][2] = 14.0
    x[:, None][2, 0, 2] = 15.0


def set_through_functions(np, x, y):
    np.transpose(x)[0, 0] = y[0]
    np.moveaxis(x, 0, 1)[1, 0] = y[1]
    np.split(x, 2)[1][0, 0] = y[2]
    np.flip(x)[0, 0] = 5.0
    np.expand_dims(x, 0)[0, 2, 2] = 6.0
    np.squeeze(x[:1])[2] = 7.0


def copies_are_copies(np, x, y):
    for made in (x.copy(), np.array(x), np.copy(x), x.flatten(), +x, x[[0, 1, 2, 3]], np.clip(x, None, 1e9)):
        made[...] = 99.0
    copy.copy(x)[...] = copy.deepcopy(y)[...] = 99.0
    return np.stack([y, y])


def in_place(np, x, y):
    x += y
    x -= 2.0
    x *= [1.0, -1.0, 0.5]
    x /= y[1] + 10.0
    x **= 2


def in_place_through_views(np, x, y):
    row, column = x[1], x[:, 0]
    row += y
    column *= 3.0
    x[2] -= y
    x[3, 1] += 5.0
    x[[0, 0]] += 1.0


def in_place_on_an_alias(np, x, y):
    other = x
    other += y
    return other


def in_place_with_overlap(np, x, y):
    x[:3, :3] += x[:3, :3].T
    x[1:] = x[:-1]


def in_place_matrix_product(np, x, y):
    block = x[:3]
    block @= np.diag(y)


def in_place_on_a_view_of_one_element(np, x, y):
    first = y[..., 0]
    first += 1.0
    return first


def in_place_on_a_scalar_keeps_its_other_name(np, x, y):
    total = np.sum(x)
    kept = total
    total += 1.0
    return total, kept


def in_place_on_truths(np, x, y):
    mask = x > 0
    mask &= y > 0
    mask |= x > 1
    mask ^= y < 0
    return mask


def truths_become_numbers_in_an_array_of_floats(np, x, y):
    view = x[:2]
    view[0] = y > 0
    x[3] += y < 0
    return x.sum(axis=1)


def numbers_become_truths_in_an_array_of_truths(np, x, y):
    mask = x > 0
    mask[0] = y - y[0]
    mask[1] = 1.0
    return mask, mask + mask


def out_parameters(np, x, y):
    np.add(x, y, out=x)
    np.multiply(x[1:], 2.0, out=x[1:])
    np.sqrt(y * y, y)
    np.sum(x, axis=0, out=y)
    np.less(x, y, out=x)


def einsum_view_of_the_diagonal(np, x, y):
    np.einsum("ii->i", x[:3])[...] = y
    np.einsum("ij->ji", x)[0, 3] = 4.0


STATEMENTS = [
    set_items,
    set_through_views,
    set_through_functions,
    copies_are_copies,
    in_place,
    in_place_through_views,
    in_place_on_an_alias,
    in_place_with_overlap,
    in_place_matrix_product,
    in_place_on_a_view_of_one_element,
    in_place_on_a_scalar_keeps_its_other_name,
    in_place_on_truths,
    truths_become_numbers_in_an_array_of_floats,
    numbers_become_truths_in_an_array_of_truths,
    out_parameters,
    einsum_view_of_the_diagonal,
]


@pytest.mark.parametrize("function", STATEMENTS, ids=lambda f: f.__name__)
def test_statements_change_arrays_as_in_numpy(function):
    assert_traced_agrees(statement(function), [(4, 3), (3,)])


def fill_zeros(np, x):
    A = np.zeros((2, 3))
    A[0] = x
    A[1, 1] = x[0] * x[1]
    return A


CREATION = [
    ("zeros", fill_zeros),
    ("empty", lambda np, x: assign(a := np.empty(3), slice(None), x) or a),
    ("ones", lambda np, x: assign(a := np.ones(3), 1, x[0]) or a),
    ("full", lambda np, x: assign(a := np.full((2, 3), 7.0), 1, x) or a),
    ("full of traced values", lambda np, x: np.full((2, 3), x)),
    ("full of one traced value", lambda np, x: np.full(4, x[0])),
    ("full of booleans", lambda np, x: np.full(4, x[0] > 0)),
    ("eye", lambda np, x: assign(a := np.eye(3, 4, 1), (1, slice(0, 3)), x) or a),
    ("identity", lambda np, x: assign(a := np.identity(3), 2, x) or a),
    ("array of plain numbers", lambda np, x: assign(a := np.array([1.0, 2.0, 3.0]), 0, x[0]) or a),
    ("array of a nest", lambda np, x: np.array([[x[0], 1.0, 2], [x[1] * 2, True, x[2]], x, [1, 2, 3]])),
    ("array of arrays and lists", lambda np, x: np.array([x, [1.0, 2.0, x[0]], (4, 5, 6)])),
    ("array of booleans", lambda np, x: np.array([x[0] > 0, x[1] > 0, True])),
    ("array of booleans and numbers", lambda np, x: np.array([x[0] > 0, x[1], True])[0] * 3.0),
    ("array with dtype", lambda np, x: np.array([x[0] > 0, x[1] > 0], dtype=float) * 2.0),
    ("array of a scalar", lambda np, x: np.array(x[0])),
    ("asarray", lambda np, x: np.asarray([x[0], 3, x[1]])),
    ("asarray of an array is a view", lambda np, x: assign(np.asarray(x), 0, 5.0) or x),
    ("arange", lambda np, x: np.arange(3) * x),
    ("linspace", lambda np, x: np.linspace(0.0, 1.0, 3) * x),
    ("pi", lambda np, x: np.pi * x[np.newaxis]),
]


@pytest.mark.parametrize("function", [c[1] for c in CREATION], ids=[c[0] for c in CREATION])
def test_made_arrays_receive_traced_values(function):
    assert_traced_agrees(function, [(3,)])


@pytest.mark.parametrize("function", [c[1] for c in CREATION], ids=[c[0] for c in CREATION])
def test_made_arrays_are_those_of_numpy_outside_a_trace(function):
    x = numpy.array([0.5, -1.5, 2.5])
    numpy.testing.assert_array_equal(
        function(delassus.numpy, x.copy()), numpy.asarray(function(numpy, x.copy())), strict=True
    )


def documented():
    """The names in the table of `delassus.numpy`'s documentation, as they are written after `np.`."""
    text = re.search(r"\n\n(arithmetic .*?)\n\n", delassus.numpy.__doc__, re.DOTALL).group(1)
    plain, linalg = re.sub(r"\(.*?\)", "", text, flags=re.DOTALL).split("\nlinalg ")
    linalg = linalg.replace("and NumPy's linalg spellings of", "")
    rows = [line[16:] for line in plain.splitlines()]
    return {
        name
        for prefix, names in (("", " ".join(rows)), ("linalg.", linalg))
        for name in (prefix + word for word in re.findall(r"[a-z]\w+", names))
        if exists(name)
    }


def of_numpy(name):
    return getattr(numpy.linalg, name.removeprefix("linalg.")) if "." in name else getattr(numpy, name)


def test_every_documented_function_has_a_traced_form():
    assert [name for name in sorted(documented()) if of_numpy(name) not in HANDLERS] == []


def test_every_function_with_a_traced_form_is_documented():
    found = {of_numpy(name) for name in documented()}
    assert [function.__name__ for function in HANDLERS if function not in found] == []


def test_every_documented_function_is_compared_with_numpy_here():
    assert documented() == {case[0] for case in CASES}


def test_a_traced_array_knows_its_dtype():
    seen = []

    def body(x):
        seen.extend([x.dtype, (x > 0).dtype, (x[:0] > 0).dtype, (x + (x > 0)).dtype])
        return x

    record("body", body, (Operand("x", (2,)),), (Operand("y", (2,)),))
    assert seen == [numpy.float64, bool, bool, numpy.float64]


def test_a_batch_gives_each_state_its_own_numbers():
    def body(x):
        return delassus.numpy.where(x > 0, x, delassus.numpy.sum(x))

    x = numpy.random.default_rng(0).normal(size=(5, 2, 3))
    program = record("body", body, (Operand("x", (3,)),), (Operand("y", (3,)),))
    (got,) = evaluate(program, x)
    numpy.testing.assert_allclose(got, numpy.where(x > 0, x, x.sum(-1, keepdims=True)), rtol=1e-14)


def test_what_a_module_of_numpy_holds_besides_functions_is_passed_on():
    assert delassus.numpy.linalg.LinAlgError is numpy.linalg.LinAlgError
    assert delassus.numpy.float64 is numpy.float64
    assert delassus.numpy.inf == numpy.inf


# --- what there is ----------------------------------------------------------------------------------------------------


def test_dir_lists_what_works_on_traced_values():
    listed = dir(delassus.numpy)
    assert {"zeros", "array", "sin", "where", "einsum", "linalg", "pi", "newaxis"} <= set(listed)
    assert not {"fft", "partition", "random", "Callable", "ModuleType"} & set(listed)


def test_every_function_that_is_handled_is_listed():
    names = {*dir(delassus.numpy), *dir(delassus.numpy.linalg)}
    assert not {function.__name__ for function in HANDLERS} - names


def test_dir_of_linalg_lists_what_works_on_traced_values():
    listed = dir(delassus.numpy.linalg)
    assert {"solve", "inv", "cholesky", "norm", "det"} <= set(listed)
    assert not {"svd", "eigh"} & set(listed)


def test_everything_listed_is_there():
    assert all(hasattr(delassus.numpy, name) for name in dir(delassus.numpy))
